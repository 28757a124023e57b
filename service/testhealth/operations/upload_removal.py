"""An upload taken out again: what it counted counts no more, and its tests are judged anew.

For results that were wrong from the start, which would count for 45 days (FLAKY.md 2.4).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from service.accounts import access, deeds
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.errors import NotFound
from service.runtime import Runtime
from service.testhealth.detector import figures
from service.testhealth.operations import judging, records, removed_runs, tallying, upload_counting
from service.testhealth.operations.judging import Bench
from service.testhealth.operations.upload_counting import Desk
from service.testhealth.store import cases, evidence_rows, removal, tallies, uploads, uploads_rows
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.standings import KeptStanding
from service.testhealth.store.uploads_rows import Day, StoredAttempt, Upload
from service.vocabulary import Actor


async def remove(
    runtime: Runtime, repository: RepositoryRecord, upload_id: str, actor: Actor
) -> None:
    """Take an upload out (FLAKY.md 2.4). Raises NotFound(upload_not_found)."""
    now = runtime.clock.now()
    row = deeds.deed(actor, repository.org_id, "test.remove_upload", f"upload/{upload_id}", now)
    # Of a large upload that takes seconds, which nobody else should wait for.
    await tallying.finish(runtime, upload_id)
    await judging.alone(runtime, repository.id, _remove, runtime, repository, upload_id, row)
    runtime.wakeups.wake("outbox")


@dataclass(frozen=True, slots=True)
class _Held:
    """What an upload says of its tests, as stored."""

    upload: Upload
    passed: tuple[int, ...]
    skipped: tuple[int, ...]
    attempts: tuple[StoredAttempt, ...]

    @property
    def nos(self) -> set[int]:
        """All its tests."""
        return {*self.passed, *self.skipped, *(each.no for each in self.attempts)}

    @property
    def failed(self) -> tuple[StoredAttempt, ...]:
        """Its failed attempts."""
        return tuple(each for each in self.attempts if each.failure is not None)


def _remove(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload_id: str, row: AuditRow
) -> tuple[None, KeptStanding | None]:
    access.recheck(session, row.actor, row.at)
    found = uploads.by_id(session, upload_id)
    if found is None or found.place.repository_id != repository.id:
        raise NotFound(f"There is no upload {upload_id}.", code="upload_not_found")
    evidence_rows.lock(session, repository.id)
    home = records.home_of(session, runtime, repository, row.at)
    bench = Bench(session, runtime, home)
    desk = Desk(session, runtime.store.caches.of(OutcomeSets), bench.place, row.at)
    upload_counting.finish_within(desk, found.upload)
    tallying.finish_within(desk, found.upload)
    held = _held(bench, found.upload)
    uploads.remove(session, upload_id)
    cases.note_removal(session, repository.id)
    hit = {(each.no, pr) for each in held.failed for pr in held.upload.prs}
    removal.renew_impacts(session, bench.place, hit, row.at)
    audit.append(session, row)
    if not held.upload.is_eligible:
        return None, None
    tallies.take_back(session, bench.place, held.upload)
    uploads_rows.add_days(session, bench.place, list(_less(held)))
    counted = [(each.no, each.failure or "") for each in held.failed]
    removal.count_less(session, repository.id, counted, figures.day_of(held.upload.ran_at))
    removed_runs.correct(bench, held.upload, held.nos)
    standing = judging.judge(bench, (), [upload_id])
    return None, judging.kept_of(bench, standing)


def _held(bench: Bench, upload: Upload) -> _Held:
    def members(key: str | None) -> tuple[int, ...]:
        return () if key is None else tuple(bench.sets.numbers(key))

    attempts = uploads.attempts_of(bench.session, upload.id)
    return _Held(upload, members(upload.passed), members(upload.skipped), attempts)


def _less(held: _Held) -> Iterable[Day]:
    """What days of tests lose of which attempts are stored."""
    for gained in upload_counting.days_of(held.upload, held.attempts):
        yield Day(
            gained.no,
            gained.day,
            results=-gained.results,
            passing_results=-gained.passing_results,
            passed=-gained.passed,
            failed=-gained.failed,
            skipped=-gained.skipped,
            quarantined=-gained.quarantined,
        )
