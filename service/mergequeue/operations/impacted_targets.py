"""Store uploaded impacted targets by head, and pass them to the queues.

An upload is stored before the queues receive it; a submission reads the stored targets before
and after its turn. So each of the two sees the other, in any order.
"""

import asyncio
from dataclasses import dataclass, replace

from service.accounts import access
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database.database import Tx
from service.errors import NotAllowed
from service.http.callers import Caller
from service.mergequeue.engine.inputs import SetImpactedTargets
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import pull_requests, turn
from service.mergequeue.operations.queue_views import QueueViews
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store import queues as stored
from service.mergequeue.store import target_sets
from service.mergequeue.store.pull_requests import PullRequestHead
from service.runtime import Runtime
from service.vocabulary import Actor, QueueRef, Role, Sha

OF_OTHER_CI = (
    "A job of another CI system names no pull request by its token, so it sets no impacted targets."
    " Send them from GitHub Actions, or with a token of role `queue`."
)

OF_EVERY_JOB = (
    "A token of role ci does not say which pull request a job tests, so it sets no targets."
    " Give the job `permissions: id-token: write` and send its OIDC token, as the action does; or"
    " send a token of role queue."
)


@dataclass(frozen=True, slots=True)
class StoredTargets:
    """The number of targets stored for a head of a pull request, or that it impacts all."""

    number: int
    sha: Sha
    impacts_all: bool
    count: int


@dataclass(frozen=True, slots=True)
class Upload:
    """The impacted targets of one head of a pull request; `sha` None: its present head."""

    number: int
    sha: Sha | None
    targets: Targets


async def own_upload(runtime: Runtime, queue: QueueRef, upload: Upload, caller: Caller) -> Upload:
    """Return the upload with its head, if the caller is of the pull request's own CI.

    A job of CI is: its OIDC token names the pull request, and its run names the head. A token of
    role `ci` is not, because the jobs of all pull requests hold it; one of role `queue` or `admin`
    is an operator's. A fork's run was proved before (`fork_runs.py`).
    Raises NotAllowed(not_own_pull_request).
    """
    if caller.job is None:
        if caller.role is Role.CI and caller.token_id:
            raise NotAllowed(OF_EVERY_JOB, code="not_own_pull_request")
        return upload
    job = caller.job
    if job.is_of_other_ci:
        raise NotAllowed(OF_OTHER_CI, code="not_own_pull_request")
    run = await runtime.providers[queue.repo.host].ci_run(queue.repo, job.run_id, job.run_attempt)
    if run is None or job.pr_number != upload.number or upload.sha not in (None, run.head_sha):
        tested = "no pull request" if job.pr_number is None else f"pull request #{job.pr_number}"
        at = "" if run is None else f" at {run.head_sha[:8]}"
        raise NotAllowed(
            f"CI run {job.run_id} tests {tested}{at}, and a job sets the impacted targets of what "
            "it tests alone. Send pr.number and pr.sha as the event of the run gives them.",
            code="not_own_pull_request",
        )
    return replace(upload, sha=run.head_sha)


async def set_targets(
    runtime: Runtime, queue: QueueRef, upload: Upload, actor: Actor
) -> StoredTargets:
    """Store the impacted targets of one head; the newest upload for a head wins.

    Every queue of the repository that has an entry with this head receives them.
    Raises NotFound(pull_request_not_found).
    """
    head = upload.sha
    if head is None:
        head = (await pull_requests.fetch_pull_request(runtime, queue.repo, upload.number)).head_sha
    place = PullRequestHead(queue.repository_id, upload.number, head)
    # Hashing a large set takes long: neither the loop nor the writer waits for it.
    targets = await asyncio.to_thread(target_sets.shared, upload.targets)
    row = pull_requests.audit_row(runtime, queue, actor, "pull_request.set_targets", upload.number)
    await runtime.store.run(_store, place, targets, replace(row, data={"head": head}))
    runtime.memory.of(QueueViews).forget()
    change = SetImpactedTargets(upload.number, head, targets, actor)
    for ref in await runtime.store.read(stored.queues_of, queue.repository_id):
        if _has_head(await turn.last_value(runtime, ref.id), change):
            await turn.report(runtime, ref.id, [change])
    return StoredTargets(upload.number, head, targets.everything, len(targets.names))


def _store(session: Tx, place: PullRequestHead, targets: Targets, row: AuditEntry) -> None:
    access.recheck(session, row.actor, row.at)
    known_pulls.put_targets(session, place, targets, row.at)
    audit.append(session, row)


def _has_head(value: MergeQueue, change: SetImpactedTargets) -> bool:
    entry = value.entries.get(change.pr)
    return entry is not None and entry.head == change.head
