"""Why a queue is stopped: one text per hold reason and per state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.culprits.breaker import CHECK
from service.mergequeue.engine.explaining.acting import Acting
from service.mergequeue.engine.model import Hold, MergeQueue
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON, HoldReason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.wording import endings
from service.text import markdown, phrases, times
from service.text.phrases import Code, Phrase, phrase

ALL_BRANCHES = Code("headgate/**/*")
DOCTOR = phrase("{}", Code("headgate doctor"))
_TRIES = " Headgate tests single PRs, at least one every 15 min, and continues when one passes."
_RESUME = phrase("A maintainer resumes the queue with {}.", Code("/merge resume"))
_STOPPED = " The queue stopped itself; a person must check what happened."


@dataclass(frozen=True, slots=True)
class Held:
    """A hold with the other inputs of its sentence."""

    hold: Hold
    target: str
    now: datetime


def message(hold: Hold, target: str, now: datetime) -> str:
    """Return why the hold exists and who lifts it, as plain sentences."""
    return markdown.plain(text(hold, target, now))


def text(hold: Hold, target: str, now: datetime) -> Phrase:
    """Return why the hold exists and who lifts it, in whole sentences."""
    held = Held(hold, target, now)
    words = HOLDS[hold.reason]
    found = [_filled(words, held) if isinstance(words, str) else words(held)]
    if hold.evidence:
        found.append(phrase("Evidence: {}.", hold.evidence))
    if hold.reason in LIFTED_BY_PERSON:
        found.append(phrase("An admin releases the hold with {}.", Code("headgate queue release")))
    return phrases.joined(found)


def standstill(queue: MergeQueue, now: datetime) -> Phrase:
    """Everything that keeps the queue from moving, in sentences; empty while it moves."""
    return phrases.joined([state_text(queue, now), texts(queue.holds, queue.branch, now)])


def texts(found: Sequence[Hold], target: str, now: datetime) -> Phrase:
    """Several holds in sentences."""
    return phrases.joined([text(hold, target, now) for hold in found])


def stop(acting: Acting, target: str, now: datetime) -> str:
    """Return what of the queue stops an entry, as plain sentences; empty for nothing."""
    found = []
    if acting.stopped is not None:
        found.append(f"The queue is {STATE_NOW[acting.stopped]}.")
    if acting.hold is not None:
        found.append(message(acting.hold, target, now))
    return " ".join(found)


def state_text(queue: MergeQueue, now: datetime) -> Phrase:
    """`Paused by bob at 13:50 UTC: …`; empty for a running queue."""
    match queue.state:
        case QueueState.RUNNING:
            return Phrase()
        case QueueState.PAUSED:
            paused = phrases.joined([phrase("Paused"), circumstances(queue, now)])
            return paused + phrase(". ") + _RESUME
        case QueueState.DRAINING:
            rest = "Tested PRs still merge; no new tests start."
            drains = phrases.joined([phrase("Set to drain"), circumstances(queue, now)])
            return drains + phrase(f". {rest} ") + _RESUME
        case QueueState.SWITCHING_MODES:
            mode = (queue.target_mode or Mode.SINGLE).value.lower()
            return phrase(f"Switching to {mode} mode; tested PRs merge first.")
        case _:
            assert_never(queue.state)


def circumstances(queue: MergeQueue, now: datetime) -> Phrase:
    """`by bob at 13:50 UTC: reason`, as far as it is known."""
    who, at, why = Phrase(), Phrase(), Phrase()
    if queue.state_by is not None and queue.state_by.login:
        who = phrase("by {}", phrases.actor(queue.state_by))
    if queue.state_since is not None:
        at = Phrase((f"at {times.clock_time(queue.state_since, now)}",))
    if queue.state_reason:
        why = phrase("{}", phrases.quoted(queue.state_reason))
    return phrases.joined([phrases.joined([who, at]), why], ": ")


def _freeze(held: Held) -> Phrase:
    hold = held.hold
    until = (
        f"until {times.clock_time(hold.until, held.now)}"
        if hold.until
        else (f"since {times.clock_time(hold.since, held.now)}")
    )
    who = phrase(" by {}", phrases.actor(hold.by)) if hold.by.login else Phrase()
    why = phrase(": {}", phrases.quoted(hold.text)) if hold.text else Phrase()
    return phrase("Frozen{} " + until + "{}.", who, why)


def _limited(held: Held) -> Phrase:
    """No detail: the sentence says what the provider's limits mean."""
    until = held.hold.until
    when = (
        f"before {times.clock_time(until, held.now)}" if until else "until GitHub allows more calls"
    )
    return phrase(f"GitHub's limits for the App are used up. No test starts {when}.")


def _filled(words: str, held: Held) -> Phrase:
    """A template with `{target}`, `{since}` and `{doctor}`, then what the queue noted."""
    since = Phrase((times.clock_time(held.hold.since, held.now),))
    fields: dict[str, str | Phrase] = {"target": held.target, "since": since, "doctor": DOCTOR}
    return _quoted(phrases.filled(words, lambda name, _: fields[name]), held)


def _repeated(held: Held) -> Phrase:
    """Name the check that alone failed, and the setting for one that judges pull requests."""
    words = "3 unrelated PRs failed in the same way, so the cause is {target} or CI." + _TRIES
    said, evidence = _filled(words, held), held.hold.evidence or ""
    if not evidence.startswith(CHECK):
        return said
    setting = phrase(
        "Each time {} failed, which did not fail on the PRs' own heads. If it judges the PR "
        "(title, labels, reviews) and not its tree, an admin adds it to {}.",
        Code(evidence.removeprefix(CHECK)),
        Code("headOnlyStatuses"),
    )
    return phrases.joined([said, setting])


def _quoted(sentence: Phrase, held: Held) -> Phrase:
    hold = held.hold
    if endings.is_code(hold.text) or hold.reason in _SAY_ALL:
        return sentence
    return phrases.joined([sentence, phrase("Details: {}.", phrases.quoted(hold.text))])


def _refused(words: str, step: Phrase) -> Callable[[Held], Phrase]:
    def refused(held: Held) -> Phrase:
        said = held.hold.text
        quoted = phrase(".") if endings.is_code(said) else phrase(": {}.", phrases.quoted(said))
        what = phrase(words) + quoted
        return phrases.joined([what, step])

    return refused


HOLDS: dict[HoldReason, str | Callable[[Held], Phrase]] = {
    HoldReason.FREEZE: _freeze,
    HoldReason.BASE_RED: "{target} itself fails its required checks." + _TRIES,
    HoldReason.REPEATED_FAILURE: _repeated,
    HoldReason.CI_UNHEALTHY: "CI gave no result 3 times in a row." + _TRIES,
    HoldReason.REQUIRED_STATUSES_MISSING: (
        "No required checks are known for {target}. Add one in branch protection, or set required "
        "checks for the queue."
    ),
    HoldReason.REQUIRED_STATUSES_UNREADABLE: (
        "The required checks of {target} cannot be read. Until they can, no test starts and no "
        "PR merges. An admin finds the cause with {doctor}."
    ),
    HoldReason.CONFIG_INVALID: (
        "GitHub cannot do what a setting of this queue asks for. A maintainer changes the setting."
    ),
    HoldReason.RULE_DENIED: _refused(
        "GitHub refused to merge a PR",
        phrase("Headgate retries every 15 min and when the rules change."),
    ),
    HoldReason.PERMISSION_LOST: (
        "The App is suspended or lacks a permission; an owner of the repository can restore it."
    ),
    HoldReason.PROVIDER_UNAVAILABLE: (
        "GitHub has been unreachable since {since}. Headgate tries again automatically."
    ),
    HoldReason.PROVIDER_LIMIT: _limited,
    HoldReason.REPOSITORY_UNAVAILABLE: (
        "The repository is archived or gone. Headgate continues when it can use it again."
    ),
    HoldReason.TEST_BRANCH_DENIED: _refused(
        "GitHub refuses Headgate's test branches",
        phrase(
            "Exclude the branches {} from that rule by pattern: these are the test branches and "
            "the branches on which they are built.",
            ALL_BRANCHES,
        ),
    ),
    HoldReason.STRICT_CHECKS: _refused(
        "The rules of this branch only let pull requests merge that contain its newest commit, "
        "so GitHub refused the merge",
        phrase(
            "Turn off {} in the branch protection or ruleset: the queue itself tests every pull "
            "request on the newest commit. The merge is tried again every 15 min and when the "
            "rules change.",
            Code("Require branches to be up to date before merging"),
        ),
    ),
    HoldReason.METHOD_DENIED: _refused(
        "The branch or the repository does not allow the merge method of this queue",
        phrase(
            "Set another {} for the queue, or allow the method. The merge is tried again every "
            "15 min and when the rules change.",
            Code("mergeMethod"),
        ),
    ),
    HoldReason.PROVIDER_QUEUE: (
        "{target} uses GitHub's merge queue. Remove that rule to use Headgate here."
    ),
    HoldReason.TARGET_MISSING: (
        "{target} no longer exists. Headgate continues when the branch is there again."
    ),
    HoldReason.RECOVERING: ("Headgate restarted and is checking what happened in the meantime."),
    HoldReason.UNTESTED_TIP: (
        "{target} has a tree that no test run had: only a part of a tested unit has merged. "
        "Headgate tests {target} now. Until it passes, no test starts, and only the rest of that "
        "unit merges."
    ),
    HoldReason.LANDING_MISMATCH: "What landed on {target} is not what was tested." + _STOPPED,
    HoldReason.LANDING_UNRESOLVED: (
        "Headgate sent a merge into {target} and cannot tell whether it happened." + _STOPPED
    ),
    HoldReason.INVARIANT_BREACH: "Headgate detected an internal error." + _STOPPED,
    HoldReason.TARGET_REWRITTEN: (
        "The history of {target} was rewritten, so commits may be gone." + _STOPPED
    ),
    HoldReason.FOREIGN_DEPLOYMENT: (
        "Another Headgate installation also manages {target}." + _STOPPED
    ),
}
"""Every hold reason."""

STATE_NOW = {
    QueueState.RUNNING: "running",
    QueueState.PAUSED: "paused",
    QueueState.DRAINING: "draining",
    QueueState.SWITCHING_MODES: "switching its mode",
}
"""The present activity of a queue, by state."""

STATE_VERBS = {
    QueueState.RUNNING: "resumed",
    QueueState.PAUSED: "paused",
    QueueState.DRAINING: "drains",
    QueueState.SWITCHING_MODES: "switches its mode",
}
"""The verb for a change to each state."""

# Their own sentence says what the queue noted, and better.
_SAY_ALL = frozenset(
    {
        HoldReason.PROVIDER_QUEUE,
        HoldReason.REQUIRED_STATUSES_MISSING,
        HoldReason.TARGET_MISSING,
        HoldReason.LANDING_MISMATCH,
        HoldReason.TARGET_REWRITTEN,
    }
)

STATE_WORDS = {
    QueueState.RUNNING: "",
    QueueState.PAUSED: "queue paused",
    QueueState.DRAINING: "draining",
    QueueState.SWITCHING_MODES: "switching mode",
}
