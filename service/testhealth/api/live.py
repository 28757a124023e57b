"""Handlers of the endpoints for jobs that run: failed tests, and the tests to run first."""

from service.accounts import access
from service.http.callers import Call
from service.http.rates import RateClass
from service.http.route import VERSIONED, Fetched, Posted, Route
from service.testhealth.api.models import live as models
from service.testhealth.api.models.answers.live import (
    EarlyFailureHeard,
    SuspectedTestShown,
    SuspectedTestsListed,
)
from service.testhealth.early_failures import EarlyFailure, EarlyStanding
from service.testhealth.operations import early_failures, records, suspects
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
)
"""The endpoints, in the order of the document."""
