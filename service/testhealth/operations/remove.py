"""Remove an upload: its results stop counting, and its tests are judged anew.

For results that were wrong from the start and would count for 45 days.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from service.accounts import access, audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.operations import judge, records
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.reports.results import Outcome
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, costs, days, repeats, uploads
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.uploads import Contents, Upload
from service.vocabulary import Actor


async def remove(
    runtime: Runtime, repository: RepositoryRecord, upload_id: str, actor: Actor
) -> None:
    """Remove an upload. Raises NotFound(upload_not_found)."""
    now = runtime.clock.now()
    row = audit_log.allowed(
        actor, repository.org_id, "test.remove_upload", f"upload/{upload_id}", now
    )
    await judge.run_serialized(runtime, repository.id, _remove, runtime, repository, upload_id, row)
    outbox.wake(runtime.wakeups)


def _remove(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, upload_id: str, row: AuditEntry
) -> tuple[None, CachedIndex | None]:
    access.recheck(session, row.actor, row.at)
    # Locked first: another process may be removing the same upload.
    cases.lock(session, repository.id)
    upload = records.find_upload(session, repository, upload_id)
    tests = RepositoryTests(
        session, runtime, records.context_of(session, runtime, repository, row.at)
    )
    attempts = test_attempts.attempts_of(session, upload_id)
    keys = filter(None, (upload.passed, upload.skipped))
    nos = {each.no for each in attempts}.union(*(tests.sets.numbers(key) for key in keys))
    uploads.remove(session, upload_id)
    repeats.remove(session, upload_id)
    cases.note_removal(session, repository.id)
    failed = {each.no for each in attempts if each.failure is not None}
    hit = {(no, pr) for no in failed for pr in upload.prs}
    test_attempts.renew_impacts(session, tests.place, hit, row.at)
    costs.renew(session, repository.id, failed, row.at)
    audit.append(session, row)
    if not upload.is_eligible:
        return None, None
    days.open_day(session, tests.place, upload.ran_at, row.at)
    _correct_facts(tests, upload, nos)
    index = judge.judge(tests, (), [upload_id])
    return None, judge.kept_of(tests, index)


def _correct_facts(tests: RepositoryTests, removed: Upload, nos: Iterable[int]) -> None:
    """Find the first runs, last failures and passes anew that the removed upload may have given."""
    session, here, since = tests.session, tests.place.repository_id, tests.horizon
    doubtful = cases.doubtful(session, here, nos, removed.ran_at, since)
    left = uploads.contents(session, here, since)
    attempted = list(test_attempts.attempted(session, here, doubtful.nos, since))
    later = [each for each in left if each.ran_at >= removed.ran_at]
    first: dict[int, datetime | None] = dict(_first_in(tests, later, doubtful.first))
    for each in attempted:
        if each.no in doubtful.first:
            first[each.no] = min(each.first, first.get(each.no) or each.first)
    last = {each.no: each.last for each in attempted if each.outcome is Outcome.FAILED}
    passed = {each.no for each in attempted if each.outcome is Outcome.PASSED}
    green = [each._replace(skipped=None) for each in reversed(left)]
    passed |= _first_in(tests, green, doubtful.passed - passed).keys()
    cases.change(session, here, doubtful.first - first.keys(), is_known=False)
    cases.change(session, here, doubtful.passed - passed, ever_passed=False)
    _put_times(tests, "first_run_at", first)
    _put_times(tests, "last_failed_at", {no: last.get(no) for no in doubtful.failed})


def _put_times(tests: RepositoryTests, column: str, times: Mapping[int, datetime | None]) -> None:
    nos_at: defaultdict[datetime | None, list[int]] = defaultdict(list)
    for no, at in times.items():
        nos_at[at].append(no)
    for at, nos in nos_at.items():
        cases.change(tests.session, tests.place.repository_id, nos, **{column: at})


def _first_in(
    tests: RepositoryTests, ordered: Iterable[Contents], nos: set[int]
) -> dict[int, datetime]:
    """Return the number of each test → when the first of these uploads with it in a set ran."""
    first_runs: dict[int, datetime] = {}
    asked: set[str] = set()
    missing = set(nos)
    for each in ordered:
        for key in filter(None, (each.passed, each.skipped)):
            if not missing:
                return first_runs
            if key not in asked:
                asked.add(key)
                members = tests.sets.members([key], sorted(missing)).get(key, ())
                first_runs.update(dict.fromkeys(members, each.ran_at))
                missing.difference_update(members)
    return first_runs
