"""Store uploaded impacted targets by head, and pass them to the queues.

An upload is stored before the queues receive it; a submission reads the stored targets before
and after its turn. So each of the two sees the other, in any order.
"""

import asyncio
from dataclasses import dataclass, replace

from service.accounts import access
from service.accounts.store import audit
from service.accounts.store.audit import AuditRow
from service.database.database import Tx
from service.mergequeue.engine.inputs import SetImpactedTargets
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import pull_requests, turn
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store import queues as stored
from service.mergequeue.store import target_sets
from service.mergequeue.store.pull_requests import PullRequestHead
from service.runtime import Runtime
from service.vocabulary import Actor, QueueRef, Sha


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
    runtime.memory.forget()
    change = SetImpactedTargets(upload.number, head, targets, actor)
    for ref in await runtime.store.read(stored.queues_of, queue.repository_id):
        if _has_head(await turn.last_value(runtime, ref.id), change):
            await turn.report(runtime, ref.id, [change])
    return StoredTargets(upload.number, head, targets.everything, len(targets.names))


def _store(session: Tx, place: PullRequestHead, targets: Targets, row: AuditRow) -> None:
    access.recheck(session, row.actor, row.at)
    known_pulls.put_targets(session, place, targets, row.at)
    audit.append(session, row)


def _has_head(value: MergeQueue, change: SetImpactedTargets) -> bool:
    entry = value.entries.get(change.pr)
    return entry is not None and entry.head == change.head
