"""Chains of pull requests that are no native stack (docs/design/engine.md 5).

The provider lands such a pull request on its base only, so Headgate changes the base of the next
one when the one below it has landed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import LandStep
from service.provider.errors import Gone, GoneKind
from service.provider.values import PullRequest
from service.runtime import Runtime
from service.vocabulary import Blocker, BlockerCode, PullRequestState, QueueRef, RepoRef

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChangeBase:
    """The pull request is to be based on the queue's branch: the one below it has landed.

    Only while it is based on `base`; empty: whatever its base is.
    """

    number: int
    base: str = ""


outbox.EFFECT.add(ChangeBase)


async def with_chain(
    runtime: Runtime, repo: RepoRef, pull: PullRequest, branch: str | None = None
) -> PullRequest:
    """Return it as a member of the chain that leads to this branch, or to any; else unchanged."""
    is_settled = pull.stack is not None or pull.base_branch == branch
    if is_settled or pull.state is not PullRequestState.OPEN:
        return pull
    provider = runtime.providers[repo.host]
    chain = await provider.chain(repo, pull)
    if chain is None and branch is not None:
        # Its base may have been changed since it was read.
        return await provider.pull_request(repo, pull.number)
    if chain is None or branch not in (None, chain.target):
        return pull
    below = " ".join(str(one.number) for one in chain.below(pull.number))
    waits = Blocker(BlockerCode.STACKED, below)
    return replace(pull, stack=chain, blockers=(*pull.blockers, waits))


def ask_for(
    session: Tx, queue: QueueRef, value: MergeQueue, landed: Iterable[LandStep], now: datetime
) -> set[Lane]:
    """Store the changes of base in the transaction that records the landings; return their lane."""
    numbers = {step.pr for step in landed}
    # Its facts may be from before the landings of those further down.
    done = numbers | {step.pr for step in value.landed}
    items = [
        OutboxItem(
            lane=Lane.CONTROL,
            key=f"{entry.id}/change-base",
            kind="change_base",
            effect=ChangeBase(entry.pr, entry.facts.base),
            next_at=now,
        )
        for entry in value.entries.values()
        if entry.pr not in numbers
        and numbers.intersection(entry.facts.below)
        and done.issuperset(entry.facts.below)
        and not entry.facts.in_stack
    ]
    outbox.append(session, queue.repository_id, queue.id, 0, items)
    return {item.lane for item in items}


async def change_base(runtime: Runtime, queue: QueueRef, wanted: ChangeBase) -> None:
    """Change the base of the pull request, unless somebody has changed it; safe to repeat.

    Raises the provider's errors, after which it is tried again a limited number of times.
    """
    provider = runtime.providers[queue.repo.host]
    try:
        pull = await provider.pull_request(queue.repo, wanted.number, awaits_mergeability=False)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        return
    if wanted.base not in ("", pull.base_branch):
        return
    refused = await provider.change_base(queue.repo, wanted.number, queue.branch)
    if refused is not None:
        # GitHub refuses; the members of the stack above stay on their old base.
        log.warning("base_not_changed", pull_request=wanted.number, why=refused.reason)
