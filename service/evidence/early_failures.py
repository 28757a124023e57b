"""Judge failed tests that CI jobs report while they run, and tell the queues of their test runs.

A failure counts unless its test is quarantined, known as flaky, or red on the target branch. Until
the whole report has arrived, a test of the same name that is one of these is enough to wait for it
(docs/design/live-tests.md 3).
"""

from collections.abc import Sequence

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.evidence import failed_tests, other_ci
from service.evidence.failed_tests import RunStart
from service.evidence.store import queue_facts
from service.mergequeue.engine.model import Run
from service.mergequeue.operations import early_failures as queues
from service.mergequeue.operations import run_reports, turn
from service.notifications.store import subscribers
from service.provider.ci import FailedPart
from service.runtime import Runtime
from service.testhealth import early_failures
from service.testhealth.early_failures import CaseNames, EarlyFailure, EarlyStanding
from service.testhealth.operations import checks, judge, records
from service.testhealth.operations.checks import AskedTest
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.store import cases as test_cases
from service.testhealth.store import early_failures as stored
from service.testhealth.store import listings
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.listings import ListedCase
from service.vocabulary import Check, CheckOutcome, Sha


async def standing_of(
    runtime: Runtime, repository: RepositoryRecord, failed: EarlyFailure
) -> EarlyStanding:
    """Return what a failure moves whose job and end are proved."""
    standing, _ = await judge.run_serialized(
        runtime, repository.id, _standing, runtime, repository, failed
    )
    return standing


async def tell(runtime: Runtime, repository: RepositoryRecord, failed: EarlyFailure) -> None:
    """Have the queue of the test run judge it by this failure. Idempotent."""
    found = await runtime.store.read(queue_facts.live_run, repository.id, Sha(failed.sha))
    if found is None:
        return
    queue, run = found
    if isinstance(_check_of(run, failed), str):
        report = await run_reports.checks_of(runtime, queue, run)
        await turn.take(runtime, queue.id, [report])
        run = (await turn.value(runtime, queue.id)).runs.get(run.id, run)
    check = _check_of(run, failed)
    if isinstance(check, Check):
        await queues.heard(runtime, queue, run.id, _part(failed, check))


async def take_back(
    runtime: Runtime, repository: RepositoryRecord, failed: Sequence[EarlyFailure]
) -> None:
    """Have the queue forget failures that were contradicted. Idempotent."""
    for each in failed:
        found = await runtime.store.read(queue_facts.live_run, repository.id, Sha(each.sha))
        check = None if found is None else _check_of(found[1], each)
        if found is not None and isinstance(check, Check):
            await queues.withdrawn(runtime, found[0], found[1].id, _part(each, check))


def _standing(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, failed: EarlyFailure
) -> tuple[EarlyStanding, CachedIndex | None]:
    found = queue_facts.live_run(session, repository.id, Sha(failed.sha))
    if found is None:
        return EarlyStanding.NO_TEST_RUN, None
    queue, run = found
    if failed.check_run in run.rerun_ids or _has_ended(run, failed):
        return EarlyStanding.OVER, None
    if _check_of(run, failed) is None:
        return EarlyStanding.UNPROVED, None
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    tests = RepositoryTests(session, runtime, context)
    nos = _tests_of(tests, failed.test)
    began = RunStart(run.created_at, queue.branch, {one.pr: one.head for one in run.entries})
    known, kept = failed_tests.known_before(tests, nos, began)
    if known.quarantined:
        return EarlyStanding.QUARANTINED, kept
    if known.red:
        return EarlyStanding.RED_ON_TARGET, kept
    if known.flaky and run.config.flaky_knowledge_enabled:
        return EarlyStanding.KNOWN_FLAKY, kept
    return EarlyStanding.COUNTS, kept


def _tests_of(tests: RepositoryTests, names: CaseNames) -> list[int]:
    """Return the tests that a runner may mean: by their ids, and by name those that are unhealthy.

    A report may have a file, a suite or a class that a runner does not know while it runs, so a
    failure that is excused must not count because it is spelled otherwise.
    """
    session, repository = tests.session, tests.context.repository
    slug = subscribers.organization_slug(session, repository.org_id)
    keys = checks.names_of(session, repository, checks.key_of(slug, repository.ref))
    asked = [
        AskedTest(name=names.name, parent=parent, classname=names.classname, file=file)
        for parent in dict.fromkeys((names.parent, ""))
        for file in dict.fromkeys((names.file, ""))
    ]
    ids = [each for one in asked for each in checks.ids_of(one, keys, tests.context)]
    nos = set(test_cases.by_ids(session, repository.id, ids).values())
    alike = stored.namesakes(session, repository.id, names.name)
    listed = listings.listed_cases(session, repository.id, alike)
    nos |= {case.no for case in listed if early_failures.is_namesake(names, _names_of(case))}
    return sorted(nos)


def _names_of(case: ListedCase) -> CaseNames:
    return CaseNames(case.name, case.classname, case.parent, case.file)


def _check_of(run: Run, failed: EarlyFailure) -> Check | str | None:
    """Return the check of the job: a check, or the id of one that is not reported yet.

    The job of another CI system is that of the check which shows its page. None: there is none.
    """
    if other_ci.ADDRESS in failed.check_run:
        return next((one for one in run.checks if one.url == failed.check_run), None)
    same = (one for one in run.checks if one.id == failed.check_run)
    return next(same, None) or failed.check_run or None


def _has_ended(run: Run, failed: EarlyFailure) -> bool:
    check = _check_of(run, failed)
    return isinstance(check, Check) and check.outcome in (CheckOutcome.PASSED, CheckOutcome.FAILED)


def _part(failed: EarlyFailure, check: Check) -> FailedPart:
    return FailedPart(check.id, check.name, test=failed.test.shown, url=check.url)
