"""Delete head branches of landed pull requests (docs/design/landing.md 8)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.outputs import LandStep
from service.mergequeue.store import queues
from service.provider.errors import Gone, GoneKind
from service.provider.values import NotPossible
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha

DELAY = timedelta(seconds=10)
"""The provider shows a landed pull request as merged only after a while."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DeleteHeadBranch:
    """The branch of this landed pull request is to be deleted if it still has this head."""

    number: int
    head: Sha


outbox.EFFECT.add(DeleteHeadBranch)


def ask_for(session: Tx, queue: QueueRef, landed: Iterable[LandStep], now: datetime) -> set[Lane]:
    """Store the deletions in the transaction that records the landings; return their lane."""
    items = [
        OutboxItem(
            lane=Lane.NOTICE,
            key=f"{step.entry}/delete-head",
            kind="delete_head",
            effect=DeleteHeadBranch(step.pr, step.head),
            next_at=now + DELAY,
        )
        for step in landed
    ]
    outbox.append(session, queue.repository_id, None, 0, items)
    return {item.lane for item in items}


async def delete(runtime: Runtime, repository_id: int, wanted: DeleteHeadBranch) -> None:
    """Delete the branch, or log why it stays; safe to repeat.

    Raises the provider's errors, after which it is tried again a limited number of times.
    """
    repository = await runtime.store.read(access.repository, repository_id)
    provider = runtime.provider_of(repository.ref.host)
    try:
        pull = await provider.pull_request(repository.ref, wanted.number, awaits_mergeability=False)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return
    other_queue = await runtime.store.read(
        queues.queue_ref, repository.org_id, repository_id, pull.head_branch
    )
    kept: NotPossible | None = NotPossible("It has a queue.")
    if other_queue is None or pull.is_fork:
        kept = await provider.delete_head(repository.ref, wanted.number, wanted.head)
    if kept is not None:
        log.info("head_branch_kept", pull_request=wanted.number, why=kept.reason)
