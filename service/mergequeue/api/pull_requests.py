"""Handlers of the pull request endpoints (API.md 4): one operation each."""

from service.accounts import access
from service.http import rates
from service.http.call import Call
from service.http.callers import Caller
from service.http.models.common import Named
from service.http.rendering import Json
from service.mergequeue.api import explanation, responses
from service.mergequeue.api.models import pull_requests as models
from service.mergequeue.operations import (
    explain,
    fork_runs,
    impacted_targets,
    pull_requests,
    queues,
)
from service.mergequeue.operations.fork_runs import Claim
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.provider.errors import Throttled
from service.runtime import Runtime
from service.vocabulary import QueueRef


async def submit(call: Call, asked: models.SubmitPullRequest) -> Json:
    """`/submitPullRequest`."""
    queue = await queue_of(call, asked)
    options = SubmitOptions(
        priority=asked.wanted_priority(), no_batch=asked.no_batch, sha=asked.pr.head()
    )
    submitted = await pull_requests.submit(
        call.runtime, queue, asked.pr.number, options, call.actor
    )
    return {**responses.record(submitted.view, call.public_url), "result": submitted.result}


async def cancel(call: Call, asked: models.CancelPullRequest) -> Json:
    """`/cancelPullRequest`."""
    queue = await queue_of(call, asked)
    view = await pull_requests.cancel(
        call.runtime, queue, asked.pr.number, call.actor, asked.reason or ""
    )
    return responses.record(view, call.public_url)


async def restart(call: Call, asked: models.RestartTestsOnPullRequest) -> Json:
    """`/restartTestsOnPullRequest`."""
    queue = await queue_of(call, asked)
    restarted = await pull_requests.restart(call.runtime, queue, asked.pr.number, call.actor)
    return {**responses.record(restarted.view, call.public_url), "result": restarted.result}


async def get(call: Call, asked: models.GetSubmittedPullRequest) -> Json | bytes:
    """`/getSubmittedPullRequest`."""
    queue = await queue_of(call, asked)
    with_timeline = bool(asked.include_timeline)
    view = await pull_requests.status(
        call.runtime, queue, asked.pr.number, include_timeline=with_timeline
    )
    if with_timeline:
        return responses.record(view, call.public_url)
    return call.fragments.record(view)


async def explained(call: Call, asked: models.ExplainPullRequest) -> Json:
    """`/explainPullRequest`."""
    queue = await queue_of(call, asked)
    view = await explain.explain(call.runtime, queue, asked.pr.number)
    return explanation.of(view, (await queues.read(call.runtime, queue)).value)


async def preview_cancel(call: Call, asked: models.PreviewCancelPullRequest) -> Json:
    """`/previewCancelPullRequest`; nothing is changed."""
    queue = await queue_of(call, asked)
    preview = await pull_requests.preview_cancel(call.runtime, queue, asked.pr.number, call.actor)
    return responses.cancel_preview(preview)


async def set_targets(call: Call, asked: models.SetImpactedTargets) -> Json:
    """`/setImpactedTargets`; the queue must exist, the pull request need not be in it."""
    queue = await queue_of(call, asked)
    upload = Upload(asked.pr.number, asked.pr.head(), asked.targets())
    return responses.targets(
        await impacted_targets.set_targets(call.runtime, queue, upload, call.actor)
    )


async def fork_caller(runtime: Runtime, run_id: str, asked: models.SetImpactedTargets) -> Caller:
    """Who `/setImpactedTargets` comes from that has no token but names a CI run (API.md 2)."""
    claim = Claim(asked.repo.ref, asked.target_branch, asked.pr.number, asked.fork_head())
    try:
        return await fork_runs.caller_of(runtime, run_id, claim)
    except Throttled as throttled:
        wait_s = (throttled.retry_at - runtime.clock.now()).total_seconds()
        raise rates.too_many(throttled.message, wait_s) from throttled


async def queue_of(call: Call, asked: Named) -> QueueRef:
    """The queue that a request names. Raises NotFound."""
    return await access.find_queue(call.runtime, call.caller, asked.repo.ref, asked.target_branch)
