"""Turn a queue's past into a history: changes, tests and durations from its rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.model import DEFAULT_PRIORITY, Entry, Run
from service.mergequeue.engine.reasons import CONVICTED, Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import Seen
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.engine.targets import Targets
from service.mergequeue.entry_rules.expressions import PATH_FUNCTIONS
from service.mergequeue.reasons.record import Ender
from service.mergequeue.simulation.history import GOOD, Arrival, Fate, History, history_of
from service.vocabulary import Sha

Head = tuple[int, Sha]
"""A pull request at one commit."""


@dataclass(frozen=True, slots=True)
class Past:
    """Ended submissions and runs of one queue, oldest first.

    `ready_at` is when each entry, by id, was ready first; one that never was is left out. `targets`
    are those uploaded for a head.
    """

    entries: tuple[Entry, ...]
    runs: tuple[Run, ...]
    ready_at: Mapping[str, datetime]
    targets: Mapping[Head, Targets]


def history_of_past(past: Past) -> History:
    """The past as a simulation takes it.

    FAILED by its own verdict: the change breaks; by `interaction`: together with the pull
    requests named; refused at building or landing: it conflicts. A head that FAILED and merged
    later unchanged is good. A failed run all of whose heads merged unchanged, base included,
    counts as a flake. Durations are those of tests that ended in their first attempt.
    """
    merged = {(one.pr, one.head) for one in past.entries if one.state is EntryState.MERGED}
    taken: defaultdict[Sha, list[float]] = defaultdict(list)
    durations = []
    passed = flaky = 0
    for run in past.runs:
        seconds = _seconds_of(run)
        if seconds is None:
            continue
        is_flake = run.status is RunStatus.FAILED and _heads_of(run) <= merged
        passed += run.status is RunStatus.SUCCEEDED
        flaky += is_flake
        durations.append(seconds)
        for member in run.entries:
            taken[member.head].append(seconds)
    arrivals = [
        _arrival(past, one, merged, taken[one.head])
        for one in past.entries
        if one.id in past.ready_at
    ]
    return history_of(arrivals, durations, flaky / (passed + flaky) if flaky else 0.0)


def _arrival(past: Past, entry: Entry, merged: set[Head], seconds: Sequence[float]) -> Arrival:
    head = (entry.pr, entry.head)
    seen, unknown = _seen_of(entry.facts)
    is_withdrawn = entry.state is EntryState.CANCELLED and not _is_by_ci(entry.reason)
    return Arrival(
        at=past.ready_at[entry.id],
        pr=entry.pr,
        head=entry.head,
        author=entry.facts.author,
        priority=entry.priority if _is_by_person(entry) else None,
        no_batch=entry.no_batch,
        targets=entry.targets or past.targets.get(head),
        fate=GOOD if head in merged else _fate_of(entry),
        ci_s=sum(seconds) / len(seconds) if seconds else None,
        submitted_by=entry.submitted_by,
        contains_tip=entry.reason is Reason.LANDED_DIRECTLY,
        cancelled_at=entry.state_since if is_withdrawn else None,
        seen=seen,
        unknown=unknown,
    )


def _is_by_person(entry: Entry) -> bool:
    """Return whether a person gave the priority: neither a rule nor the default would give it."""
    usual = (DEFAULT_PRIORITY, entry.facts.ruled.priority)
    return entry.is_priority_given or entry.priority not in usual


def _seen_of(facts: Facts) -> tuple[Seen, frozenset[str]]:
    """Return the pull request as rules see it, and what is not known of it."""
    if facts.seen is not None:
        return facts.seen, frozenset(PATH_FUNCTIONS)
    unknown = {*PATH_FUNCTIONS, "branch", "labels", "auto_merge", "depends_on"}
    if facts.approvals is None:
        unknown.add("approvals")
    seen = Seen(
        number=facts.pr,
        title=facts.title,
        author=facts.author,
        branch="",
        base=facts.base,
        labels=(),
        approvals=tuple(sorted(one.login for one in facts.approvals or ())),
        draft=facts.draft,
        fork=facts.is_fork,
        auto_merge=False,
    )
    return seen, frozenset(unknown)


def _fate_of(entry: Entry) -> Fate:
    if entry.state is not EntryState.FAILED:
        return GOOD
    if entry.reason is Reason.INTERACTION:
        partners = frozenset(entry.detail.prs) - {entry.pr}
        return Fate(breaks=not partners, breaks_with=partners)
    is_broken = entry.reason in CONVICTED
    return Fate(breaks=is_broken, conflicts=not is_broken)


def _is_by_ci(reason: Reason) -> bool:
    """Return whether no person requested a cancellation and no change caused it."""
    return reason.record.cancelled is not None and reason.record.cancelled.by is Ender.CI


def _heads_of(run: Run) -> set[Head]:
    return {(member.pr, member.head) for member in (*run.base, *run.entries)}


def _seconds_of(run: Run) -> float | None:
    """Return how long its test took; None without a test that ran once and ended."""
    ended = run.failed_at or run.finished_at
    is_tested = run.kind is not RunKind.DIRECT and run.reused_from is None and not run.contained
    has_ended = run.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)
    if not is_tested or not has_ended or run.attempt > 1 or run.built_at is None or ended is None:
        return None
    return max((ended - run.built_at).total_seconds(), 0.0)
