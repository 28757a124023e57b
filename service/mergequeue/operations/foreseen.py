"""Conflicts that the landing of a chain will meet, found before anything is tested.

The merge call of a squash or a rebase gives the target new commits, so the next member of a chain
merges without the history of the one below it (docs/design/landing.md 11).
"""

from collections.abc import Sequence

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
from service.vocabulary import QueueRef

UNNAMED = "headgate/temp/rehearsal"
"""Stands for the branches of a build that pushes none."""


async def conflict(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, pulls: Sequence[PullRequest]
) -> Refused | None:
    """Return why the members of a chain cannot land one after the other; None if they can.

    Also None where git cannot tell now: then the build of their test branch finds it.
    """
    tip = pulls[0].base_tip or (value.tip.sha if value.tip is not None else None)
    if len(pulls) < 2 or value.config.lands_commits or tip is None or _is_native(pulls):
        return None
    provider, now = runtime.providers[queue.repo.host], runtime.clock.now()
    request = BuildRequest(
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
        method=value.config.merge_method,
    )
    found = await provider.rehearse(request)
    return None if found is None or found.with_base else _refused(found, pulls)


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
