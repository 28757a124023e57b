"""Judge tests in the transaction that changes their evidence (docs/design/detector.md 11).

The health of a test depends on the stored uploads and the settings alone, not on the order in which
they came, and not on what was judged before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

from service import sweeping
from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane
from service.locks import LocksByNumber
from service.notifications import notifications
from service.runtime import Runtime
from service.testhealth.detector import figures, health, history, noise, score
from service.testhealth.detector.health import Flag, Health
from service.testhealth.detector.history import Change
from service.testhealth.detector.index import Earlier, EvidenceIndex, Settling, TestFacts
from service.testhealth.detector.spans import Settled
from service.testhealth.operations import bad_machines, messages, records, ticket_issues
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.reports.uploads import EvidenceUpload
from service.testhealth.store import cases, repeats, uploads
from service.testhealth.store import states as test_states
from service.testhealth.store.cases import Place
from service.testhealth.store.index_cache import CachedIndex, IndexCache
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.states import (
    DETECTOR,
    CaseState,
    ChangeKind,
    StateChange,
)
from service.vocabulary import Health as Status

P = ParamSpec("P")
T = TypeVar("T")

KEPT_DAYS = 44
"""Whole days of which evidence is read; rows are kept a day longer."""

SETTLED_AFTER_DAYS = 29
"""Days of evidence that the fold needs from before the moment of settled conclusions."""

JUDGED_MAX = 500
"""Tests that one transaction judges; the rest follow within 60 s.

5,000 tests with a long history take a second, in which other transactions cannot write on SQLite.
"""

GONE = "All of its results have been deleted."


@dataclass(frozen=True, slots=True)
class RepositoryTests:
    """A transaction over the tests of a repository."""

    session: Tx
    runtime: Runtime
    context: RepositoryContext

    @property
    def place(self) -> Place:
        """The repository."""
        return Place(self.context.repository.org_id, self.context.repository.id)

    @property
    def sets(self) -> StoredSets:
        """The sets of passed tests, by key."""
        return StoredSets(
            self.session, self.runtime.store.caches.of(OutcomeSets), self.place.repository_id
        )

    @property
    def horizon(self) -> datetime:
        """The midnight before which evidence is not read."""
        return figures.beginning_of(figures.day_of(self.context.now) - KEPT_DAYS)


class JudgingLocks(LocksByNumber):
    """Serializes judging the tests of a repository within this process."""


async def run_serialized(
    runtime: Runtime,
    repository_id: int,
    change: Callable[Concatenate[Tx, P], tuple[T, CachedIndex | None]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> tuple[T, CachedIndex | None]:
    """Run a transaction that may judge tests of the repository; return its result after the commit.

    That is an answer, and the index to cache, None if no test was judged.

    Serializes judging per repository within this process: each transaction continues with the index
    that the one before has cached. The index is read before the transaction, because that takes
    seconds for a large repository, and other transactions could not write on SQLite meanwhile.
    """
    cache = runtime.store.caches.of(IndexCache)
    async with runtime.memory.of(JudgingLocks).of(repository_id):
        ready = await runtime.store.read(_made_ready, runtime, repository_id)
        if ready is not None:
            cache.put(repository_id, ready)
        result, kept = await runtime.store.run(change, *args, **kwargs)
        if kept is not None:
            cache.put(repository_id, kept)
    # Endpoints and the issue of a test report that its status has changed.
    runtime.wakeups.wake(notifications.TOPIC)
    outbox.wake(runtime.wakeups, (Lane.NOTICE,))
    return result, kept


def judge(
    tests: RepositoryTests,
    added: Iterable[EvidenceUpload],
    removed: Iterable[str] = (),
    repeated: Iterable[int] = (),
) -> EvidenceIndex:
    """Add and remove uploads as evidence, and judge the tests whose health may have changed.

    `repeated` are tests of which repeats have just been stored.

    Endpoints are notified of tests whose status has changed. Tests above `JUDGED_MAX` are left to
    `catch_up`; those that failed in the uploads are judged first. Return the index (`kept_of`).
    """
    place, added = tests.place, tuple(added)
    failed = {no for upload in added for no in upload.attempts}
    revision = cases.lock(tests.session, place.repository_id)
    index, touched = _opened(tests, revision.revision)
    before = None if index.scale is None else index.scale.clock
    noise_before = dict(index.noise)
    touched |= index.change(added, removed, tests.sets)
    if index.noise != noise_before:
        # Their events may be in no upload, so the index does not know what noise they hang on.
        touched |= repeats.failing(tests.session, place.repository_id)
    touched |= index.unjudged.union(repeated)
    now = _first_of(touched, failed)
    index.unjudged = touched - now
    _judge_all(tests, index, now)
    # Tests that are left to be judged have no state yet that could keep settled conclusions.
    if not index.unjudged:
        _settle_some(tests, index, max(1, JUDGED_MAX - len(now)))
    is_behind = bool(index.unjudged) or index.settling is not None
    if is_behind or revision.is_behind:
        cases.note_behind(tests.session, place.repository_id, is_behind=is_behind)
    _keep_noise(tests, index)
    clock = None if index.scale is None else index.scale.clock
    cases.note_evidence(tests.session, place.repository_id, clock)
    bad_machines.renew(tests.session, tests.runtime, tests.context, index, before)
    return index


def kept_of(tests: RepositoryTests, index: EvidenceIndex) -> CachedIndex:
    """Return what to cache after the commit; called when the transaction writes no more."""
    revision = cases.lock(tests.session, tests.place.repository_id)
    return CachedIndex(revision.revision, index)


def evidence_now(
    tests: RepositoryTests, nos: Iterable[int]
) -> tuple[CachedIndex, Mapping[int, health.Evidence]]:
    """Judge by all that is stored; return what to cache, and the evidence of some tests.

    Tests without any evidence are left out.
    """
    index = judge(tests, ())
    asked = sorted(nos)
    facts = _facts_of(tests, asked, _states(tests, asked))
    evidence = {no: index.evidence_of(no, facts[no]) for no in asked}
    return kept_of(tests, index), {no: each for no, each in evidence.items() if each is not None}


async def catch_up(runtime: Runtime) -> None:
    """Judge the tests that uploads have left, some in each transaction."""
    behind = await runtime.store.read(cases.repositories_behind)
    await sweeping.one_by_one(_catch_up_one(runtime, each) for each in behind)


async def _catch_up_one(runtime: Runtime, repository_id: int) -> None:
    is_behind = True
    while is_behind:
        is_behind, _ = await run_serialized(
            runtime, repository_id, _judge_more, runtime, repository_id
        )


def _judge_more(
    session: Tx, runtime: Runtime, repository_id: int
) -> tuple[bool, CachedIndex | None]:
    """Return whether the repository was behind, and what to cache."""
    if not cases.lock(session, repository_id).is_behind:
        return False, None
    tests = _tests_of(session, runtime, repository_id)
    return True, kept_of(tests, judge(tests, ()))


def _made_ready(session: Tx, runtime: Runtime, repository_id: int) -> CachedIndex | None:
    """Return the index of what is stored, without uploads that are too old; None without tests.

    No test is judged: those affected are left to the next transaction that judges.
    """
    revision = cases.revision_of(session, repository_id)
    if not revision:
        return None
    tests = _tests_of(session, runtime, repository_id)
    index, touched = _opened(tests, revision)
    index.unjudged |= touched
    _forget(tests, index)
    return CachedIndex(revision, index)


def _tests_of(session: Tx, runtime: Runtime, repository_id: int) -> RepositoryTests:
    repository = access.repository(session, repository_id)
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    return RepositoryTests(session, runtime, context)


def _first_of(touched: set[int], failed: set[int]) -> set[int]:
    """Return the tests that one transaction judges, first those that failed in an upload."""
    if len(touched) <= JUDGED_MAX:
        return touched
    return set(sorted(touched, key=lambda no: (no not in failed, no))[:JUDGED_MAX])


def _opened(tests: RepositoryTests, revision: int) -> tuple[EvidenceIndex, set[int]]:
    """Return the index of what is stored, and the tests to judge."""
    here, touched = tests.place.repository_id, set[int]()
    threshold = score.THRESHOLDS[tests.context.settings.sensitivity.value]
    kept = tests.runtime.store.caches.of(IndexCache).take(here)
    index = EvidenceIndex(threshold, _earlier(tests)) if kept is None else kept.index
    index.evidence.followed = test_states.flagged_or_stale(tests.session, here)
    index.evidence.followed |= repeats.failing(tests.session, here)
    if index.threshold != threshold:
        touched |= index.hold_against(threshold)
    if kept is not None and kept.revision == revision:
        return index, touched
    indexed = index.evidence.uploads
    stored = uploads.eligible(tests.session, here, figures.beginning_of(0))
    added = uploads.evidence(tests.session, tests.sets, stored - indexed.ids())
    # Uploads before the horizon are removed when they are settled, whether rows are left or not.
    gone = indexed.ids_since(tests.horizon) - stored
    return index, touched | index.change(added, gone, tests.sets)


def _earlier(tests: RepositoryTests) -> Earlier | None:
    """Return facts from before the horizon, None if the repository is younger."""
    days = test_states.noise_of(tests.session, tests.place.repository_id)
    first, horizon = min(days, default=None), tests.horizon.toordinal()
    if first is None or first >= horizon:
        return None
    until = horizon + noise.DAYS
    return Earlier(first, {day: measured for day, measured in days.items() if day < until})


def _settle_some(tests: RepositoryTests, index: EvidenceIndex, at_most: int) -> None:
    """Store what was concluded from evidence that is too old, of so many tests.

    The evidence is removed (`_forget`) when the conclusions of all tests are stored, by later
    transactions. If more evidence is too old by then, this begins anew.
    """
    going = index.going(tests.horizon)
    if not going:
        index.settling = None
        return
    begun = index.settling
    if begun is None or begun.going != going:
        begun = Settling(going, sorted(index.evidence.uploads.nos))
    _settle(tests, index, begun.left[:at_most])
    index.settling = Settling(going, begun.left[at_most:])


def _forget(tests: RepositoryTests, index: EvidenceIndex) -> None:
    """Remove evidence that is too old, once all conclusions from it are committed."""
    settled = index.settling
    if settled is None or settled.left or index.unjudged:
        return
    if settled.going == index.going(tests.horizon):
        index.settling = None
        index.unjudged |= index.forget(tests.horizon, tests.sets)


def _settle(tests: RepositoryTests, index: EvidenceIndex, nos: list[int]) -> None:
    at = tests.horizon + timedelta(days=SETTLED_AFTER_DAYS)
    states = _states(tests, nos)
    facts, put = _facts_of(tests, nos, states), list[CaseState]()
    for no in nos:
        judged, state = index.judge(no, facts[no]), states.get(no)
        if judged is None or state is None:
            continue
        settled = health.settled_at(judged, at, facts[no].settled)
        if state.settled is not None or settled != Settled(settled.at):
            put.append(replace(state, settled=settled))
    test_states.put(tests.session, tests.place, *put)


def _judge_all(tests: RepositoryTests, index: EvidenceIndex, nos: Iterable[int]) -> None:
    asked = sorted(nos)
    states = _states(tests, asked)
    facts = _facts_of(tests, asked, states)
    written = test_states.histories_of(tests.session, tests.place.repository_id, asked)
    noted: list[StateChange] = []
    put: list[CaseState] = []
    changed: list[tuple[CaseState, Status]] = []
    for no in asked:
        judged = index.judge(no, facts[no])
        before = states.get(no)
        after = _state(no, judged, before)
        if after is None:
            continue
        changes = () if judged is None else judged.history
        if judged is not None or before is not None:
            noted += _changes(tests, no, changes, written.get(no, ()), after)
        if after != before:
            put.append(after)
        was = Status.HEALTHY if before is None else before.value
        if after.value is not was:
            changed.append((after, was))
    test_states.note(tests.session, tests.place, *noted)
    test_states.put(tests.session, tests.place, *put)
    for after, was in changed:
        messages.tell_status(tests.session, tests.runtime, tests.context, after, was)
        ticket_issues.note_status(tests.session, tests.runtime, tests.context, after.no)


def _state(no: int, judged: Health | None, before: CaseState | None) -> CaseState | None:
    """Return the state of a test; None: it has no evidence and no state."""
    if judged is None:
        if before is None or before.value is Status.HEALTHY:
            return before
        return replace(before, value=Status.HEALTHY, reason=GONE, numbers=health.NO_NUMBERS)
    said = before or CaseState(no, Status.HEALTHY, "", judged.since)
    return replace(
        said,
        value=judged.value,
        reason=judged.reason,
        since=judged.since,
        is_stale=judged.is_stale,
        numbers=judged.numbers,
    )


def _changes(
    tests: RepositoryTests,
    no: int,
    changes: tuple[Change, ...],
    written: tuple[StateChange, ...],
    after: CaseState,
) -> Iterator[StateChange]:
    """Return the entries that the history lacks."""
    entries = [each.change for each in written]
    settled_at = after.settled.at if after.settled else None
    for change in history.to_append(entries, changes, settled_at):
        effective = history.effective(entries)
        entries.append(change)
        yield StateChange(
            no=no,
            at=change.at,
            written_at=tests.context.now,
            previous=effective[-1].value if effective else Status.HEALTHY,
            value=change.value,
            reason=change.reason,
            actor_kind=DETECTOR.kind,
            actor_login=DETECTOR.login,
            kind=ChangeKind.CORRECTED if change.is_correction else ChangeKind.CHANGED,
        )


def _states(tests: RepositoryTests, nos: Iterable[int]) -> Mapping[int, CaseState]:
    return test_states.states_of(tests.session, tests.place.repository_id, nos)


def _facts_of(
    tests: RepositoryTests, asked: list[int], states: Mapping[int, CaseState]
) -> Mapping[int, TestFacts]:
    """Return the facts of each test that are not in uploads."""
    here = tests.place.repository_id
    flags = test_states.flags_of(tests.session, here, asked)
    pasts = cases.pasts_of(tests.session, here, asked)
    repeated = repeats.repeats_of(tests.session, here, asked)
    return {
        no: TestFacts(
            flags=tuple(_flag(each) for each in flags.get(no, ())),
            settled=states[no].settled if no in states else None,
            first_run=pasts[no].first_run_at if no in pasts else None,
            has_passed=no in pasts and pasts[no].ever_passed,
            repeats=repeated.get(no, ()),
        )
        for no in asked
    }


def _flag(word: StateChange) -> Flag:
    """Return a flag, as it is in the history."""
    if word.kind is ChangeKind.UNFLAGGED:
        return Flag(word.written_at, Status.HEALTHY, word.actor_login)
    text = word.reason.partition(": ")[2]
    return Flag(word.written_at, word.value, word.actor_login, text)


def _keep_noise(tests: RepositoryTests, index: EvidenceIndex) -> None:
    evidence = index.evidence
    changed = [
        test_states.DayOfNoise(
            day, evidence.passing_by_day[day], evidence.verdicts_by_day[day], measured
        )
        for day, measured in index.noise.items()
        if index.noted.get(day) != measured
    ]
    test_states.put_noise(tests.session, tests.place, changed)
    index.noted = dict(index.noise)
