"""Words and elements by which JUnit XML says how a test ended (docs/design/reports.md 5)."""

from collections.abc import Iterable

from service.testhealth.reports.results import Attempt, Outcome

# Elements in a case that say nothing of its outcome.
SILENT = frozenset(
    {
        "attachment",
        "attachments",
        "description",
        "label",
        "labels",
        "link",
        "links",
        "parameter",
        "parameters",
        "properties",
        "step",
        "steps",
        "tag",
        "tags",
    }
)

# Outcomes told by an attribute alone; they count where no element decides.
PASSED_WORDS = frozenset(
    {
        "complete",
        "completed",
        "executed",
        "expected",
        "fixed",
        "flaky",
        "ok",
        "pass",
        "passed",
        "run",
        "succeeded",
        "success",
        "successful",
    }
)
SKIPPED_STATUSES = ("notrun", "disabled", "skipped", "ignored")
SKIPPED_RESULTS = ("suppressed", "skipped", "ignored")
FAILED_STATUSES = {"failed": False, "failure": False, "error": True, "errored": True}

DIGITS_MAX = 9

Attributes = dict[str, str]


def is_count(text: str) -> bool:
    """Return whether a text is a number of things, not a hostile one."""
    return text.isdecimal() and len(text) <= DIGITS_MAX


def line_of(text: str) -> int | None:
    """The line, if the text is a number of one."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else None


def declared_failures(attributes: Attributes) -> int:
    """Return how many failures and errors a suite declares."""
    texts = (attributes.get("failures", ""), attributes.get("errors", ""))
    return sum(int(text) for text in texts if is_count(text))


def unknown_in(attributes: Attributes) -> Iterable[str]:
    """Return words for the outcome of a case that are neither those of a pass nor others."""
    words = (attributes.get(name, "") for name in ("status", "result"))
    return [word for word in words if word and word.lower() not in PASSED_WORDS]


def attempts_by_attribute(attributes: Attributes, seconds: float | None) -> tuple[Attempt, ...]:
    """The attempt of a case whose attributes alone say that it did not pass, else nothing."""
    status = attributes.get("status", "").lower()
    if status in FAILED_STATUSES:
        return (Attempt(Outcome.FAILED, seconds, is_error=FAILED_STATUSES[status]),)
    result = attributes.get("result", "").lower()
    if status in SKIPPED_STATUSES or result in SKIPPED_RESULTS:
        return (Attempt(Outcome.SKIPPED, seconds),)
    return ()
