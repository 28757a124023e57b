"""The tests that failed in a test run or on a head, for the texts on pull requests.

Read from the database, with the health of each test when the run began.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from service.accounts import page_addresses
from service.accounts.store import access
from service.database.database import Tx
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.operations.views import FailedTest as ListedFailure
from service.mergequeue.wording.failed_tests import (
    NONE,
    FailedTest,
    FailedTests,
    KilledRunner,
    Standing,
)
from service.runtime import Runtime
from service.testhealth.operations import answers, failure_texts, records
from service.testhealth.operations.records import RepositoryContext
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.runner_ends import EndReason
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, figures, listings, uploads
from service.testhealth.store import states as test_states
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.uploads import Upload
from service.text import phrases
from service.vocabulary import Health, Override, QueueRef, Sha

FAILED_MAX = 1000
"""Failures of one run that are examined, as in the answer to an upload.

See docs/design/limits.md 5.
"""

HEAD_KNOWN_FOR = timedelta(days=30)
"""Results of a head that are older are not looked for."""

RANKS = (Standing.NEW, Standing.BROKEN, Standing.SEEN, Standing.FLAKY, Standing.EXCUSED)
"""Named first: the failures that the pull request most likely caused."""

UNHEALTHY = {Health.FLAKY: Standing.FLAKY, Health.BROKEN: Standing.BROKEN}


class Since(NamedTuple):
    """The start of the tests and their pull requests: health and past failures are of before."""

    began: datetime
    prs: tuple[int, ...]


class RankedFailure(NamedTuple):
    """A failed test with what it was when the run began; `last` is its failure in a report."""

    case: ListedCase
    standing: Standing
    is_new_text: bool
    log: str
    last: StoredAttempt


def named_in(session: Tx, runtime: Runtime, queue: QueueRef, run: Run) -> FailedTests:
    """Return the tests that failed in the end, by the newest results of each of the run's jobs."""
    sent = () if run.sha is None else _sent(session, queue, run, run.sha)
    found = _named(session, runtime, queue, sent, Since(run.created_at, run.prs))
    killed = killed_in(session, queue, run)
    if found is NONE:
        return replace(NONE, killed=killed) if killed else NONE
    red_on_base = frozenset(run.evidence.red_on_base if run.evidence else ())
    return replace(
        found,
        shown=tuple(
            replace(each, fails_on=queue.branch if each.id in red_on_base else "")
            for each in found.shown
        ),
        gaps=tuple(run.evidence.gaps.items()) if run.evidence is not None else (),
        revoked=verdict.revoked_of(run),
        killed=killed,
    )


def killed_in(session: Tx, queue: QueueRef, run: Run) -> tuple[KilledRunner, ...]:
    """Return the test runners that were killed in its jobs, by the last attempt of each."""
    if run.sha is None:
        return ()
    # Also what came without a report, which is no evidence.
    sent = [
        each
        for each in uploads.of_sha(session, queue.repository_id, run.sha)
        if each.kind == UploadClass.QUEUE.value and each.received_at >= run.reported_since
    ]
    found = [
        KilledRunner(end.runner, each.job, each.command_exit_code)
        for each in _last(sent)
        for end in each.runner_ends
        if end.reason is EndReason.KILLED
    ]
    return tuple(dict.fromkeys(found))


def named_on(session: Tx, runtime: Runtime, queue: QueueRef, pr: int, head: Sha) -> FailedTests:
    """Return the tests that failed on the head of a pull request itself, by its newest results."""
    since = runtime.clock.now() - HEAD_KNOWN_FOR
    sent = _last(uploads.of_heads(session, queue.repository_id, (head,), since))
    began = min((each.received_at for each in sent), default=since)
    return _named(session, runtime, queue, sent, Since(began, (pr,)))


def _named(
    session: Tx, runtime: Runtime, queue: QueueRef, sent: Sequence[Upload], since: Since
) -> FailedTests:
    """Return the tests that failed in these uploads."""
    failures = test_attempts.failed_in(session, [each.id for each in sent], FAILED_MAX)
    if not failures:
        return NONE
    repository = access.repository(session, queue.repository_id)
    context = records.context_of(session, runtime, repository, runtime.clock.now())
    looked = _looked(session, context, since, sent, failures)
    shown = looked[: phrases.NAMES_SHOWN_MAX]
    nos = [each.case.no for each in shown]
    rates = figures.rates(session, context.sets, repository.id, nos, context.now)
    excused = sum(each.standing is Standing.EXCUSED for each in looked)
    return FailedTests(
        failed=len(looked) - excused,
        excused=excused,
        shown=tuple(
            FailedTest(
                name=name_of(each.case),
                standing=each.standing,
                is_new_text=each.is_new_text,
                week_rate=rates[each.case.no].week,
                prs_hit=each.case.impact,
                until=_until(context, each.case),
                log=each.log,
                page=page_addresses.test(runtime.options, repository.ref, each.case.id),
                message=each.last.headline or "",
                stack=each.last.stack or "",
                id=each.case.id,
                file=each.case.file or "",
                line=each.case.line,
            )
            for each in shown
        ),
    )


def listed_in(session: Tx, queue: QueueRef, run: Run) -> tuple[ListedFailure, ...]:
    """Return the tests that failed in any attempt, by what CI sent for the run's commit."""
    if run.sha is None:
        return ()
    sent = uploads.of_test_run(session, queue.repository_id, run.sha, run.reported_since)
    failed = test_attempts.failed_in(session, [each.id for each in sent], FAILED_MAX)
    quarantined = {each.no for each in failed if each.is_quarantined}
    new_texts = frozenset(run.evidence.new_texts if run.evidence else ())
    return tuple(
        ListedFailure(
            case.id,
            case.name,
            case.status,
            bool(run.excused) and case.no in quarantined,
            case.id in new_texts,
        )
        for case in listings.listed_cases(
            session, queue.repository_id, sorted({each.no for each in failed})
        )
    )


def names_of(session: Tx, queue: QueueRef, ids: Collection[str]) -> Mapping[str, str]:
    """Return the names of tests by their ids; at most as many as of one run are examined."""
    found = cases.by_ids(session, queue.repository_id, sorted(ids)[:FAILED_MAX])
    nos = sorted(set(found.values()))
    listed = {each.no: each for each in listings.listed_cases(session, queue.repository_id, nos)}
    return {each: name_of(listed[no]) for each, no in found.items() if no in listed}


def _sent(session: Tx, queue: QueueRef, run: Run, sha: Sha) -> tuple[Upload, ...]:
    """Return the uploads of its jobs; of a job that CI tried again, those of the last attempt."""
    return _last(uploads.of_test_run(session, queue.repository_id, sha, run.reported_since))


def _last(sent: Sequence[Upload]) -> tuple[Upload, ...]:
    """Return the uploads without those of earlier attempts of the same job."""
    last: defaultdict[tuple[str | None, str, str], int] = defaultdict(int)
    for each in sent:
        key = (each.run_id, each.job, each.variant)
        last[key] = max(last[key], each.run_attempt)
    return tuple(
        each for each in sent if each.run_attempt == last[each.run_id, each.job, each.variant]
    )


def are_known_flaky(session: Tx, repository_id: int, sha: Sha) -> bool:
    """Return whether tests failed on this commit of a branch, and all of them are known as flaky.

    It makes a search wary and excuses nothing, so it needs no proof of who sent the results.
    """
    sent = uploads.of_sha(session, repository_id, sha)
    of_branch = [
        each.id for each in sent if each.kind == UploadClass.STABLE.value and each.is_eligible
    ]
    failed = test_attempts.failed_in(session, of_branch, FAILED_MAX)
    known = test_states.states_of(session, repository_id, {each.no for each in failed})
    return bool(failed) and all(
        each.no in known and known[each.no].value is Health.FLAKY for each in failed
    )


def _looked(
    session: Tx,
    context: RepositoryContext,
    since: Since,
    sent: Iterable[Upload],
    failed: Iterable[StoredAttempt],
) -> list[RankedFailure]:
    """Return the failed tests, those first that are named first."""
    by_no: defaultdict[int, list[StoredAttempt]] = defaultdict(list)
    for each in failed:
        by_no[each.no].append(each)
    here, nos, began = context.repository.id, sorted(by_no), since.began
    logs = {each.id: each.run_url or "" for each in sent}
    keys_by_test = failure_texts.known_keys(session, here, nos, began, since.prs)
    written = test_states.histories_of(session, here, nos)
    looked = []
    for case in listings.listed_cases(session, here, nos):
        failures, keys = by_no[case.no], keys_by_test.get(case.no, frozenset())
        health = answers.status_at(written.get(case.no, ()), began)
        standing = latest_result(failures, health, keys)
        is_new_text = standing is not Standing.NEW and _is_new(failures, keys)
        last = failures[-1]
        looked.append(RankedFailure(case, standing, is_new_text, logs[last.upload], last))
    return sorted(looked, key=lambda each: (RANKS.index(each.standing), name_of(each.case)))


def latest_result(
    failures: Sequence[StoredAttempt], health: Health, known_keys: Collection[str]
) -> Standing:
    """Return the standing of a failed test; `known_keys` are its failures of the 30 days before."""
    if all(each.is_quarantined for each in failures):
        return Standing.EXCUSED
    if health in UNHEALTHY:
        return UNHEALTHY[health]
    return Standing.SEEN if known_keys else Standing.NEW


def _is_new(failures: Iterable[StoredAttempt], known_keys: Collection[str]) -> bool:
    return any(each.failure is not None and each.failure not in known_keys for each in failures)


def name_of(case: ListedCase) -> str:
    """Return a test as people name it: `tests/test_cart.py::test_total`, else by its class."""
    place = case.file or case.classname or case.parent
    variant = f" ({case.variant})" if case.variant else ""
    return f"{place}::{case.name}{variant}" if place else f"{case.name}{variant}"


def _until(context: RepositoryContext, case: ListedCase) -> datetime | None:
    """Return when a person's word on its quarantine ends."""
    stands = records.override_of(context, case) is Override.ALWAYS_QUARANTINE
    return case.expires_at if stands else None
