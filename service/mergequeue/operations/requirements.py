"""The statuses that a run must pass, their source, and whose reports count for each.

Sources in order: the repository's file, whose names are added to those of the branch's protection
at the provider; the queue's own setting, which replaces them; the branch's protection. Unreadable
is never "none" (docs/design/provider.md 9).

Where the branch's rules bind a name to no App, a setting says who reports it, or Headgate learns
it: from the newest commit of the target branch, from heads of pull requests, and for check runs
also from test branches (docs/design/provider.md 8.3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cachetools import LRUCache

from service.memory import QUEUES_MAX
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import Input, PlaceHold, ReleaseHold, RequiredChanged
from service.mergequeue.engine.model import MergeQueue, RequiredSet
from service.mergequeue.engine.reasons import HoldReason
from service.provider.errors import ProviderError, Refused, RefusedCode
from service.provider.values import Checks, Known, Unreadable
from service.runtime import Runtime
from service.vocabulary import (
    BY_SETTING,
    SYSTEM,
    Binding,
    Check,
    CheckKind,
    MergeMethod,
    RepoRef,
    RequiredName,
    RequiredSource,
    Sha,
)

HEADS_MAX = 4
"""Newest heads in the queue from which reporters are learned, beside the target's tip."""

READ_AGAIN = timedelta(minutes=5)
"""After this time the same commits are read again for a name without a known reporter."""

ANY = "any"


@dataclass(frozen=True, slots=True)
class Seen:
    """A report of a name, and the commit that has it, in words."""

    check: Check
    on: str


@dataclass(frozen=True, slots=True)
class Sightings:
    """Reports on the target's tip, on heads and on test branches; `author` by number of a head."""

    target: tuple[Seen, ...] = ()
    heads: tuple[Seen, ...] = ()
    tests: tuple[Seen, ...] = ()

    def of(self, required: RequiredName) -> "Sightings":
        """Return those that a requirement allows by name and App."""
        parts = (self.target, self.heads, self.tests)
        bare = RequiredName(required.name, required.source_id)
        return Sightings(*(tuple(one for one in part if bare.admits(one.check)) for part in parts))


async def bound(
    runtime: Runtime, repo: RepoRef, required: RequiredSet, queue: MergeQueue
) -> RequiredSet:
    """Return the required names with whose reports count, those of heads apart.

    What was learned stays, until that reporter is gone from the target's tip and the check run of
    an App reports the name there. Reads the provider only for a name without a known reporter.
    """
    given = _given_by(queue.config)
    known = {} if queue.required is None else _known(queue.required)
    names = {one: _settled(one, given, known) for one in required.names}
    moved = {found.name for found in _moved(queue)}
    open_ones = [one for one, found in names.items() if found is None or found.name in moved]
    if open_ones:
        seen = await _sightings(runtime, repo, queue)
        for one in open_ones:
            names[one] = _relearned(runtime, one, names[one], seen)
    found = [names[one] or _unseen(one) for one in required.names]
    heads = frozenset(queue.config.head_only_statuses)
    here = tuple(one for one in found if one.name not in heads)
    source = required.source if here or not found else None
    on_heads = tuple(one for one in found if one.name in heads)
    return replace(required, names=here, source=source, on_heads=on_heads)


def _given_by(config: QueueConfig) -> Mapping[str, RequiredName]:
    """Return what `statusReporters` says of each name, without pins of the branch's rules."""
    found = {}
    for each in config.status_reporters:
        name, _, reporter = each.rpartition("=")
        binding = Binding(reporter, BY_SETTING)
        if reporter.isdigit():
            found[name] = RequiredName(name, reporter, binding=binding)
        elif reporter.startswith("@"):
            account = reporter.removeprefix("@")
            found[name] = RequiredName(name, None, CheckKind.STATUS, account, binding)
        elif reporter == ANY:
            found[name] = RequiredName(name, binding=binding)
    return found


def _known(required: RequiredSet) -> dict[tuple[str, str | None], RequiredName]:
    """Return what was learned, by name and by the App that the rules bind it to."""
    learned = [
        one
        for one in (*required.names, *required.on_heads)
        if one.binding is not None and one.binding.on not in ("", BY_SETTING)
    ]
    return {(one.name, source): one for one in learned for source in (None, one.source_id)}


def unlearned(config: QueueConfig, names: Iterable[str]) -> Iterable[RequiredName]:
    """Yield names that are not required, with whose reports count by the settings alone.

    Without one the check run of any App counts, and a status, which any writer can set, does not.
    """
    given = _given_by(config)
    for name in names:
        yield given[name] if name in given else _unseen(RequiredName(name))


def _settled(
    one: RequiredName,
    given: Mapping[str, RequiredName],
    known: Mapping[tuple[str, str | None], RequiredName],
) -> RequiredName | None:
    """Return a name with the reporter that is known for it; None: it has to be learned."""
    if one.name in given:
        return replace(given[one.name], source_id=one.source_id or given[one.name].source_id)
    return known.get((one.name, one.source_id))


def _moved(queue: MergeQueue) -> Iterable[RequiredName]:
    """Yield names of which a live run has no report that counts, but an App's check run."""
    for run in queue.runs.values():
        for one in verdict.standings_of(run):
            is_run = one.foreign is not None and one.foreign.kind is CheckKind.SUITE_RUN
            if one.required.binding is not None and is_run:
                yield one.required


def _relearned(
    runtime: Runtime, one: RequiredName, before: RequiredName | None, seen: Sightings
) -> RequiredName | None:
    found = seen.of(one)
    if before is None:
        learned = learn(one, found)
    elif before.binding is None or before.binding.on == BY_SETTING:
        return before
    else:
        is_there = any(before.admits(each.check) for each in found.target)
        learned = None if is_there else learn(one, Sightings(target=found.target))
        if learned is None or learned.kind is not CheckKind.SUITE_RUN:
            return before
    if learned is None or learned.binding is None:
        return None
    return replace(learned, binding=replace(learned.binding, at=runtime.clock.now()))


def learn(one: RequiredName, seen: Sightings) -> RequiredName | None:
    """Return a name with the reporter that these reports show; None if they show none.

    A check run goes before a commit status, which everybody with write access can set. The App is
    the one that reports on the target and on heads, else the only one anywhere; of several Apps
    every one counts. An account counts if it alone set the status, and not on its own pull request.
    """
    target, heads, tests = map(_by_app, (seen.target, seen.heads, seen.tests))
    both = {app: target[app] for app in target.keys() & heads.keys()}
    apps = both or {**heads, **target} or tests
    if apps:
        first = next(iter(apps.values()))
        by = first.check.author if len(apps) == 1 else ""
        source = first.check.source_id if len(apps) == 1 else one.source_id
        binding = Binding(by, first.on, is_pinned=one.source_id is not None)
        return RequiredName(one.name, source, CheckKind.SUITE_RUN, None, binding)
    for part in (seen.target, seen.heads):
        accounts = {each.check.account: each for each in part if each.check.account is not None}
        if len(accounts) == 1:
            [(account, only)] = accounts.items()
            binding = Binding(only.check.author, only.on, is_pinned=one.source_id is not None)
            return RequiredName(one.name, one.source_id, CheckKind.STATUS, account, binding)
    return None


def _by_app(seen: Sequence[Seen]) -> dict[str, Seen]:
    return {
        each.check.source_id: each
        for each in seen
        if each.check.kind is CheckKind.SUITE_RUN and each.check.source_id is not None
    }


def _unseen(one: RequiredName) -> RequiredName:
    """Return a name without a known reporter: the check run of any App counts, no status does.

    The rules of the branch may bind it to an App; then they decide alone.
    """
    if one.source_id is not None:
        return one
    return replace(one, kind=CheckKind.SUITE_RUN, binding=Binding("", ""))


async def _sightings(runtime: Runtime, repo: RepoRef, queue: MergeQueue) -> Sightings:
    """Read the reports on the target's tip and on heads by one query; those of runs are known.

    Without an answer of the provider nothing is learned.
    """
    tests = tuple(
        Seen(check, "a test branch")
        for run in queue.runs.values()
        for check in run.checks
        if check.kind is CheckKind.SUITE_RUN
    )
    newest = sorted(queue.entries.values(), key=lambda entry: entry.submitted_at)[-HEADS_MAX:]
    heads = {entry.head: entry for entry in newest}
    commits = [*([] if queue.tip is None else [queue.tip.sha]), *heads]
    if not commits or not _is_due(runtime, queue, commits):
        return Sightings(tests=tests)
    try:
        provider = runtime.providers[repo.host]
        read = await provider.checks_of_many(repo, list(dict.fromkeys(commits)), skipped_pass=True)
    except ProviderError:
        return Sightings(tests=tests)
    on_heads = [
        Seen(check, f"#{entry.pr}")
        for sha, entry in heads.items()
        for check in _of(read, sha)
        if check.kind is CheckKind.SUITE_RUN or check.author != entry.facts.author
    ]
    tip = () if queue.tip is None else _of(read, queue.tip.sha)
    on_target = tuple(Seen(check, queue.branch) for check in tip)
    return Sightings(on_target, tuple(on_heads), tests)


def _of(read: Mapping[Sha, Checks], sha: Sha) -> tuple[Check, ...]:
    return read[sha].items if sha in read else ()


class ReportersRead(LRUCache[int, tuple[tuple[str, ...], datetime]]):
    """Commits from which reporters were learned last, with the time, by queue."""

    def __init__(self) -> None:
        super().__init__(QUEUES_MAX)


def _is_due(runtime: Runtime, queue: MergeQueue, commits: Sequence[Sha]) -> bool:
    """Return whether these commits have not been read for this lately, and note that they are."""
    memory, now = runtime.memory.of(ReportersRead), runtime.clock.now()
    known = memory.get(queue.id)
    if known is not None and known[0] == tuple(commits) and now < known[1] + READ_AGAIN:
        return False
    memory[queue.id] = (tuple(commits), now)
    return True


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

    With a queue, each name is bound to whose reports count for it (`reporters.py`). One in shadow
    works beside the provider's own.
    """
    is_beside = queue is not None and queue.config.shadow
    found = await _read(runtime, repo, branch, override, is_beside=is_beside)
    if queue is None or found.owned:
        return found
    return replace(found, required=await bound(runtime, repo, found.required, queue))


async def resolve_beside(
    runtime: Runtime, repo: RepoRef, branch: str, override: Override | None
) -> Resolved:
    """Return what a queue in shadow would have to pass, also beside the provider's own queue."""
    return await _read(runtime, repo, branch, override, is_beside=True)


async def _read(
    runtime: Runtime, repo: RepoRef, branch: str, override: Override | None, *, is_beside: bool
) -> Resolved:
    try:
        read = await runtime.providers[repo.host].required(repo, branch, is_beside=is_beside)
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
