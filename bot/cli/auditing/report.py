"""An audit as text, as JSON and as an exit code."""

from collections.abc import Iterator, Sequence

from service.mergequeue.auditing.findings import Audit, Weight

_MARKS = {Weight.FAULT: "fault", Weight.UNKNOWN: "cannot tell", Weight.NOTE: "note"}
_FRESH_CLONE = "Run it again with --checkout FOLDER: a fresh clone of the repository."
_TO_REPORT = (
    "Report a fault with the output of --json, unless a person has pushed to the branch by force "
    "or has changed the database."
)
_EXITS = {Weight.FAULT: 1, Weight.UNKNOWN: 2, Weight.NOTE: 0}


def exit_of(audits: Sequence[Audit]) -> int:
    """Return 1 if there is a fault, else 2 if something cannot be checked, else 0."""
    return _EXITS[max((each.weight for each in audits), default=Weight.NOTE)]


def lines_of(audits: Sequence[Audit], shown_max: int) -> Iterator[str]:
    """Yield the lines of a report; each queue shows at most `shown_max` findings, worst first."""
    for each in audits:
        commits, landings = _counted(each.commits, "commit"), _counted(each.landings, "landing")
        place = f"{commits} of {each.place}" if each.place else "no repository"
        yield f"{each.queue}: {landings}, {place}"
        for finding in each.findings[:shown_max]:
            rule = finding.rule
            yield f"  {_MARKS[rule.weight]}: {rule.title}: {finding.text}"
            if rule.weight is Weight.FAULT:
                yield f"    What holds otherwise: {rule.sentence}"
            elif rule.weight is Weight.UNKNOWN:
                yield f"    {_FRESH_CLONE}"
        if len(each.findings) > shown_max:
            yield f"  and {len(each.findings) - shown_max} more; --json has all"
    faults = sum(one.rule.weight is Weight.FAULT for each in audits for one in each.findings)
    yield f"{_counted(len(audits), 'queue')}, {_counted(faults, 'fault')}"
    if faults:
        yield _TO_REPORT


def _counted(count: int, noun: str) -> str:
    """Return `1 fault`, `2 faults`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def record_of(audits: Sequence[Audit]) -> dict[str, object]:
    """Return the same as one JSON value, with every finding."""
    worst = max((each.weight for each in audits), default=Weight.NOTE)
    return {
        "verdict": _MARKS[worst] if worst is not Weight.NOTE else "as promised",
        "queues": [
            {
                "queue": each.queue,
                "repository": each.place or None,
                "landings": each.landings,
                "commits": each.commits,
                "findings": [
                    {
                        "rule": one.rule.title,
                        "weight": _MARKS[one.rule.weight],
                        "text": one.text,
                        "pullRequest": one.pr,
                        "commit": one.commit,
                    }
                    for one in each.findings
                ],
            }
            for each in audits
        ],
    }
