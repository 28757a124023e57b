"""A target that stands on a tree without a passed test (docs/design/landing.md 10).

The merge call lands the members of a unit one by one, and CI ran on the tree after the last one. If
the unit stops half-way, nothing starts or lands, but for the rest of the unit, until the tip itself
has passed. A tip that fails is held as a broken target, and the pull request that mends it goes
first: no other one is tested on it, and none is blamed for it.
"""

from datetime import datetime, timedelta

from service.mergequeue.engine.culprits import breaker
from service.mergequeue.engine.inputs import Landed
from service.mergequeue.engine.model import MergeQueue, Run, RunStep, Tip
from service.mergequeue.engine.outputs import BuildTestBranch, PlacedWhy, Tell
from service.mergequeue.engine.planning import launching, reuse
from service.mergequeue.engine.reasons import NO_BLAME, HoldReason, Reason
from service.mergequeue.engine.records import UntestedTip
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import holds, line
from service.mergequeue.engine.state.draft import Draft, Finding
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.vocabulary import Sha

BUILDS_MAX = 5
"""Test branches of one tip that could not be made, after which it counts as failed."""

BUILD_AGAIN = timedelta(minutes=1)
"""Before the second try; doubled each time."""

_OURS = frozenset({HoldReason.UNTESTED_TIP})
_RED = frozenset({HoldReason.BASE_RED})


def note_landed(draft: Draft, run: Run, one: Landed) -> None:
    """Remember that the target stands on a part of a unit, or that it does not any more."""
    position, sha = one.position, one.sha
    step, known = run.steps[position - 1], draft.queue.untested
    if known is not None and known.run != run.id and one.tree != step.tree:
        # It landed beside the part of another unit, which is in the target still.
        draft.put_queue(replace(draft.queue, untested=_anew(known, sha)))
        return
    if is_tested(draft, run, step):
        _forget(draft, "the target has a tree that was tested")
        return
    is_more = known is not None and known.run == run.id
    before = (known.landed, known.entries) if known is not None and is_more else ((), ())
    member = run.members[position - 1]
    missing = tuple(entry.pr for entry in draft.own(run) if entry.pr != step.pr)
    is_held = known is not None and known.is_held
    landed, entries = (*before[0], step.pr), (*before[1], member.entry)
    tip = UntestedTip(sha, run.id, landed, entries, missing, is_held=is_held)
    draft.put_queue(replace(draft.queue, untested=tip))


def is_tested(draft: Draft, run: Run, step: RunStep) -> bool:
    """Return whether CI ran on the tree of this step, and it passed."""
    return step.tree == run.steps[-1].tree or reuse.has_passed(draft, step.tree)


def goes_before(draft: Draft, run: Run) -> bool:
    """Return whether a part of another unit is on the target, so that this run may not land."""
    known = draft.queue.untested
    return known is not None and known.run != run.id


def review(draft: Draft) -> None:
    """Hold the queue while its tip is not tested, and have the tip tested."""
    known, tip = draft.queue.untested, draft.queue.tip
    if known is None or tip is None:
        return
    if known.is_held and not _is_held(draft.queue):
        # A person has released it, or a pull request has passed on top of the tip.
        _forget(draft, "")
        return
    if draft.queue.landing is not None or holds.is_view_stale(draft.queue):
        return
    has_passed = any(_is_of(run, tip) and run.status is RunStatus.SUCCEEDED for run in _runs(draft))
    if has_passed or reuse.has_passed(draft, tip.tree):
        _forget(draft, "the tip has passed its tests")
    else:
        if known.tip != tip.sha:
            known = _anew(known, tip.sha)
        if known.failed and not breaker.is_open(draft.queue) and known.run not in draft.runs:
            # The pull request that passed on the tip has left before it landed.
            _hold_red(draft, known, draft.now)
            return
        _hold(draft, known)
        _test(draft, known, tip)


def failed(draft: Draft, run: Run, finding: Finding) -> None:
    """Hold the queue as one whose target fails: that is the fault of what landed."""
    draft.finish(run, breaker.end_of(finding), finding)
    names = tuple(check.name for check in finding.failed)
    _fails(draft, run, names, "" if finding.cause not in NO_BLAME else "no result")


def not_built(draft: Draft, run: Run, why: str) -> None:
    """Make the test branch of the tip again, later each time; after the last try it has failed."""
    draft.retire(run, Reason.BUILD_RETRY)
    known = draft.queue.untested
    if known is None or known.tip != run.base_tip.sha:
        return
    tries = known.tries + 1
    again = replace(known, tries=tries, try_at=draft.now + BUILD_AGAIN * 2 ** (tries - 1))
    draft.put_queue(replace(draft.queue, untested=again))
    if tries >= BUILDS_MAX:
        _fails(draft, run, tuple(name.name for name in run.required), why)


def is_mended_by(draft: Draft, run: Run) -> bool:
    """Return whether this try has passed on a tip of ours that fails."""
    known = draft.queue.untested
    if run.kind is not RunKind.TRY or known is None or not known.failed:
        return False
    (entry,) = draft.tested(run) or (None,)
    is_waiting = entry is not None and entry.state is EntryState.PENDING and not entry.held_by
    return is_waiting and draft.queue.tip == run.base_tip


def put_first(draft: Draft, run: Run) -> Run:
    """Let the pull request of such a try land first, by this run; return the run as it is then."""
    (entry,) = draft.tested(run)
    main = replace(run, kind=RunKind.MAIN)
    draft.put_run(main)
    known = draft.queue.untested
    if known is not None:
        # Until it has landed nothing else does, and nothing starts.
        draft.put_queue(replace(draft.queue, untested=replace(known, run=main.id)))
        holds.place_once(draft, holds.HoldRequest(HoldReason.UNTESTED_TIP, _story(known)))
    line.put_first(draft, entry, PlacedWhy.MENDS)
    launching.put_into(draft, draft.entries[entry.pr], main)
    return main


def _fails(draft: Draft, run: Run, names: tuple[str, ...], why: str) -> None:
    known = draft.queue.untested
    if known is None or known.tip != run.base_tip.sha:
        return
    _tell(draft, known)
    what = ", ".join(names)
    says = f"has no result of {what}: {why}" if why else f"fails {what}"
    red = replace(known, failed=names or ("",), says=says, try_at=None)
    draft.put_queue(replace(draft.queue, untested=red))
    _hold_red(draft, red, run.created_at)


def _hold_red(draft: Draft, known: UntestedTip, since: datetime) -> None:
    holds.release_all(draft, _OURS | _RED, "the tip did not pass its tests")
    text = f"the target {known.says}, since {_story(known)}"
    breaker.hold(draft, holds.HoldRequest(HoldReason.BASE_RED, text), since)


def _anew(known: UntestedTip, tip: Sha) -> UntestedTip:
    """Return the same of another tip, which is to be tested in its place."""
    return replace(known, tip=tip, failed=(), says="", is_held=False, tries=0, try_at=None)


def _hold(draft: Draft, known: UntestedTip) -> None:
    if not known.is_held:
        request = holds.HoldRequest(HoldReason.UNTESTED_TIP, _story(known))
        holds.place_once(draft, request)
        known = replace(known, is_held=True)
    if known != draft.queue.untested:
        draft.put_queue(replace(draft.queue, untested=known))


def _story(known: UntestedTip) -> str:
    landed = ", ".join(f"#{pr}" for pr in known.landed)
    missing = ", ".join(f"#{pr}" for pr in known.missing)
    if missing:
        return f"{landed} landed without {missing}; they were tested together"
    return f"{landed} landed without the rest of the tested batch"


def _test(draft: Draft, known: UntestedTip, tip: Tip) -> None:
    """Begin the test of the tip at once, whatever the slots and the state of the queue."""
    queue = draft.queue
    for run in _runs(draft):
        if not _is_of(run, tip):
            draft.retire(run, Reason.TARGET_MOVED)
    is_due = known.try_at is None or known.try_at <= draft.now
    required = queue.required
    if known.failed or _runs(draft) or not is_due or required is None or required.source is None:
        return
    _tell(draft, known)
    plan = launching.Plan(RunKind.TIP, (), (), tip, required.names)
    run = launching.launch(draft, plan, fresh=True)
    draft.request(
        BuildTestBranch(
            run=run.id,
            number=known.landed[-1],
            target=queue.branch,
            base_tip=tip,
            steps=(),
            known_trees=(),
            bisection=False,
        )
    )


def _tell(draft: Draft, known: UntestedTip) -> None:
    """Have the texts of the landed pull requests written anew."""
    for pr, entry in zip(known.landed, known.entries, strict=True):
        draft.request(Tell(pr, entry, EntryState.MERGED, Reason.LANDED))


def _forget(draft: Draft, why: str) -> None:
    """End all that a tip without a test has brought about."""
    for run in _runs(draft):
        has_passed = run.status is RunStatus.SUCCEEDED
        draft.retire(run, Reason.RUN_PASSED if has_passed else Reason.AHEAD_CHANGED)
    known = draft.queue.untested
    if known is not None:
        if known.is_held:
            _tell(draft, known)
        draft.put_queue(replace(draft.queue, untested=None))
        if known.failed:
            holds.release_all(draft, _RED, why)
    holds.release_all(draft, _OURS, why)


def _runs(draft: Draft) -> list[Run]:
    return draft.runs.of_kind(RunKind.TIP)


def _is_of(run: Run, tip: Tip) -> bool:
    return run.base_tip.sha == tip.sha


def _is_held(queue: MergeQueue) -> bool:
    return holds.has(queue, HoldReason.UNTESTED_TIP) or breaker.is_open(queue)
