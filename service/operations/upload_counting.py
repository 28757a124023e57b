"""Results of a complete upload that one attempt says all of, counted in parts (FLAKY.md 4).

What lists show of tests follows the upload a part at a time, so that a large one keeps no other
writer waiting. Parts are rows: whoever begins anew after a crash goes on with those left. Every
part adds or takes the later of two times, so the order of parts and of uploads does not matter.
"""

from typing import NamedTuple

from service.flaky import figures
from service.runtime import Runtime
from service.store import bulk, code_owners, evidence, test_cases, test_evidence, uncounted, uploads
from service.store.database import Tx
from service.store.test_cases import Place
from service.store.test_evidence import Day, Upload
from service.store.uncounted import Owned, Part


class Counted(NamedTuple):
    """A part that is counted, and the revisions of the repository's evidence around it."""

    repository_id: int
    before: int
    is_last: bool


async def finish(runtime: Runtime, upload_id: str) -> None:
    """Count what is left of an upload, each part in a transaction of its own."""
    while (counted := await runtime.store.run(_count_next, upload_id)) is not None:
        runtime.store.standings.advance(counted.repository_id, counted.before)
        if counted.is_last:
            return


async def finish_all(runtime: Runtime) -> None:
    """Count what is left of any upload, as after a crash."""
    for upload_id in await runtime.store.read(uncounted.uploads):
        await finish(runtime, upload_id)


def finish_within(session: Tx, place: Place, upload: Upload) -> None:
    """Count what is left in the transaction of somebody who holds the lock of the evidence."""
    while (part := uncounted.take(session, upload.id)) is not None:
        count(session, place, upload, part)


def count(session: Tx, place: Place, upload: Upload, part: Part) -> None:
    """Let the results of a part count: when tests ran, and their day."""
    here, at = place.repository_id, upload.ran_at
    won, skipped = bulk.numbers_of(part.passed), bulk.numbers_of(part.skipped)
    if not upload.is_eligible:
        evidence.note_strangers(session, here, [*won, *skipped], at)
        return
    evidence.note_runs(session, here, won, at, passed=True)
    evidence.note_runs(session, here, skipped, at, passed=False)
    own(session, place, part.owners, upload)
    day, passing = figures.day_of(at), int(not upload.is_mass)
    green = Day(0, day, results=1, passing_results=passing, passed=1)
    test_evidence.add_equal_days(session, place, green, part.passed)
    test_evidence.add_equal_days(session, place, Day(0, day, skipped=1), part.skipped)


def own(session: Tx, place: Place, owned: tuple[Owned, ...], upload: Upload) -> None:
    """Note owners of tests, unless the repository's own file says who they are.

    Of each test the newest upload counts that sends such a file along.
    """
    if not owned or code_owners.path_of(session, place.repository_id):
        return
    wanted = {no: each.owners for each in owned for no in each.nos}
    evidence.put_owners(session, place.repository_id, wanted, upload.ran_at)


def _count_next(session: Tx, upload_id: str) -> Counted | None:
    found = uploads.by_id(session, upload_id)
    if found is None:
        uncounted.drop(session, upload_id)
        return None
    place = found.place
    revision = evidence.lock(session, place.repository_id)
    part = uncounted.take(session, upload_id)
    if part is None:
        return None
    count(session, place, found.upload, part)
    test_cases.note_change(session, place.repository_id)
    return Counted(place.repository_id, revision.number, part.n == 1)
