"""Fields of JSON that a stranger wrote: each of the kind asked for, or nothing."""

from service.flaky.results import CaseResult, Outcome


def record(value: object) -> dict[str, object]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def records(value: object) -> list[dict[str, object]]:
    """The objects of a list; what is none is left out."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(fields: dict[str, object], name: str) -> str:
    """The text, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def number(fields: dict[str, object], name: str) -> float | None:
    """The number, or None; a boolean is none."""
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def passed_at_once(case: CaseResult) -> CaseResult:
    """The case in its short form, where its only attempt passed."""
    if len(case.told) == 1 and case.outcome is Outcome.PASSED:
        return case._replace(duration_s=case.told[0].duration_s, told=())
    return case
