"""The page of reasons and the lists of codes, written from the records."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from service.mergequeue.engine.reasons import NEEDS, Cause, HoldReason, Reason
from service.mergequeue.reasons.record import Record
from service.text import markdown, phrases
from service.text.markdown import Links
from service.text.phrases import Argument, Code, Pull, phrase

INTRODUCTION = """\
# Reasons

Written by `make docs` from the records in `service/mergequeue/reasons`. Edit the records and not
this page. A code never changes its meaning; new codes may come. The target branch is `main` in the
texts. Where Headgate knows checks, pull requests, people or commits, it names them.

"Again" means that queueing the pull request again unchanged may help. "Next" is what a program does
about a pull request that waits for it, ended by it or was refused for it
([the next step](next-steps.md)).
"""

LINKS = Links("https://github.com")
HEAD = "| Code | Meaning | Who must act | Again | Next |\n|---|---|---|---|---|"

VALUES: dict[str, Argument] = {
    "target": "main",
    "merge": "/merge",
    "test_branches": "headgate/merge/**",
    "tries": phrase("several times"),
    "submitter": phrase("the submitter"),
    "since": phrase("some time"),
    "upper": Pull(2),
    "lower": Pull(1),
    "rebase": Code("git rebase --onto origin/main …"),
    "moved": "main",
    "run": 12,
    "failed": phrase("its failed checks"),
    "landings": phrase("a landing"),
    "again": Code("/merge --again"),
    "who": phrase("the submitter"),
    "used": phrase("as many"),
    "limit": phrase("the limit"),
    "where": phrase("the queue for {}", "main"),
    "unheld_tries": phrase("several times"),
}
"""What stands for a place that always has a value. The target branch is `main`."""

SECTIONS: dict[str, Callable[[Record], str]] = {
    "Submitted": lambda record: record.submitted,
    "Waits in `PENDING`": lambda record: record.pending,
    "In `TESTING`": lambda record: record.testing,
    "In `TESTS_PASSED`": lambda record: record.passed,
    "In `PENDING_FAILURE`": lambda record: record.undecided,
    "`FAILED`": lambda record: record.failed.clause if record.failed else "",
    "`CANCELLED`": lambda record: record.cancelled.clause if record.cancelled else "",
    "`MERGED`": lambda record: record.merged.clause if record.merged else "",
    "Refused commands": lambda record: record.refused.text if record.refused else "",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def codes(kind: str, listed: Iterable[str], text: str) -> str:
    """Return a module with the members of one of its enums written anew."""
    members = "".join(f'    {code.upper()} = "{code}"\n' for code in listed)
    members_of = re.compile(
        rf'(class {kind}\(StrEnum\):\n    """.*?"""\n\n)(?:    [A-Z_]+ = .*\n)*'
    )
    return members_of.sub(lambda match: match[1] + members, text, count=1)


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Needed before it may be tested\n"
    yield "In this order, the first open one is the reason that is shown.\n"
    yield HEAD
    for reason, need in NEEDS.items():
        yield _row(reason, need.goal, but=("rebase",))
    for title, text_of in SECTIONS.items():
        yield f"\n## {title}\n"
        yield HEAD
        for reason in Reason:
            if text := text_of(reason.record):
                yield _row(reason, text)
    yield "\n## Holds\n"
    yield "| Code | Meaning | Who must act | Stops | Next |\n|---|---|---|---|---|"
    for hold in HoldReason:
        record = hold.record
        cells = f"{_bare(record.text)} | {record.who} | `{record.scope}` | `{record.next}`"
        yield f"| `{hold}` | {cells} |"
    yield "\n## Verdict causes\n"
    yield "| Code | Meaning |\n|---|---|"
    for cause in Cause:
        yield f"| `{cause}` | {_bare(cause.record.text)} |"


def _row(reason: Reason, text: str, but: Collection[str] = ()) -> str:
    record = reason.record
    again = "yes" if record.retryable else "no"
    return f"| `{reason}` | {_bare(text, but)} | {record.who} | {again} | `{record.next}` |"


def _bare(template: str, but: Collection[str] = ()) -> str:
    """Return the text as it is when nothing but the constant places is known."""
    text = phrases.filled(template, lambda name: None if name in but else VALUES.get(name))
    return markdown.markdown(phrases.capitalized(text), LINKS).replace("|", "\\|")
