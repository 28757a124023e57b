"""Handlers of the endpoints of `headgate doctor`."""

from collections.abc import Sequence
from datetime import timedelta

from service.accounts import access
from service.errors import NotFound
from service.http.callers import Call
from service.http.models import common
from service.http.route import Route, read, write
from service.mergequeue.api.models import doctor as models
from service.mergequeue.api.models.answers import doctor as answers
from service.mergequeue.operations.doctor import doctor, dry_test
from service.provider.audits import Finding, Severity
from service.vocabulary import Role, Sha


@read("runDoctor", models.RunDoctor, answers.Examined, "branch_not_found", role=Role.ADMIN)
async def run(call: Call, request: models.RunDoctor) -> answers.Examined:
    """Examine the settings at the provider that the queue depends on."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    if request.target_branch is not None:
        _check_branch(request.repo.ref.slug, request.target_branch)
    found = await doctor.examine(call.runtime, repository, request.target_branch)
    return answers.Examined(
        branch=found.branch, passed=_passed(found.findings), findings=_shown(found.findings)
    )


@write(
    "startDryTest",
    Role.ADMIN,
    models.StartDryTest,
    answers.DryTestStarted,
    "branch_not_found",
    "dry_test_refused",
)
async def start_dry_test(call: Call, request: models.StartDryTest) -> answers.DryTestStarted:
    """Show CI the target branch alone on a test branch, to see what reports."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    _check_branch(request.repo.ref.slug, request.target_branch)
    minutes = request.timeout_minutes
    limit = dry_test.LIMIT if minutes is None else timedelta(minutes=minutes)
    made = await dry_test.start(call.runtime, repository, request.target_branch, limit, call.actor)
    return answers.DryTestStarted.of(made, target_branch=made.target)


@read("getDryTest", models.GetDryTest, answers.DryTestShown, "dry_test_not_found", role=Role.ADMIN)
async def get_dry_test(call: Call, request: models.GetDryTest) -> answers.DryTestShown:
    """Return what has reported on the branch of a dry test."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    sha = Sha(request.sha.lower())
    found = await dry_test.progress(
        call.runtime, repository, request.target_branch, request.branch, sha
    )
    return answers.DryTestShown(
        over=found.is_over, passed=_passed(found.findings), findings=_shown(found.findings)
    )


@write("endDryTest", Role.ADMIN, models.EndDryTest, answers.DryTestEnded, "dry_test_not_found")
async def end_dry_test(call: Call, request: models.EndDryTest) -> answers.DryTestEnded:
    """Remove the branch of a dry test and its draft pull request."""
    repository = await access.find_repository(call.runtime, call.caller, request.repo.ref)
    await dry_test.end(call.runtime, repository, request.branch)
    return answers.DryTestEnded(ended=True)


def _check_branch(slug: str, branch: str) -> None:
    if common.git_would_refuse(branch):
        raise NotFound(f'{slug} has no branch "{branch}".', code="branch_not_found")


def _passed(findings: Sequence[Finding]) -> bool:
    return all(one.severity is not Severity.ERROR for one in findings)


def _shown(findings: Sequence[Finding]) -> list[answers.FindingShown]:
    return [answers.FindingShown.of(one, severity=one.severity.value) for one in findings]


DOCTOR_ROUTES: tuple[Route, ...] = (run, start_dry_test, get_dry_test, end_dry_test)
"""The endpoints of the doctor, in the order of the document."""
