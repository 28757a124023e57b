"""Report what was found, for people and as JSON."""

from collections.abc import Sequence

from bot.cli import output
from bot.cli.verifying.judge import Judged, Verdict

NOT_CHECKED = "Not checked: what CI reported, who asked, who approved. The signer alone says it."
MARKS = ("proved", "refuted", "cannot tell")


def show(judged: Sequence[Judged], faults: Sequence[str]) -> None:
    """Print each commit with what was found; what holds is shown only of a single commit."""
    for fault in faults:
        output.line(f"refuted  {fault}")
    for each in judged:
        number = "" if each.number is None else f" #{each.number}"
        branch = "" if each.branch is None else f" on {each.branch}"
        output.line(f"{MARKS[each.verdict]}  {each.commit}{number}{branch}")
        for finding in each.findings:
            if finding.verdict or len(judged) == 1:
                output.line(f"  {MARKS[finding.verdict]}: {finding.text}")
        for weakness in each.weaknesses:
            output.line(f"  note: {weakness}")
    strangers = _strangers(judged)
    if strangers:
        output.line(f"Without evidence: {', '.join(strangers)}")
    output.line(NOT_CHECKED)


def _strangers(judged: Sequence[Judged]) -> list[str]:
    """Return the commits without evidence of a landing."""
    return [each.commit for each in judged if not each.came]


def record_of(
    judged: Sequence[Judged], faults: Sequence[str], verdict: Verdict
) -> dict[str, object]:
    """Return the same as one JSON value."""
    return {
        "verdict": MARKS[verdict],
        "faults": list(faults),
        "withoutEvidence": _strangers(judged),
        "notChecked": NOT_CHECKED,
        "commits": [
            {
                "commit": each.commit,
                "pullRequest": each.number,
                "branch": each.branch,
                "verdict": MARKS[each.verdict],
                "findings": [
                    {"verdict": MARKS[finding.verdict], "text": finding.text}
                    for finding in each.findings
                ],
                "weaknesses": list(each.weaknesses),
            }
            for each in judged
        ],
    }
