"""The statuses that a run must pass, and their source (docs/design/provider.md 9).

Sources in order: the repository's file, whose names are added to those of the branch's protection
at the provider; the queue's own setting, which replaces them; the branch's protection. Unreadable
is never "none".
"""

from dataclasses import dataclass, replace

from service.mergequeue.engine.inputs import Input, PlaceHold, ReleaseHold, RequiredChanged
from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.operations import reporters
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


@dataclass(frozen=True, slots=True)
class Override:
    """The setting `requiredStatuses`; names of a file add to the branch's rules."""

    names: tuple[str, ...]
    is_from_file: bool = False


def override_of(queue: MergeQueue) -> Override | None:
    """Return the setting that is in force in a queue, None if there is none."""
    names = queue.config.required_statuses
    is_from_file = queue.file is not None and "required_statuses" in queue.file.names
    return None if names is None else Override(names, is_from_file)


def own_check(branch: str) -> str:
    """Return the name of our own check run, which is never required of a test branch."""
    return f"Headgate ({branch})"


async def resolve(
    runtime: Runtime,
    repo: RepoRef,
    branch: str,
    override: Override | None,
    queue: MergeQueue | None = None,
) -> Resolved:
    """Return what a run started now must pass. Raises the provider's errors except refusals.

    With a queue, each name is bound to whose reports count for it (`reporters.py`).
    """
    found = await _read(runtime, repo, branch, override)
    if queue is None or found.owned:
        return found
    return replace(found, required=await reporters.bound(runtime, repo, found.required, queue))


async def _read(
    runtime: Runtime, repo: RepoRef, branch: str, override: Override | None
) -> Resolved:
    try:
        read = await runtime.providers[repo.host].required(repo, branch)
    except Refused as refused:
        if refused.code is not RefusedCode.PROVIDER_QUEUE:
            raise
        return Resolved(RequiredSet(), error=PROVIDER_QUEUE, owned=True)
    match read:
        case Unreadable(reason=reason):
            unknown = Resolved(RequiredSet(), error=reason or UNREADABLE)
            return _overridden(override, branch, unknown)
        case Known(checks=checks, merge_methods=methods, notes=notes, own_required=own_required):
            names = _without_own(checks, branch)
            source = RequiredSource.BRANCH_PROTECTION if names else None
            resolved = Resolved(
                RequiredSet(names, source, notes),
                own_required=own_required,
                merge_methods=methods,
            )
            return _overridden(override, branch, resolved)


def _overridden(override: Override | None, branch: str, resolved: Resolved) -> Resolved:
    if override is None:
        return resolved
    given = _without_own(tuple(RequiredName(name) for name in override.names), branch)
    read = resolved.required
    if not override.is_from_file:
        required = RequiredSet(given, RequiredSource.MERGE_INSTANCE, read.notes)
        return replace(resolved, required=required, error=None)
    known = {name.name for name in read.names}
    added = tuple(name for name in given if name.name not in known)
    if read.names and not given:
        return resolved
    both = RequiredSet((*read.names, *added), RequiredSource.VENDOR_CONFIG, read.notes)
    return replace(resolved, required=both)


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
