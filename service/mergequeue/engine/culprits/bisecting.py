"""Find the culprit of a failed run, with the runs that must agree before an entry is blamed.

docs/design/testing.md 8. The trees examined are the leading entries of the failed run on its own
base. Green proves entries, red bounds the search; when one unproven entry is left it is judged by
two failures of its tree. A run of one entry begins there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from service import check_reports
from service.mergequeue.engine.config import ConfirmFailures, OptimizationMode
from service.mergequeue.engine.culprits import failed_tests, optimism, verdict
from service.mergequeue.engine.model import Bisection, Detail, Entry, Member, Run
from service.mergequeue.engine.outputs import BisectionNarrowed, BisectionOpened, PlacedWhy
from service.mergequeue.engine.policy import policies
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.replacing import replace
from service.mergequeue.engine.state import bases, holds, leaving, line
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.vocabulary import CheckOutcome

RUNS_MAX = 3
"""Failed runs of one tree of which the last decides alone."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A run wanted of the first `cut` entries of a search."""

    bisection: Bisection
    cut: int
    kind: RunKind
    failed: Run


def bisect(draft: Draft) -> None:
    """Open the searches that are due, and draw what follows from what is known."""
    for bisection in list(draft.queue.bisections.values()):
        if bisection.lo == len(bisection.entries):
            # Whatever the target did meanwhile: a run that fails anew later is another search.
            leaving.close(draft, bisection, None, Reason.BISECTION_PASSED)
    if holds.is_view_stale(draft.queue):
        return
    if policies.policy_of(draft.queue.config).suspects(draft).are_searched:
        for run in _undecided(draft):
            if run.id in draft.runs and _is_due(draft, run):
                _open(draft, run)
    for bisection in list(draft.queue.bisections.values()):
        _advance(draft, bisection)


def probes_to_start(draft: Draft, slots: int) -> list[Probe]:
    """The runs that the searches need now, for at most so many slots, first of the line first."""
    probes: list[Probe] = []
    for bisection in sorted(draft.queue.bisections.values(), key=lambda one: _rank(draft, one)):
        free = slots - len(probes)
        if free < 1:
            break
        if bisection.probes or _is_delayed(draft, bisection):
            continue
        failed = draft.runs[bisection.run]
        if bisection.hi - bisection.lo > 1:
            cuts = cuts_of(bisection, min(free, bisection.hi - bisection.lo - 1))
            probes += [Probe(bisection, cut, RunKind.PROBE, failed) for cut in cuts]
        elif not _is_proven(draft, bisection):
            probes.append(Probe(bisection, bisection.hi, RunKind.CONFIRMATION, failed))
    return probes


def begun(draft: Draft, bisection_id: str, cut: int, run: Run) -> None:
    """A probe was started."""
    bisection = draft.queue.bisections[bisection_id]
    draft.put_bisection(replace(bisection, probes={**bisection.probes, cut: run.id}))


def green(draft: Draft, run: Run, reason: Reason = Reason.BISECTION_PASSED) -> None:
    """The first entries of a search passed: they are proven, and what is below needs no probe."""
    bisection = _of(draft, run)
    cut = _cut(bisection, run)
    probes = _without(bisection.probes, run)
    if cut <= bisection.lo:
        draft.put_bisection(replace(bisection, probes=probes))
        draft.retire(run, reason)
        return
    reds = {k: runs for k, runs in bisection.reds.items() if k > cut}
    proven = bisection.entries[bisection.lo : cut]
    narrowed = replace(bisection, lo=cut, hi=min(reds, default=cut), reds=reds, probes=probes)
    _narrow(draft, bisection, narrowed)
    prove(draft, run, proven, reason, is_sure=True)


def red(draft: Draft, run: Run) -> None:
    """The first entries of a search failed together."""
    _fails_by(draft, _of(draft, run), run, run)


def red_already(draft: Draft, run: Run, red: Run) -> None:
    """A probe would test what failed already: that failure counts for its entries too."""
    draft.retire(run, Reason.BISECTION_REQUIRED)
    _fails_by(draft, _of(draft, run), run, red)


def reopen(draft: Draft, run: Run) -> None:
    """A failed run that may still pass goes on: what it showed of its search is open again."""
    searched = draft.queue.bisections.get(run.bisection or "")
    if searched is None:
        return
    cut = len(run.entries)
    left = {
        at: kept
        for at, runs in searched.reds.items()
        if (kept := tuple(each for each in runs if each != run.id))
    }
    if cut <= searched.lo:
        draft.put_bisection(replace(searched, reds=left))
        draft.retire(run, Reason.FAILURE_TAKEN_BACK)
        return
    probes = {cut: run.id, **searched.probes}
    _narrow(draft, searched, replace(searched, hi=min(left), reds=left, probes=probes))


def lost(draft: Draft, run: Run, reason: Reason) -> None:
    """A probe ended without saying anything: another one is wanted."""
    bisection = _of(draft, run)
    draft.put_bisection(replace(bisection, probes=_without(bisection.probes, run)))
    draft.retire(run, reason)


def cuts_of(bisection: Bisection, count: int) -> tuple[int, ...]:
    """Return where to cut the open part so that its weight falls evenly into `count` + 1 parts.

    Ties go to the lower cut; cuts are distinct (docs/design/testing.md 8.1).
    """
    lo, hi = bisection.lo, bisection.hi
    weights = bisection.weights or (1.0,) * len(bisection.entries)
    total = sum(weights[lo:hi])
    cuts: list[int] = []
    for part in range(1, count + 1):
        wanted_weight = total * part / (count + 1)
        first = cuts[-1] + 1 if cuts else lo + 1
        last = hi - 1 - (count - part)
        cuts.append(
            min(
                range(first, last + 1),
                key=lambda k: (round(abs(sum(weights[lo:k]) - wanted_weight), 9), k),
            )
        )
    return tuple(cuts)


def _undecided(draft: Draft) -> list[Run]:
    """Return failed runs that are not examined yet, in line order."""
    numbers = sorted(draft.places.failing, key=lambda pr: draft.entries[pr].rank or 0)
    found = {
        entry.run: None
        for entry in map(draft.entries.__getitem__, numbers)
        if entry.bisection is None
    }
    return [draft.runs[run_id] for run_id in found if run_id is not None]


def _is_due(draft: Draft, run: Run) -> bool:
    # Most often something ahead has not passed yet, which is cheaper to see than a broken base.
    if run.status is not RunStatus.FAILED or not bases.is_sure(draft, run):
        return False
    return bases.broken(draft, run) is None and optimism.is_window_closed(draft, run)


def _open(draft: Draft, run: Run) -> None:
    own = draft.own(run)
    members = tuple(draft.member_of(entry) for entry in own)
    queue = draft.queue
    weights = run.evidence.weights if run.evidence is not None else {}
    bisection = Bisection(
        id=draft.name(f"bisection {queue.next_bisection}"),
        run=run.id,
        entries=members,
        base=tuple(one for one in run.members if one not in members),
        base_tip=run.base_tip,
        lo=0,
        hi=len(members),
        reds={len(members): (run.id,)},
        weights=tuple(weights.get(member.pr, 1.0) for member in members),
    )
    draft.put_queue(replace(queue, next_bisection=queue.next_bisection + 1))
    draft.put_bisection(bisection)
    together = 1 if len(own) > 1 else 0
    for entry in own:
        out = replace(
            entry,
            bisection=bisection.id,
            kept=False,
            batch=None,
            failed_batches=entry.failed_batches + together,
        )
        draft.put(out)
    if together:
        draft.record(BisectionOpened(bisection.id, run.id, tuple(entry.pr for entry in own)))


def _advance(draft: Draft, bisection: Bisection) -> None:
    undone = _is_gone(draft, bisection)
    undone = undone or bases.is_undone(draft, bisection, draft.runs[bisection.run])
    if undone is not None:
        leaving.abandon(draft, bisection, undone.reason, Detail(prs=undone.prs))
    elif _is_doubted(draft, bisection):
        # An entry that failed elsewhere after being proven here may be the culprit here too.
        return
    elif bisection.hi - bisection.lo == 1 and _is_proven(draft, bisection):
        _convict(draft, bisection)


def _is_gone(draft: Draft, bisection: Bisection) -> bases.Broken | None:
    """Return how a proven entry left or failed, so that what was proven on it says nothing."""
    made = bases.progress(draft, draft.runs[bisection.run])
    landed = made.landed if made is not None else frozenset()
    for member in bisection.entries[: bisection.lo]:
        entry = draft.entry_of(member)
        if entry is None and member.pr not in landed:
            final = draft.finished_entries.get(member.entry)
            is_failed = final is not None and final.state is EntryState.FAILED
            reason = Reason.AHEAD_FAILED if is_failed else Reason.AHEAD_CANCELLED
            return bases.Broken(reason, (member.pr,))
        if entry is not None and entry.state is EntryState.NOT_READY:
            return bases.Broken(Reason.AHEAD_OUT, (member.pr,))
    return None


def _is_doubted(draft: Draft, bisection: Bisection) -> bool:
    """Return whether it is not decided yet what becomes of a failure of a proven entry."""
    proven = map(draft.entry_of, bisection.entries[: bisection.lo])
    return any(one is not None and one.state is EntryState.PENDING_FAILURE for one in proven)


def _narrow(draft: Draft, before: Bisection, after: Bisection) -> None:
    """Keep what is known newly, and cancel the probes that can say nothing more."""
    kept = {}
    for cut, run_id in after.probes.items():
        if after.lo < cut < after.hi:
            kept[cut] = run_id
        else:
            draft.retire(draft.runs[run_id], Reason.BISECTION_REQUIRED)
    draft.put_bisection(replace(after, probes=kept))
    if (before.lo, before.hi) != (after.lo, after.hi) and len(after.entries) > 1:
        draft.record(BisectionNarrowed(after.id, after.run, after.lo, after.hi))


def _is_proven(draft: Draft, bisection: Bisection) -> bool:
    """Return whether the failed runs of this one tree are enough (docs/design/testing.md 8.2)."""
    runs = [draft.runs[run_id] for run_id in bisection.reds.get(bisection.hi, ())]
    # A failure taken over from more entries of an equal tree is not enough to convict.
    if not any(_cut(bisection, run) == bisection.hi for run in runs):
        return False
    confirm = draft.runs[bisection.run].config.confirm_failures
    is_single = len(bisection.entries) == 1 and confirm != ConfirmFailures.ALWAYS
    if (confirm == ConfirmFailures.OFF or is_single) and any(map(verdict.shows_failure, runs)):
        return True
    return _is_confirmed(draft, bisection) or len(runs) >= RUNS_MAX


def _is_confirmed(draft: Draft, bisection: Bisection) -> bool:
    """Return whether two failed runs of this tree agree, or one and the suspect's own head."""
    runs = [draft.runs[run_id] for run_id in bisection.reds.get(bisection.hi, ())]
    suspect = bisection.entries[bisection.hi - 1]
    if any(_fails_alone(draft, suspect, run) for run in filter(verdict.shows_failure, runs)):
        return True
    return any(_marks(one) & _marks(other) for one, other in combinations(runs, 2))


def _fails_alone(draft: Draft, suspect: Member, run: Run) -> bool:
    entry = draft.entry_of(suspect)
    return entry is not None and failed_tests.fails_alone(run, entry, _marks(run))


def _marks(run: Run) -> set[str]:
    """Return what failed in a run; a timeout counts as a status of its own that timeouts share."""
    if run.cause is Cause.TIMEOUT:
        return {Cause.TIMEOUT.value}
    return {check.name for check in verdict.failed_of(run)}


def _convict(draft: Draft, bisection: Bisection) -> None:
    runs = [draft.runs[run_id] for run_id in bisection.reds[bisection.hi]]
    suspect = draft.entries[bisection.entries[bisection.hi - 1].pr]
    proven = bisection.entries[: bisection.lo]
    together = bool(proven) and _passes_without(suspect, runs[-1])
    cause = Cause.INTERACTION if together else Cause.PR_FAULT
    for run in runs:
        if run.cause is None:
            draft.put_run(replace(run, cause=cause))
    reason, evidence = _blame(bisection, runs, together=together)
    evidence = replace(evidence, is_confirmed=_is_confirmed(draft, bisection))
    undecided = leaving.close(draft, bisection, suspect.pr, reason)
    behind = [entry for entry in undecided if entry.pr != suspect.pr]
    suspect = draft.entries[suspect.pr]
    leaving.leave_alone(draft, suspect, EntryState.FAILED, reason, evidence)
    back = Detail(run=bisection.run, prs=(suspect.pr,))
    leaving.come_back(
        draft, [leaving.Back(entry.pr, Reason.BISECTION_REQUIRED, back) for entry in behind]
    )


def _blame(bisection: Bisection, runs: Sequence[Run], *, together: bool) -> tuple[Reason, Detail]:
    # A run whose failed check runs again shows nothing now; another one is the evidence then.
    last = next((run for run in reversed(runs) if _marks(run)), runs[-1])
    checks = verdict.failed_of(last)
    proven = tuple(member.pr for member in bisection.entries[: bisection.lo])
    if together:
        text = f"with {', '.join(f'#{pr}' for pr in proven)}"
        return Reason.INTERACTION, Detail(text=text, run=last.id, checks=checks, prs=proven)
    timed_out = all(run.cause is Cause.TIMEOUT for run in runs)
    reason = Reason.RUN_TIMED_OUT if timed_out else Reason.REQUIRED_STATUS_FAILED
    ahead = (*(member.pr for member in last.base), *proven)
    return reason, Detail(run=last.id, checks=checks, prs=ahead)


def _passes_without(suspect: Entry, run: Run) -> bool:
    """Return whether the suspect is known to pass without those it fails with.

    See docs/design/testing.md 4.
    """
    if suspect.screened:
        return True
    counting = check_reports.counting(suspect.facts.own_checks)
    standings = [verdict.standing(one, counting) for one in run.required]
    return bool(standings) and all(one.outcome is CheckOutcome.PASSED for one in standings)


def _of(draft: Draft, run: Run) -> Bisection:
    """The search that a run belongs to, as a probe of it or as the run that failed."""
    known = draft.queue.bisections.get(run.bisection or "")
    if known is not None:
        return known
    return next(one for one in draft.queue.bisections.values() if one.run == run.id)


def skips_known(draft: Draft, run: Run) -> bool:
    """Return whether a probe may go by what is known of its tree: never a confirmation.

    See docs/design/testing.md 9.
    """
    mode = draft.queue.config.optimization_mode
    skips = mode is OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS
    return skips and run.kind is RunKind.PROBE


def known_red(draft: Draft, run: Run) -> Run | None:
    """The run of this search that failed with this very tree, if probes may go by it."""
    if not skips_known(draft, run) or not is_examining(draft, run):
        return None
    reds = [draft.runs[run_id] for group in _of(draft, run).reds.values() for run_id in group]
    same = (red for red in reds if red.steps and red.steps[-1].tree == run.steps[-1].tree)
    return next(same, None)


def _fails_by(draft: Draft, bisection: Bisection, run: Run, red: Run) -> None:
    """Record that what this probe tests is known to fail by that run."""
    cut = len(run.entries)
    probes = _without(bisection.probes, run)
    reds = {**bisection.reds, cut: (*bisection.reds.get(cut, ()), red.id)}
    narrowed = replace(bisection, hi=min(bisection.hi, cut), reds=reds, probes=probes)
    _narrow(draft, bisection, narrowed)


def is_examining(draft: Draft, run: Run) -> bool:
    """Return whether the run serves a search now and proves no entries."""
    return run.bisection is not None and not draft.own(run)


def undecided(draft: Draft, bisection: Bisection) -> tuple[Entry, ...]:
    """The entries that a search has not decided yet."""
    found = map(draft.entry_of, bisection.entries)
    return tuple(one for one in found if one is not None and one.bisection == bisection.id)


def _is_delayed(draft: Draft, bisection: Bisection) -> bool:
    """Return whether a probe was refused so lately that the next one has to wait."""
    waits = [entry.build_after for entry in undecided(draft, bisection)]
    return any(at is not None and at > draft.now for at in waits)


def _rank(draft: Draft, bisection: Bisection) -> int:
    ranks = [
        entry.rank or 0
        for member in bisection.entries
        if (entry := draft.entry_of(member)) is not None
    ]
    return min(ranks, default=0)


def _cut(bisection: Bisection, run: Run) -> int:
    """Return how many of the entries a run tests, without what landed of them before the search."""
    return len(run.entries) if run.bisection is not None else len(bisection.entries)


def _without(probes: Mapping[int, str], run: Run) -> dict[int, str]:
    return {cut: run_id for cut, run_id in probes.items() if run_id != run.id}


def prove(
    draft: Draft, run: Run, proven: Sequence[Member], reason: Reason, *, is_sure: bool = False
) -> None:
    """Proven entries land as they are, unless that would disturb others.

    With `is_sure` whatever is beneath them must have passed or landed; a run that is not
    judged yet is built on what is expected ahead of it. Entries whose failure was only foreseen
    keep their places all the same.

    See docs/design/testing.md 8.3; docs/design/early-failures.md 3.
    """
    entries = [draft.entries[member.pr] for member in proven]
    failed = draft.runs.get(entries[0].run or "")
    is_foreseen = failed is not None and failed.is_foreseen
    behind = () if is_foreseen else _behind(draft, run, entries)
    if is_foreseen:
        draft.taken_back.update(entry.pr for entry in entries)
    if behind or not _stands(draft, run, entries, is_sure=is_sure):
        _test_again(draft, run, entries, behind, reason)
        return
    _go_first(draft, entries)
    owners = [draft.entries[entry.pr] for entry in entries]
    for entry in owners:
        mine = replace(
            entry,
            run=run.id,
            verified_by=run.id,
            bisection=None,
            batch=run.number,
            fresh=False,
        )
        draft.move(mine, EntryState.TESTS_PASSED, reason, Detail(run=run.id))


def _test_again(
    draft: Draft, run: Run, entries: Sequence[Entry], others: tuple[int, ...], reason: Reason
) -> None:
    """Retest proven entries, behind what went ahead of them unless their failure was foreseen."""
    word = Reason.AHEAD_CHANGED if reason is Reason.LATE_SUCCESS else Reason.BISECTION_PASSED
    text = "its checks passed; others went ahead meanwhile, so it is tested behind them"
    detail = Detail(text=text, run=run.id, prs=others)
    come_back = leaving.come_back
    if draft.taken_back.issuperset(entry.pr for entry in entries):
        word, detail = Reason.FAILURE_TAKEN_BACK, Detail(run=run.id)
        come_back = leaving.keep_places
    for entry in entries:
        draft.put(replace(entry, bisection=None))
    come_back(draft, [leaving.Back(entry.pr, word, detail) for entry in entries])
    if run.id in draft.runs and not draft.own(run):
        draft.retire(run, word)


def _behind(draft: Draft, run: Run, entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return what meets these entries, and runs or has passed without them."""
    numbers = {member.pr for member in run.members} - {entry.pr for entry in entries}
    behind = []
    for node in bases.graph(draft).nodes:
        first = draft.entries[node.members[0].pr]
        if first.state is EntryState.PENDING or first.pr in numbers:
            continue
        members = [draft.entries[member.pr] for member in node.members]
        if any(bases.meets(draft, one, entry) for one in members for entry in entries):
            behind += [one.pr for one in members]
    return tuple(behind)


def _stands(draft: Draft, run: Run, entries: Sequence[Entry], *, is_sure: bool) -> bool:
    """Return whether what the run is built on is what is ahead of these entries now."""
    made = bases.progress(draft, run)
    if made is None or not bases.is_predicted(draft, run, made):
        return False
    proven = {entry.pr for entry in entries}
    beneath = [member for member in run.members if member.pr not in proven]
    left = tuple(one for one in beneath if one.pr not in made.landed)
    if is_sure and not all(bases.has_passed(draft, one) for one in left):
        return False
    counted_on = tuple(
        one
        for one in bases.ahead(draft, entries)
        if draft.entries[one.pr].state is not EntryState.PENDING
    )
    return left == counted_on


def _go_first(draft: Draft, entries: Sequence[Entry]) -> None:
    """Rank them before every pending entry that they meet."""
    rank = entries[0].rank or 0
    for node in bases.graph(draft).nodes:
        if node.rank > rank:
            return
        other = draft.entries[node.members[0].pr]
        if other.state is EntryState.PENDING and any(
            bases.meets(draft, other, entry) for entry in entries
        ):
            line.insert_before(draft, other, entries, PlacedWhy.PROVEN)
            return
