"""The next step of a program, as every answer shows it (docs/design/next-steps.md 3)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from service.errors import ServiceError
from service.http.callers import Call
from service.mergequeue.api import responses
from service.mergequeue.api.models.answers import next_steps as answers
from service.mergequeue.api.models.answers.runs import IncompleteReport
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations import queue_access
from service.mergequeue.operations.next_steps import failures_of_run
from service.mergequeue.wording import foreseen, next_steps
from service.mergequeue.wording.failed_tests import FailedTest, Standing
from service.mergequeue.wording.next_steps import DescribedStep, Place
from service.mergequeue.wording.notices import Failures


def shown(made: DescribedStep) -> answers.NextStepShown:
    """Return the step as an answer."""
    step = made.step
    return answers.NextStepShown(
        pr_number=made.place.number,
        target_branch=made.place.branch,
        kind=step.kind.value,
        text=made.text,
        code=step.code,
        who_must_act=step.who,
        person=made.person or None,
        since=step.since,
        at=step.at,
        pull_requests=list(step.prs),
        commit=made.commit,
        paths=list(step.paths),
        conflicts_with=[
            answers.OwnerShown(pr_number=one.number, author=one.author, merged=one.is_merged)
            for one in made.owners
        ],
        failures=failures(made.failures),
        percent=made.percent,
        suspects=list(made.suspects),
        call=None if made.call is None else answers.CallShown.of(made.call),
        record_version=made.version,
    )


@asynccontextmanager
async def telling(call: Call, place: Place) -> AsyncIterator[None]:
    """Add the next step to the error with which a request about a pull request is refused."""
    try:
        yield
    except ServiceError as error:
        runtime = call.runtime
        step = next_steps.after_refusal(place, error, runtime.clock.now())
        if step is not None and error.code == Reason.FAILED_BEFORE:
            queue = await queue_access.find_queue(runtime, call.caller, place.repo, place.branch)
            run_id = str(error.members["run_id"])
            found = await runtime.store.read(failures_of_run, runtime, queue, run_id)
            step = replace(step, failures=found)
        if step is not None:
            told = shown(step).model_dump(mode="json")
            error.members = {**error.members, "next_step": told}
        raise


def failures(found: Failures | None) -> answers.FailuresShown | None:
    """Return what failed, as answers show it."""
    if found is None:
        return None
    return answers.FailuresShown(
        text=found.text,
        checks=[
            answers.FailedCheckShown(
                name=one.name,
                url=one.url or None,
                because=one.because or None,
                foreseen=foreseen.told(one),
                failed_before=responses.failed_jobs(one.after),
            )
            for one in found.checks
        ],
        tests=[_failed_test(one) for one in found.tests.shown],
        failed_tests=found.tests.failed,
        excused_tests=found.tests.excused,
        incomplete_reports=[
            IncompleteReport(name=name, reasons=list(lacks)) for name, lacks in found.tests.gaps
        ],
    )


def _failed_test(test: FailedTest) -> answers.FailedTestShown:
    return answers.FailedTestShown(
        id=test.id,
        name=test.name,
        file=test.file or None,
        line=test.line,
        message=test.message,
        trace=list(test.trace),
        known_as=test.standing.value,
        quarantined=test.standing is Standing.EXCUSED,
        new_failure_text=test.is_new_text,
        fails_on=test.fails_on or None,
        log=test.log or None,
        page=test.page or None,
    )
