"""Conflicts that the landing of a chain will meet, found before anything is tested.

The merge call of a squash or a rebase gives the target new commits, so the next member of a chain
merges without the history of the one below it (docs/design/landing.md 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import Reason
from service.provider.values import (
    BuildRequest,
    BuildStep,
    Conflicted,
    Construction,
    PullRequest,
    Vehicle,
)
from service.runtime import Runtime
from service.vocabulary import QueueRef, Sha

MERGES_MAX = 10_000
"""Merges of which a process remembers whether rules resolve them."""

UNNAMED = "headgate/temp/rehearsal"
"""Stands for the branches of a build that pushes none."""


@dataclass
class Merges:
    """Heads that merge into tips by rules, or do not, as git has said lately."""

    known: LRUCache[tuple[object, ...], bool] = field(default_factory=lambda: LRUCache(MERGES_MAX))


async def is_resolved(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, pull: PullRequest
) -> bool:
    """Return whether rules resolve the conflict of a pull request with its target branch.

    Not of one whose commits the provider may have to land itself. False if git cannot tell now.
    """
    tip, rules = pull.base_tip, config.rules_for_conflicts
    if not rules or tip is None or pull.base_branch != queue.branch or pull.stack is not None:
        return False
    known = runtime.memory.of(Merges).known
    key = (queue.repository_id, pull.head_sha, tip, config.merge_method, rules)
    if key not in known:
        request = rehearsal(runtime, queue, config, [pull], tip)
        rehearsed = await runtime.providers[queue.repo.host].rehearse(request)
        if rehearsed is None:
            return False
        known[key] = rehearsed.conflict is None
    return known[key]


async def conflict(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, pulls: Sequence[PullRequest]
) -> Refused | None:
    """Return why the members of a chain cannot land one after the other; None if they can.

    Also None where git cannot tell now: then the build of their test branch finds it.
    """
    tip = tip_of(value, pulls)
    if len(pulls) < 2 or value.config.lands_commits or tip is None or _is_native(pulls):
        return None
    request = rehearsal(runtime, queue, value.config, pulls, tip)
    found = await runtime.providers[queue.repo.host].rehearse(request)
    if found is None or found.conflict is None or found.conflict.with_base:
        return None
    return _refused(found.conflict, pulls)


def tip_of(value: MergeQueue, pulls: Sequence[PullRequest]) -> Sha | None:
    """Return the target's commit as read with the lowest of a chain, else the one that is known."""
    return pulls[0].base_tip or (value.tip.sha if value.tip is not None else None)


def rehearsal(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, pulls: Sequence[PullRequest], tip: Sha
) -> BuildRequest:
    """Return the build of these heads, one after the other, of which no branch is made."""
    now = runtime.clock.now()
    return BuildRequest(
        repo=queue.repo,
        run_id="",
        deployment_id="",
        target=queue.branch,
        base_sha=tip,
        steps=tuple(BuildStep(one.number, one.head_sha, "", now, True, None) for one in pulls),
        known_trees=frozenset(),
        branch=UNNAMED,
        scratch=UNNAMED,
        vehicle=Vehicle.PUSH,
        construction=Construction.PUSH_NEW_BRANCH_FROM_TEMP,
        title="",
        body="",
        method=config.merge_method,
        lands=config.lands_commits,
        rules=config.rules_for_conflicts,
    )


def _is_native(pulls: Sequence[PullRequest]) -> bool:
    """Return whether the provider itself lands all of them by one call."""
    stack = pulls[-1].stack
    return stack is not None and stack.is_native


def _refused(found: Conflicted, pulls: Sequence[PullRequest]) -> Refused | None:
    place = next((i for i, one in enumerate(pulls) if one.number == found.number), 0)
    if place == 0:
        return None
    below = next((one for one in pulls if one.number == found.culprit), pulls[place - 1])
    return Refused(
        Reason.CONFLICT_AFTER_LANDING,
        "",
        prs=(found.number, below.number),
        head=below.head_sha,
        paths=found.paths,
    )
