"""Why a risky pull request is tested alone first or is not, and why a failed one waits.

See docs/design/testing.md 11.
"""

from service.mergequeue.engine.explaining.conditions import Condition
from service.mergequeue.engine.explaining.risks import Why
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.policy import constants
from service.text import phrases
from service.text.phrases import Phrase, phrase

_ADMITTED = (
    f"it enters the line at once only while {100 * constants.ADMITTED_FREE_MIN:g} % of the test "
    f"slots are free and it is expected to disturb at most {constants.ADMITTED_DISTURBED_MAX:g} PR "
    f"by failing, or at most {constants.ADMITTED_FAILURES_MAX:g} failures are expected of all PRs "
    "under test"
)

_IN_THE_LINE: dict[Why, str] = {
    Why.IDLE_LINE: (
        f"no other PR waited for the line, and at most {constants.ADMITTED_FAILURES_MAX:g} "
        "failures were expected of all PRs under test"
    ),
    Why.URGENT: "it is urgent",
    Why.STACKED: "its head contains the PRs below it in its stack",
}
"""Why a risky pull request is not tested alone first."""


def alone_first(condition: Condition, _: MergeQueue) -> Phrase:
    """Return where a risky pull request is tested, alone first or in the line, and why."""
    why = Why(condition.word or Why.RISKY)
    chance = phrase("it fails with a chance of {} %", condition.count or 0)
    if why in _IN_THE_LINE:
        words = "it is tested in the line at once ({}, but " + _IN_THE_LINE[why] + ")"
        return phrase(words, chance)
    alone = phrase("it is tested alone first")
    if why is Why.HAS_FAILED:
        alone = phrase("it is tested alone until it passes or is rejected")
    reason = phrase("{}, above the limit of {} %", chance, condition.total or 0)
    if why is Why.OTHERS_WAIT:
        verb = "waits" if len(condition.prs) == 1 else "wait"
        reason += phrase(f", and {{}} {verb} for the line", phrases.few(condition.prs))
    elif why is Why.LINE_BUSY:
        reason += phrase(", and " + _ADMITTED)
    elif why is Why.HAS_FAILED:
        reason = phrase("a test run with it failed")
    if condition.prs and why is not Why.OTHERS_WAIT:
        alone = phrase("it is tested with {}, apart from the line", phrases.few(condition.prs))
    return alone + phrase(" ({})", reason)


def followers(condition: Condition, _: MergeQueue) -> Phrase:
    """Return the runs that a failed group waits for in the line, and why it waits."""
    if condition.met or not condition.prs:
        return phrase("no test run on top of it is awaited")
    are = phrases.are(condition.prs)
    words = phrase(f"{{}}, tested on top of it, {are} decided", phrases.few(condition.prs))
    why = "a pass clears this PR too; its failure is real with a chance of {} %, and waiting costs "
    why += "less than restarting their tests"
    return words + phrase(f" ({why})", condition.count or 0)
