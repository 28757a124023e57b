"""What a complete upload says of single tests, noted and counted in parts (FLAKY.md 4).

First runs, owners and failures follow the upload a part at a time, so that a large one keeps no
other writer waiting. Parts are rows: whoever begins anew after a crash goes on with those left.
Every part adds or takes the earlier or later of two times, so the order of parts and of uploads
does not matter. Tests that passed or were skipped at once are counted apart (`tallying.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from service.database import bulk
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import figures
from service.testhealth.reports.results import Outcome
from service.testhealth.store import (
    cases,
    code_owners,
    evidence_rows,
    tallies,
    uncounted,
    uploads,
    uploads_rows,
)
from service.testhealth.store.cases import Place
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.standings import Standings
from service.testhealth.store.uncounted import Owned, Part
from service.testhealth.store.uploads_rows import Day, SeenFailure, StoredAttempt, Upload


@dataclass(frozen=True, slots=True)
class Desk:
    """Where uploads of a repository are counted: in a transaction, at a time."""

    session: Tx
    sets: OutcomeSets
    place: Place
    now: datetime


class Counted(NamedTuple):
    """A part that is counted, and the revisions of the repository's evidence around it."""

    repository_id: int
    before: int
    is_last: bool


async def finish(runtime: Runtime, upload_id: str) -> None:
    """Count what is left of an upload, each part in a transaction of its own."""
    now = runtime.clock.now()
    sets = runtime.store.caches.of(OutcomeSets)
    while (counted := await runtime.store.run(_count_next, sets, upload_id, now)) is not None:
        runtime.store.caches.of(Standings).advance(counted.repository_id, counted.before)
        if counted.is_last:
            return


async def finish_all(runtime: Runtime) -> None:
    """Count what is left of any upload, as after a crash."""
    for upload_id in await runtime.store.read(uncounted.uploads):
        await finish(runtime, upload_id)


def finish_within(desk: Desk, upload: Upload) -> None:
    """Count what is left in the transaction of somebody who holds the lock of the evidence."""
    while (part := uncounted.take(desk.session, upload.id)) is not None:
        count(desk, upload, part)


def count(desk: Desk, upload: Upload, part: Part) -> None:
    """Note what a part says: first runs, owners, and how tests failed and for whom.

    When those ran whose attempts are stored is known since the upload is complete.
    """
    session, here, at = desk.session, desk.place.repository_id, upload.ran_at
    if part.apart != bulk.NONE:
        _count_apart(desk, upload, part.apart)
        return
    won, skipped = bulk.numbers_of(part.passed), bulk.numbers_of(part.skipped)
    if not upload.is_eligible:
        evidence_rows.note_strangers(session, here, [*won, *skipped], at)
        return
    evidence_rows.note_runs(session, here, won, at, passed=True)
    evidence_rows.note_runs(session, here, skipped, at, passed=False)
    own(desk, part.owners, upload)


def days_of(upload: Upload, attempts: Iterable[StoredAttempt]) -> Iterator[Day]:
    """What days of tests gain by attempts of an upload; these by test."""
    day = figures.day_of(upload.ran_at)
    for no, group in groupby(attempts, attrgetter("no")):
        told = list(group)
        outcomes = [each.outcome for each in told]
        passed, failed = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED)
        counts = told[0].is_comparable and not upload.is_mass
        yield Day(
            no=no,
            day=day,
            results=int(passed + failed > 0),
            passing_results=int(counts and passed > 0),
            passed=passed,
            failed=failed,
            skipped=outcomes.count(Outcome.SKIPPED),
            quarantined=sum(1 for each in told if each.is_quarantined),
        )


def _count_apart(desk: Desk, upload: Upload, rows: str) -> None:
    session, place = desk.session, desk.place
    attempts = uploads.attempts_among(session, upload.id, rows)
    seen = [
        SeenFailure(each.no, each.failure, each.headline or "", each.stack or "", each.ran_at)
        for each in attempts
        if each.failure is not None
    ]
    hit = {each.no for each in seen}
    if upload.is_eligible:
        uploads_rows.add_days(session, place, list(days_of(upload, attempts)))
        uploads_rows.note_failures(session, place, seen)
    else:
        hit = evidence_rows.known_among(session, place.repository_id, hit)
    impacts = [(no, pr) for no in hit for pr in upload.prs]
    uploads_rows.note_impact(session, place, impacts, upload.ran_at, desk.now)


def own(desk: Desk, owned: tuple[Owned, ...], upload: Upload) -> None:
    """Note owners of tests, unless the repository's own file says who they are.

    Of each test the newest upload counts that sends such a file along.
    """
    session, here, at = desk.session, desk.place.repository_id, upload.ran_at
    if not owned or code_owners.path_of(session, here):
        return
    wanted = {no: each.owners for each in owned for no in each.nos}
    for no in tallies.ran_after(session, desk.sets, here, sorted(wanted), at):
        del wanted[no]
    evidence_rows.put_owners(session, here, wanted, at)


def _count_next(session: Tx, sets: OutcomeSets, upload_id: str, now: datetime) -> Counted | None:
    found = uploads.by_id(session, upload_id)
    if found is None:
        uncounted.drop(session, upload_id)
        return None
    place = found.place
    revision = evidence_rows.lock(session, place.repository_id)
    part = uncounted.take(session, upload_id)
    if part is None:
        return None
    count(Desk(session, sets, place, now), found.upload, part)
    cases.note_change(session, place.repository_id)
    return Counted(place.repository_id, revision.number, part.n == 1)
