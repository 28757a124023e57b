"""Handlers of the endpoints for jobs that run: failed tests, tests to run first and again."""

from service.accounts import access
from service.http.callers import Call
from service.http.rates import RateClass
from service.http.route import VERSIONED, Fetched, Posted, Route
from service.testhealth.api.models import live as models
from service.testhealth.api.models.answers.live import (
    EarlyFailureHeard,
    PlannedTestShown,
    RepeatsHeard,
    RepeatsPlanned,
    SuspectedTestShown,
    SuspectedTestsListed,
)
from service.testhealth.early_failures import EarlyFailure, EarlyStanding
from service.testhealth.operations import early_failures, records, repeats, suspects
from service.testhealth.operations.repeats import PlannedTest
from service.testhealth.repeats import PlanStanding
from service.vocabulary import Role, Sha

MESSAGES = {
    EarlyStanding.COUNTS: "The test run of this commit is judged by this failure.",
    EarlyStanding.NOT_FINAL: "The runner may try the test again, so only the report decides.",
    EarlyStanding.NO_TEST_RUN: "No test run of a queue is on this commit.",
    EarlyStanding.OVER: "This attempt of the job has ended, so its check decides.",
    EarlyStanding.UNPROVED: (
        "Only the OIDC token of the job itself proves a failed test; the report decides. On GitHub"
        " Actions give the job `permissions: id-token: write`."
    ),
    EarlyStanding.QUARANTINED: "The test is quarantined, so only the report decides.",
    EarlyStanding.KNOWN_FLAKY: "The test is known as flaky, so only the report decides.",
    EarlyStanding.RED_ON_TARGET: (
        "The test fails on the target branch as well, so only the report decides."
    ),
    EarlyStanding.PASSED: "The test has passed, so its failure is taken back.",
}


async def receive(call: Call, asked: models.ReportEarlyFailure) -> EarlyFailureHeard:
    """Take in a test that has failed while its job goes on."""
    addresses = await records.find_addresses(
        call.runtime, call.caller, asked.repo.ref, asked.org_url_slug
    )
    repository = addresses.repository
    return _heard(
        await early_failures.report(call.runtime, call.caller, repository, asked.report())
    )


def _heard(failed: EarlyFailure) -> EarlyFailureHeard:
    standing = failed.standing if failed.taken_back_at is None else EarlyStanding.PASSED
    return EarlyFailureHeard(
        counts=standing is EarlyStanding.COUNTS, standing=standing, message=MESSAGES[standing]
    )


async def list_suspected(call: Call, asked: models.ListSuspectedTests) -> SuspectedTestsListed:
    """List the tests that a job should run first."""
    repository = await access.find_repository(call.runtime, call.caller, asked.ref)
    found = await suspects.suspected(call.runtime, repository, Sha(asked.sha.lower()))
    return SuspectedTestsListed(
        tests=[
            SuspectedTestShown(
                test_id=each.test_id,
                name=each.test.name,
                classname=each.test.classname,
                parent=each.test.parent,
                file_path=each.test.file,
                because=each.because,
            )
            for each in found
        ]
    )


PLAN_MESSAGES = {
    PlanStanding.PLANNED: "These tests are worth more runs on this commit.",
    PlanStanding.OFF: (
        "Repeated runs are off: the test setting repeat_minutes_per_day allows no minutes."
    ),
    PlanStanding.NOT_ABLE: "The test runner of this job cannot run single tests again.",
    PlanStanding.NOT_HERE: (
        "Tests are run again in jobs of stable branches and of pull requests whose results count."
    ),
    PlanStanding.UNPROVED: (
        "Nothing shows that the asker is the job of this upload: ask with the token, the commit and"
        " the CI run of the upload."
    ),
    PlanStanding.ALREADY: "The job of this upload has been asked to run tests again.",
    PlanStanding.BUSY: "Test runs of a queue go on, so no machine is idle.",
    PlanStanding.SPENT: (
        "The minutes of this day are spent or reserved; the test setting repeat_minutes_per_day"
        " allows more."
    ),
    PlanStanding.NOTHING: "No test of this job would tell more if it ran again.",
}


async def plan_repeats(call: Call, asked: models.PlanRepeats) -> RepeatsPlanned:
    """Return the tests that a job that is done runs again, and reserve the time."""
    addresses = await records.find_addresses(
        call.runtime, call.caller, asked.repo.ref, asked.org_url_slug
    )
    plan = await repeats.plan(call.runtime, call.caller, addresses.repository, asked.asked())
    return RepeatsPlanned(
        standing=plan.standing,
        message=PLAN_MESSAGES[plan.standing],
        plan_id=plan.id or None,
        seconds=round(plan.seconds, 1),
        tests=[_planned(each) for each in plan.tests],
    )


def _planned(planned: PlannedTest) -> PlannedTestShown:
    test = planned.test
    return PlannedTestShown(
        test_id=test.id,
        name=test.name,
        classname=test.classname,
        parent=test.parent,
        file_path=test.file,
        because=planned.because,
        times=planned.times,
    )


async def receive_repeats(call: Call, sent: models.ReportRepeats) -> RepeatsHeard:
    """Take in the runs of tests that a job was asked to run again."""
    addresses = await records.find_addresses(
        call.runtime, call.caller, sent.repo.ref, sent.org_url_slug
    )
    heard = await repeats.report(call.runtime, call.caller, addresses.repository, sent.reported())
    return RepeatsHeard(tests=heard.tests, runs=heard.rounds, disagreeing=list(heard.disagreeing))


LIVE_ROUTES: tuple[Route, ...] = (
    Posted(
        f"{VERSIONED}/flaky-tests/report-early-failure",
        Role.CI,
        models.ReportEarlyFailure,
        receive,
        writes=True,
        rate=RateClass.UPLOAD,
        takes_oidc=True,
    ).answering(EarlyFailureHeard, "organization_not_found", "limit_reached", "conflicting_fields"),
    Fetched(
        f"{VERSIONED}/flaky-tests/list-suspected-tests",
        Role.CI,
        list_suspected,
        rate=RateClass.UPLOAD,
        query=models.ListSuspectedTests,
        operation="listSuspectedTests",
        takes_oidc=True,
    ).answering(SuspectedTestsListed, "repository_not_found"),
    Posted(
        f"{VERSIONED}/flaky-tests/plan-repeats",
        Role.CI,
        models.PlanRepeats,
        plan_repeats,
        writes=True,
        rate=RateClass.UPLOAD,
        takes_oidc=True,
    ).answering(RepeatsPlanned, "organization_not_found", "upload_not_found", "conflicting_fields"),
    Posted(
        f"{VERSIONED}/flaky-tests/report-repeats",
        Role.CI,
        models.ReportRepeats,
        receive_repeats,
        writes=True,
        rate=RateClass.UPLOAD,
        takes_oidc=True,
    ).answering(
        RepeatsHeard,
        "organization_not_found",
        "plan_not_found",
        "upload_not_found",
        "not_the_job",
        "conflicting_fields",
    ),
)
"""The endpoints, in the order of the document."""
