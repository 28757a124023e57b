"""Refuse a head that has failed before, and a submitter who has used up a budget.

See docs/design/budgets.md.
"""

from datetime import timedelta

from service.mergequeue.engine import past as pasts
from service.mergequeue.engine import submitters, targets
from service.mergequeue.engine.culprits import breaker
from service.mergequeue.engine.inputs import Restart, Submit
from service.mergequeue.engine.model import Entry, LandedStep, MergeQueue
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.past import Blamed, Limits, Over, Past
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import Actor, ActorKind, Channel

LANDINGS_MAX = 16
"""Landings after which a head may be tested again, however often it has failed."""


def refusal_of(draft: Draft, one: Submit) -> Refused | None:
    """Return why this head does not enter now, None if it may."""
    blamed = one.past.blamed
    missing = 0 if blamed is None or one.again else _landings_missing(draft, one, blamed)
    if blamed is not None and missing:
        text = f"head {one.facts.head} failed in test run {blamed.number}"
        return Refused(Reason.FAILED_BEFORE, text, blamed=replace(blamed, missing=missing))
    return _refused(_over(draft, one.actor, one.facts, one.past))


def refusal_of_restart(draft: Draft, one: Restart, entry: Entry) -> Refused | None:
    """Return why its tests are not restarted: the CI minutes of its submitter are used up."""
    return _refused(_over(draft, entry.submitted_by, entry.facts, one.past, enters=False))


def _refused(over: Over | None) -> Refused | None:
    if over is None:
        return None
    return Refused(Reason.OVER_BUDGET, f"{over.submitter}: {over.used} of {over.limit}", over=over)


def _landings_missing(draft: Draft, one: Submit, blamed: Blamed) -> int:
    """Return how many landings must come before the head may pass; 0: it may pass now.

    See docs/design/budgets.md 1.
    """
    queue = draft.queue
    required = queue.required
    if required is None or not pasts.are_same(required.names, blamed.required):
        return 0
    if one.taken_back == blamed.run or _was_in_outage(queue, blamed):
        return 0
    if blamed.timeout_min and queue.config.testing_timeout_minutes > blamed.timeout_min:
        return 0
    moves = _moves_since(queue, blamed)
    if moves is None:
        return 0
    touching = [move for move in moves if targets.meet(one.targets, move.targets)]
    needed: int = min(2 ** (blamed.times - 1), LANDINGS_MAX)
    return max(0, needed - len(touching))


def _was_in_outage(queue: MergeQueue, blamed: Blamed) -> bool:
    """Return whether the breaker held the queue for a run that began around the blamed one."""
    since = queue.breaker.since
    return since is not None and abs(since - blamed.began) <= breaker.WINDOW


def _moves_since(queue: MergeQueue, blamed: Blamed) -> list[LandedStep] | None:
    """Return the moves that changed the target since its content was the base of the blamed run.

    None if they are not known: too many, or the base never became the target.
    """
    if queue.tip is None:
        return None
    if queue.tip.tree == blamed.base.tree:
        return []
    for place in reversed(range(len(queue.landed))):
        move = queue.landed[place]
        is_after = move.tree == blamed.base.tree
        if is_after or move.before == blamed.base.sha != move.sha:
            return _changing(queue.landed[place + is_after :], blamed)
    return None


def _changing(moves: tuple[LandedStep, ...], blamed: Blamed) -> list[LandedStep]:
    trees = (blamed.base.tree, *(move.tree for move in moves))
    return [move for before, move in zip(trees, moves, strict=False) if move.tree != before]


def _over(
    draft: Draft, actor: Actor, facts: Facts, past: Past, *, enters: bool = True
) -> Over | None:
    """Return the budget that one more would exceed, that of the queue first."""
    if actor.channel is Channel.SYSTEM:
        # A revert of Headgate's own.
        return None
    config, spent = draft.queue.config, past.spent
    of_queue = Limits(config.open_entries_per_submitter, config.ci_minutes_per_submitter)
    of_token = past.token if actor.kind is ActorKind.TOKEN else Limits()
    submitter = submitters.identity_of(actor, facts.author)
    here = sum(
        entry.pr != facts.pr and submitters.submitter_of(entry) == submitter
        for entry in draft.entries.values()
    )
    tomorrow = draft.now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    shown = actor.login if actor.kind is ActorKind.TOKEN else submitter
    for limits, used, minutes, is_token in (
        (of_queue, here, spent.minutes, False),
        (of_token, here + spent.open_elsewhere, spent.minutes_in_all, True),
    ):
        if enters and limits.open_entries and used >= limits.open_entries:
            return Over(shown, used, limits.open_entries, is_token)
        if limits.ci_minutes and minutes >= limits.ci_minutes:
            return Over(shown, int(minutes), limits.ci_minutes, is_token, tomorrow)
    return None
