"""Note facts of uploads about single tests: first runs, failure groups, pull requests, owners.

Each fact is the earliest or the newest, so noting is safe to repeat, and the order of uploads does
not matter. A large upload is noted after it is stored, some tests in each transaction; the sweep
continues after a crash.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from service import sweeping
from service.database import bulk
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, code_owners, costs, figures, uploads
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.cases import Place
from service.testhealth.store.index_cache import IndexCache
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.uploads import Upload

TESTS_AT_ONCE = 2000
"""Tests that one transaction notes."""


async def finish(runtime: Runtime, upload_id: str) -> None:
    """Note the remaining tests of an upload, some in each transaction."""
    now, after = runtime.clock.now(), 0
    sets = runtime.store.caches.of(OutcomeSets)
    while True:
        noted = await runtime.store.run(_note_next, sets, (upload_id, after), now)
        if noted is None:
            return
        after, repository_id, revision = noted
        runtime.store.caches.of(IndexCache).advance(repository_id, revision)


async def finish_all(runtime: Runtime) -> None:
    """Note the remaining tests of all uploads, as after a crash."""
    unnoted = await runtime.store.read(uploads.unnoted)
    await sweeping.one_by_one(finish(runtime, each) for each in unnoted)


def note_runs(
    session: Tx, place: Place, upload: Upload, ran: tuple[Iterable[int], Iterable[int]]
) -> None:
    """Note that these tests passed in the upload, and that those ran without a pass."""
    here, at = place.repository_id, upload.ran_at
    passed, others = ran
    if not upload.is_eligible:
        cases.note_untrusted(session, here, [*passed, *others], at)
        return
    cases.note_runs(session, here, passed, at, passed=True)
    cases.note_runs(session, here, others, at, passed=False)


def note_failures(
    session: Tx, place: Place, upload: Upload, attempts: Sequence[StoredAttempt], now: datetime
) -> None:
    """Note how tests failed in the upload, for which pull requests, and what that cost."""
    failed = [each for each in attempts if each.failure is not None]
    hit = {each.no for each in failed}
    if upload.is_eligible:
        test_attempts.note_failures(session, place, failed)
        costs.renew(session, place.repository_id, hit, now)
    else:
        hit = set(cases.pasts_of(session, place.repository_id, hit))
    impacts = [(no, pr) for no in hit for pr in upload.prs]
    test_attempts.note_impact(session, place, impacts, upload.ran_at, now)


async def assign_owners(
    runtime: Runtime,
    place: Place,
    ran_at: datetime,
    nos: Sequence[int],
    owners: Mapping[int, tuple[str, ...]],
) -> None:
    """Assign owners as `assign_owners_within`, to some tests in each transaction."""
    sets = runtime.store.caches.of(OutcomeSets)
    for some in bulk.parts(nos, TESTS_AT_ONCE):
        wanted = {no: owners[no] for no in some}
        before = await runtime.store.run(_assign_owners, sets, place, ran_at, wanted)
        runtime.store.caches.of(IndexCache).advance(place.repository_id, before)


def changed_owners(session: Tx, place: Place, owners: Mapping[int, tuple[str, ...]]) -> list[int]:
    """Return the tests that have other owners than these."""
    if code_owners.path_of(session, place.repository_id):
        return []
    stored = cases.owners_of(session, place.repository_id, owners)
    return [no for no, names in stored.items() if names != owners[no]]


def assign_owners_within(
    session: Tx,
    sets: OutcomeSets,
    place: Place,
    ran_at: datetime,
    owners: Mapping[int, tuple[str, ...]],
) -> None:
    """Give tests the owners that an upload names, unless a later upload ran them.

    Nothing changes where the repository's own CODEOWNERS file counts.
    """
    here = place.repository_id
    if not owners or code_owners.path_of(session, here):
        return
    later = figures.run_after(session, sets, here, sorted(owners), ran_at)
    changed = {no: names for no, names in owners.items() if no not in later}
    cases.put_owners(session, here, changed)


def _assign_owners(
    session: Tx,
    sets: OutcomeSets,
    place: Place,
    ran_at: datetime,
    owners: Mapping[int, tuple[str, ...]],
) -> int:
    """Return the revision before the change."""
    revision = cases.lock(session, place.repository_id)
    assign_owners_within(session, sets, place, ran_at, owners)
    cases.note_change(session, place.repository_id)
    return revision.revision


def _note_next(
    session: Tx, sets: OutcomeSets, at: tuple[str, int], now: datetime
) -> tuple[int, int, int] | None:
    """Note the next tests of an upload, those with numbers above the given one.

    Return the highest number noted, the repository and its revision before; None: all is noted.
    """
    upload_id, after = at
    placed = uploads.by_id(session, upload_id)
    if placed is None:
        return None
    place, upload = placed
    revision = cases.lock(session, place.repository_id)
    stored = StoredSets(session, sets, place.repository_id)
    passed, skipped = (
        [no for no in stored.numbers(key) if no > after] if key is not None else []
        for key in (upload.passed, upload.skipped)
    )
    attempts = [each for each in test_attempts.attempts_of(session, upload_id) if each.no > after]
    left = sorted({*passed, *skipped, *(each.no for each in attempts)})
    if not left:
        uploads.note_done(session, upload_id)
        return None
    until = left[:TESTS_AT_ONCE][-1]
    ran = ([no for no in passed if no <= until], [no for no in skipped if no <= until])
    note_runs(session, place, upload, ran)
    note_failures(session, place, upload, [each for each in attempts if each.no <= until], now)
    cases.note_change(session, place.repository_id)
    return until, place.repository_id, revision.revision
