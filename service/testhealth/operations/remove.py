"""Remove an upload: it counts no more, and its tests are judged anew.

For results that were wrong from the start, which would count for 45 days.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from service.accounts import access, audit_entries
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database.database import Tx
from service.database.records import RepositoryRecord
from service.errors import NotFound
from service.runtime import Runtime
from service.testhealth.operations import judge, records
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.reports.results import Outcome
from service.testhealth.store import cases, days, evidence_rows, removal, uploads
from service.testhealth.store.removal import Attempted, Corrections, Doubtful
from service.testhealth.store.standings import KeptStanding
from service.testhealth.store.uploads import Contents
from service.testhealth.store.uploads_rows import StoredAttempt, Upload
from service.vocabulary import Actor


async def remove(
    runtime: Runtime, repository: RepositoryRecord, upload_id: str, actor: Actor
) -> None:
    """Remove an upload. Raises NotFound(upload_not_found)."""
    now = runtime.clock.now()
    row = audit_entries.allowed(
        actor, repository.org_id, "test.remove_upload", f"upload/{upload_id}", now
    )
    await judge.alone(runtime, repository.id, _remove, runtime, repository, upload_id, row)
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
    tests = RepositoryTests(session, runtime, home)
    held = _held(tests, found.upload)
    uploads.remove(session, upload_id)
    cases.note_removal(session, repository.id)
    hit = {(each.no, pr) for each in held.failed for pr in held.upload.prs}
    removal.renew_impacts(session, tests.place, hit, row.at)
    audit.append(session, row)
    if not held.upload.is_eligible:
        return None, None
    days.open_day(session, tests.place, held.upload.ran_at, row.at)
    _correct_runs(tests, held.upload, held.nos)
    standing = judge.judge(tests, (), [upload_id])
    return None, judge.kept_of(tests, standing)


def _held(tests: RepositoryTests, upload: Upload) -> _Held:
    def members(key: str | None) -> tuple[int, ...]:
        return () if key is None else tuple(tests.sets.numbers(key))

    attempts = uploads.attempts_of(tests.session, upload.id)
    return _Held(upload, members(upload.passed), members(upload.skipped), attempts)


def _correct_runs(tests: RepositoryTests, gone: Upload, nos: Iterable[int]) -> None:
    """Note anew of tests what the upload that is gone had told of them."""
    here, since, at = tests.place.repository_id, tests.horizon, gone.ran_at
    # What was noted before `since` stays: uploads of that time are forgotten.
    doubtful = removal.doubtful(tests.session, here, nos, (at, since))
    ids = uploads.eligible(tests.session, here, since)
    left = sorted(uploads.contents(tests.session, sorted(ids)), key=lambda each: each.ran_at)
    attempted = removal.attempted(tests.session, here, doubtful.nos, since)
    found = _corrections(_Left(tests, left, tuple(attempted)), doubtful, at)
    removal.correct(tests.session, here, found)


@dataclass(frozen=True, slots=True)
class _Left:
    """Uploads that are left, oldest first, and the stored attempts of the tests in question."""

    tests: RepositoryTests
    uploads: list[Contents]
    attempted: tuple[Attempted, ...]

    def first(self, nos: set[int], at: datetime) -> dict[int, datetime]:
        """When tests ran first none of which ran before an instant; who never did is left out."""
        later = (each for each in self.uploads if each.ran_at >= at)
        found = self._holding(later, nos)
        for each in self.attempted:
            if each.no in nos:
                found[each.no] = min(each.first, found.get(each.no, each.first))
        return found

    def failed(self) -> dict[int, datetime]:
        """When tests failed last."""
        return {each.no: each.last for each in self.attempted if each.outcome is Outcome.FAILED}

    def passed(self, nos: set[int]) -> set[int]:
        """Those of the tests that passed."""
        won = {each.no for each in self.attempted if each.outcome is Outcome.PASSED}
        green = (each._replace(skipped=None) for each in reversed(self.uploads))
        return won | self._holding(green, nos - won).keys()

    def _holding(self, some: Iterable[Contents], nos: set[int]) -> dict[int, datetime]:
        """Number → when the first of these uploads ran that has the test in a set."""
        found: dict[int, datetime] = {}
        asked: set[str] = set()
        missing = set(nos)
        for each in some:
            for key in filter(None, (each.passed, each.skipped)):
                if not missing:
                    return found
                if key not in asked:
                    asked.add(key)
                    members = self.tests.sets.members([key], sorted(missing)).get(key, ())
                    found.update(dict.fromkeys(members, each.ran_at))
                    missing.difference_update(members)
        return found


def _corrections(left: _Left, doubtful: Doubtful, at: datetime) -> Corrections:
    """What is noted of tests and does not hold any more."""
    first, failed = left.first(doubtful.first, at), left.failed()
    return Corrections(
        unknown=doubtful.first - first.keys(),
        first=first,
        failed={no: failed.get(no) for no in doubtful.failed},
        unpassed=doubtful.passed - left.passed(doubtful.passed),
    )
