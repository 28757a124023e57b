"""The statuses that a run must pass, and their source (docs/design/provider.md 9).

Sources in order: the queue's own setting, then the branch's protection at the provider. Unreadable
is never "none" (docs/design/provider.md 9).
"""

from dataclasses import dataclass, replace

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.inputs import Input, PlaceHold, ReleaseHold, RequiredChanged
from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.reasons import HoldReason
from service.provider.errors import Refused, RefusedCode
from service.provider.values import (
    Known,
    Unreadable,
)
from service.runtime import Runtime
from service.vocabulary import SYSTEM, MergeMethod, RepoRef, RequiredName, RequiredSource

UNREADABLE = "The rules of the branch could not be read."
PROVIDER_QUEUE = "The provider's own merge queue owns this branch."


@dataclass(frozen=True, slots=True)
class Resolved:
    """Required statuses as read now; `error`: why they are unknown, `owned`: by another queue.

    `own_required`: the rules also require our own check. `merge_methods` None: no rule limits
    them.
    """

    required: RequiredSet
    error: str | None = None
    owned: bool = False
    own_required: bool = False
    merge_methods: frozenset[MergeMethod] | None = None


def own_check(branch: str) -> str:
    """Return the name of our own check run, which is never required of a test branch."""
    return f"Headgate ({branch})"


async def resolve(runtime: Runtime, repo: RepoRef, branch: str, config: QueueConfig) -> Resolved:
    """Return what a run started now must pass. Raises the provider's errors except refusals."""
    try:
        read = await runtime.providers[repo.host].required(repo, branch)
    except Refused as refused:
        if refused.code is not RefusedCode.PROVIDER_QUEUE:
            raise
        return Resolved(RequiredSet(), error=PROVIDER_QUEUE, owned=True)
    match read:
        case Unreadable(reason=reason):
            return _overridden(config, branch, Resolved(RequiredSet(), error=reason or UNREADABLE))
        case Known(checks=checks, merge_methods=methods, notes=notes, own_required=own_required):
            names = _without_own(checks, branch)
            source = RequiredSource.BRANCH_PROTECTION if names else None
            resolved = Resolved(
                RequiredSet(names, source, notes),
                own_required=own_required,
                merge_methods=methods,
            )
            return _overridden(config, branch, resolved)


def _overridden(config: QueueConfig, branch: str, resolved: Resolved) -> Resolved:
    if config.required_statuses is None:
        return resolved
    names = _without_own(tuple(RequiredName(name) for name in config.required_statuses), branch)
    required = RequiredSet(names, RequiredSource.MERGE_INSTANCE, resolved.required.notes)
    return replace(resolved, required=required, error=None)


def _without_own(names: tuple[RequiredName, ...], branch: str) -> tuple[RequiredName, ...]:
    return tuple(name for name in names if name.name != own_check(branch))


def reports(queue: MergeQueue, resolved: Resolved) -> list[Input]:
    """Return the inputs that bring the queue up to date; empty if it knows the resolution."""
    inputs: list[Input] = []
    held = [hold for hold in queue.holds if hold.reason is HoldReason.PROVIDER_QUEUE]
    if resolved.owned:
        if not held:
            inputs.append(PlaceHold(HoldReason.PROVIDER_QUEUE, None, PROVIDER_QUEUE, SYSTEM))
        return inputs
    inputs.extend(ReleaseHold(hold.id, "The rule is gone.", SYSTEM) for hold in held)
    unreadable = any(hold.reason is HoldReason.REQUIRED_STATUSES_UNREADABLE for hold in queue.holds)
    known = queue.required == resolved.required and not unreadable
    if resolved.error is not None or not known:
        inputs.append(RequiredChanged(resolved.required, resolved.error))
    return inputs
