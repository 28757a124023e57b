"""Tests judged in the transaction that changes their evidence (FLAKY.md 6.3, 6.6).

What a test is said to be hangs on the uploads that are stored and on nothing else: not on the
order in which they came, and not on what was said before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

from service.accounts.store import access
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import figures, health, history, noise, score
from service.testhealth.detector.health import Flag, Health
from service.testhealth.detector.history import Change
from service.testhealth.detector.spans import Settled
from service.testhealth.detector.standing import Earlier, Known, Settling, Standing
from service.testhealth.operations import messages, records, ticket_issues
from service.testhealth.operations.records import Home
from service.testhealth.reports.uploads import EvidenceUpload
from service.testhealth.store import cases, uploads
from service.testhealth.store import states as test_states
from service.testhealth.store.cases import Place
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.standings import KeptStanding, Standings
from service.testhealth.store.states import (
    DETECTOR,
    CaseState,
    ChangeKind,
    StateChange,
    StoredSettled,
)
from service.vocabulary import Health as Status

P = ParamSpec("P")
T = TypeVar("T")

KEPT_DAYS = 44
"""Whole days of which evidence is read; rows stay a day longer (FLAKY.md 4)."""

SETTLED_AFTER_DAYS = 29
"""Evidence that the fold needs from before a moment as of which it was settled."""

JUDGED_MAX = 500
"""Tests that one transaction judges; the rest follow within 60 s.

FLAKY.md 6.6 allows 5,000; with a long history so many take a second, in which nobody else writes
on SQLite.
"""

GONE = "No run of it is known any more."


@dataclass(frozen=True, slots=True)
class RepositoryTests:
    """A transaction over the tests of a repository."""

    session: Tx
    runtime: Runtime
    home: Home

    @property
    def place(self) -> Place:
        """Whose tests they are."""
        return Place(self.home.repository.org_id, self.home.repository.id)

    @property
    def sets(self) -> StoredSets:
        """Sets of passed tests, by key."""
        return StoredSets(
            self.session, self.runtime.store.caches.of(OutcomeSets), self.place.repository_id
        )

    @property
    def horizon(self) -> datetime:
        """The midnight before which nothing is read."""
        return figures.beginning_of(figures.day_of(self.home.now) - KEPT_DAYS)


async def alone(
    runtime: Runtime,
    repository_id: int,
    change: Callable[Concatenate[Tx, P], tuple[T, KeptStanding | None]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> tuple[T, KeptStanding | None]:
    """Run a transaction that may judge tests of the repository: what it returns, after the commit.

    That is what it found, and what it would keep, None where it judged nobody.

    Whatever judges comes through here, one after the other inside this process: each goes on
    from what the one before it has kept. What is read or let go of for that, seconds' worth for
    a large repository that nobody judged here before, is read before the transaction, which
    keeps everybody else from writing on SQLite.
    """
    standings = runtime.store.caches.of(Standings)
    async with runtime.upload_gates.of(repository_id):
        ready = await runtime.store.read(_made_ready, runtime, repository_id)
        if ready is not None:
            standings.put(repository_id, ready)
        found, kept = await runtime.store.run(change, *args, **kwargs)
        if kept is not None:
            standings.put(repository_id, kept)
    return found, kept


def judge(
    tests: RepositoryTests, added: Iterable[EvidenceUpload], removed: Iterable[str] = ()
) -> Standing:
    """Let uploads count or count no more; how tests stand now (`kept_of`).

    Every test is judged whose health may be another by that, and endpoints are told of those
    whose status is. Those above `JUDGED_MAX` are left to `catch_up`, tests of the uploads last.
    """
    place, added = tests.place, tuple(added)
    failed = {no for upload in added for no in upload.attempts}
    revision = cases.lock(tests.session, place.repository_id)
    standing, touched = _opened(tests, revision.revision)
    touched |= standing.change(added, removed, tests.sets)
    touched |= standing.unjudged
    now = _first_of(touched, failed)
    standing.unjudged = touched - now
    _judge_all(tests, standing, now)
    # Who is left to be judged has no state yet that could keep what is forgotten.
    if not standing.unjudged:
        _settle_some(tests, standing, max(1, JUDGED_MAX - len(now)))
    is_behind = bool(standing.unjudged) or standing.settling is not None
    if is_behind or revision.is_behind:
        cases.note_behind(tests.session, place.repository_id, is_behind=is_behind)
    _keep_noise(tests, standing)
    clock = None if standing.scale is None else standing.scale.clock
    cases.note_evidence(tests.session, place.repository_id, clock)
    return standing


def kept_of(tests: RepositoryTests, standing: Standing) -> KeptStanding:
    """What to keep once this is committed; asked when nothing more will be written."""
    revision = cases.lock(tests.session, tests.place.repository_id)
    return KeptStanding(revision.revision, standing)


def evidence_now(
    tests: RepositoryTests, nos: Iterable[int]
) -> tuple[KeptStanding, Mapping[int, health.Evidence]]:
    """How tests stand by all that is stored, what to keep, and the evidence of some of them.

    Tests without any evidence are left out.
    """
    standing = judge(tests, ())
    asked = sorted(nos)
    known = _known(tests, asked, _states(tests, asked))
    found = {no: standing.evidence(no, known[no]) for no in asked}
    return kept_of(tests, standing), {no: each for no, each in found.items() if each is not None}


async def catch_up(runtime: Runtime) -> None:
    """Judge the tests that uploads have left, some in each transaction (FLAKY.md 6.6)."""
    for repository_id in await runtime.store.read(cases.repositories_behind):
        is_behind = True
        while is_behind:
            is_behind, _ = await alone(runtime, repository_id, _judge_more, runtime, repository_id)


def _judge_more(
    session: Tx, runtime: Runtime, repository_id: int
) -> tuple[bool, KeptStanding | None]:
    """Whether the repository was behind, and what to keep of it then."""
    if not cases.lock(session, repository_id).is_behind:
        return False, None
    tests = _tests_of(session, runtime, repository_id)
    return True, kept_of(tests, judge(tests, ()))


def _made_ready(session: Tx, runtime: Runtime, repository_id: int) -> KeptStanding | None:
    """How tests stand by what is stored, nothing of which is too old; None: there are none.

    Nobody is judged here: who must be for it is left to who judges next.
    """
    revision = cases.revision_of(session, repository_id)
    if not revision:
        return None
    tests = _tests_of(session, runtime, repository_id)
    standing, touched = _opened(tests, revision)
    standing.unjudged |= touched
    _forget(tests, standing)
    return KeptStanding(revision, standing)


def _tests_of(session: Tx, runtime: Runtime, repository_id: int) -> RepositoryTests:
    repository = access.repository(session, repository_id)
    home = records.home_of(session, runtime, repository, runtime.clock.now())
    return RepositoryTests(session, runtime, home)


def _first_of(touched: set[int], failed: set[int]) -> set[int]:
    """Whom one transaction judges: those that an upload asks about first."""
    if len(touched) <= JUDGED_MAX:
        return touched
    return set(sorted(touched, key=lambda no: (no not in failed, no))[:JUDGED_MAX])


def _opened(tests: RepositoryTests, revision: int) -> tuple[Standing, set[int]]:
    """How tests stand by what is stored, and who must be judged for it."""
    here, touched = tests.place.repository_id, set[int]()
    threshold = score.THRESHOLDS[tests.home.settings.sensitivity.value]
    kept = tests.runtime.store.caches.of(Standings).take(here)
    standing = Standing(threshold, _earlier(tests)) if kept is None else kept.standing
    if standing.threshold != threshold:
        touched |= standing.hold_against(threshold)
    if kept is not None and kept.revision == revision:
        return standing, touched
    shelf = standing.book.shelf
    stored = uploads.eligible(tests.session, here, figures.beginning_of(0))
    added = uploads.evidence(tests.session, tests.sets, stored - shelf.ids())
    # What lies before the horizon goes when it is settled, whether rows of it are left or not.
    gone = shelf.ids_since(tests.horizon) - stored
    return standing, touched | standing.change(added, gone, tests.sets)


def _earlier(tests: RepositoryTests) -> Earlier | None:
    """What is remembered of the time before the horizon, None if there was none."""
    days = test_states.noise_of(tests.session, tests.place.repository_id)
    first, horizon = min(days, default=None), tests.horizon.toordinal()
    if first is None or first >= horizon:
        return None
    until = horizon + noise.DAYS
    return Earlier(first, {day: found for day, found in days.items() if day < until})


def _settle_some(tests: RepositoryTests, standing: Standing, at_most: int) -> None:
    """Note what was concluded from evidence that is too old, of so many tests.

    It is let go of (`_forget`) when it is noted of all, by transactions that follow. Whatever
    else must go by then begins it anew.
    """
    going = standing.going(tests.horizon)
    if not going:
        standing.settling = None
        return
    begun = standing.settling
    if begun is None or begun.going != going:
        begun = Settling(going, sorted(standing.book.shelf.nos))
    _settle(tests, standing, begun.left[:at_most])
    standing.settling = Settling(going, begun.left[at_most:])


def _forget(tests: RepositoryTests, standing: Standing) -> None:
    """Let go of what is too old, once all that was concluded from it is committed."""
    settled = standing.settling
    if settled is None or settled.left or standing.unjudged:
        return
    if settled.going == standing.going(tests.horizon):
        standing.settling = None
        standing.unjudged |= standing.forget(tests.horizon, tests.sets)


def _settle(tests: RepositoryTests, standing: Standing, nos: list[int]) -> None:
    at = tests.horizon + timedelta(days=SETTLED_AFTER_DAYS)
    states = _states(tests, nos)
    known, put = _known(tests, nos, states), list[CaseState]()
    for no in nos:
        judged, state = standing.judge(no, known[no]), states.get(no)
        if judged is None or state is None:
            continue
        settled = _to_store(health.settled_at(judged, at, known[no].settled))
        if state.settled is not None or settled != StoredSettled(settled.at):
            put.append(replace(state, settled=settled))
    test_states.put(tests.session, tests.place, *put)


def _judge_all(tests: RepositoryTests, standing: Standing, nos: Iterable[int]) -> None:
    asked = sorted(nos)
    states = _states(tests, asked)
    known = _known(tests, asked, states)
    written = test_states.histories_of(tests.session, tests.place.repository_id, asked)
    noted: list[StateChange] = []
    put: list[CaseState] = []
    told: list[tuple[CaseState, Status]] = []
    for no in asked:
        judged = standing.judge(no, known[no])
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
            told.append((after, was))
    test_states.note(tests.session, tests.place, *noted)
    test_states.put(tests.session, tests.place, *put)
    for after, was in told:
        messages.tell_status(tests.session, tests.runtime, tests.home, after, was)
        ticket_issues.note_status(tests.session, tests.runtime, tests.home, after.no)


def _state(no: int, judged: Health | None, before: CaseState | None) -> CaseState | None:
    """How a test is now; None: nothing is known of it, and nothing is said."""
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
    """What the history does not say yet."""
    entries = [each.change for each in written]
    settled_at = after.settled.at if after.settled else None
    for change in history.to_append(entries, changes, settled_at):
        standing = history.effective(entries)
        entries.append(change)
        yield StateChange(
            no=no,
            at=change.at,
            written_at=tests.home.now,
            previous=standing[-1].value if standing else Status.HEALTHY,
            value=change.value,
            reason=change.reason,
            actor_kind=DETECTOR.kind,
            actor_login=DETECTOR.login,
            kind=ChangeKind.CORRECTED if change.is_correction else ChangeKind.CHANGED,
        )


def _states(tests: RepositoryTests, nos: Iterable[int]) -> Mapping[int, CaseState]:
    return test_states.states_of(tests.session, tests.place.repository_id, nos)


def _known(
    tests: RepositoryTests, asked: list[int], states: Mapping[int, CaseState]
) -> Mapping[int, Known]:
    """What judging must know of each test beside its uploads."""
    here = tests.place.repository_id
    flags = test_states.flags_of(tests.session, here, asked)
    pasts = cases.pasts_of(tests.session, here, asked)
    return {
        no: Known(
            flags=tuple(_flag(each) for each in flags.get(no, ())),
            settled=_from_store(states[no].settled) if no in states else None,
            first_run=pasts[no].first_run_at if no in pasts else None,
            has_passed=no in pasts and pasts[no].ever_passed,
        )
        for no in asked
    }


def _flag(word: StateChange) -> Flag:
    """A person's word, as it was written down."""
    if word.kind is ChangeKind.UNFLAGGED:
        return Flag(word.written_at, Status.HEALTHY, word.actor_login)
    text = word.reason.partition(": ")[2]
    return Flag(word.written_at, word.value, word.actor_login, text)


def _to_store(settled: Settled) -> StoredSettled:
    broken = ((branch, job, since) for (branch, job), since in sorted(settled.broken.items()))
    return StoredSettled(settled.at, settled.since, settled.epoch, tuple(broken))


def _from_store(stored: StoredSettled | None) -> Settled | None:
    if stored is None:
        return None
    broken = {(branch, job): since for branch, job, since in stored.broken}
    return Settled(stored.at, stored.since, stored.epoch, broken)


def _keep_noise(tests: RepositoryTests, standing: Standing) -> None:
    book = standing.book
    changed = [
        test_states.DayOfNoise(day, book.passing_by_day[day], book.verdicts_by_day[day], found)
        for day, found in standing.noise.items()
        if standing.noted.get(day) != found
    ]
    test_states.put_noise(tests.session, tests.place, changed)
    standing.noted = dict(standing.noise)
