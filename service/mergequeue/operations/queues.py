"""Create, read, change and delete queues, their states and holds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from service.accounts import access as callers
from service.accounts import audit_log
from service.accounts.store import access, audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import FieldError, Invalid, Malformed, NotFound
from service.mergequeue.engine.applying.commands import HOLDS_MAX
from service.mergequeue.engine.config import (
    CLI_DEFAULTS,
    RULES_NEED_LANDING,
    ConfigValue,
    QueueConfig,
    changed,
    out_of_range,
)
from service.mergequeue.engine.inputs import (
    Command,
    Configure,
    Delete,
    Input,
    PlaceHold,
    ReleaseHold,
    RepositoryChanged,
    RequiredChanged,
    SetState,
    TargetMoved,
    WorkflowsChanged,
)
from service.mergequeue.engine.model import Hold, MergeQueue, Tip
from service.mergequeue.engine.outputs import Step
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import (
    building,
    pull_requests,
    queue_views,
    repository_file,
    repository_files,
    requirements,
    turn,
    vehicles,
)
from service.mergequeue.operations.announcements import TurnResult
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.operations.repository_files import Target
from service.mergequeue.operations.views import QueueView
from service.mergequeue.reasons.record import HoldScope
from service.mergequeue.store import queues as stored
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, MergeMethod, QueueRef

QUEUES_MAX = 100
OF_LANDING = frozenset({"conflict_rules", "merge_method", "land_tested_commits"})
"""Settings of which rules for conflicts depend."""
OF_REQUIRED = frozenset({"required_statuses", "head_only_statuses", "status_reporters"})
"""Settings after whose change the required statuses are read again."""
METHOD_PREFERENCE = (MergeMethod.SQUASH, MergeMethod.MERGE_COMMIT, MergeMethod.REBASE)
"""A first queue uses the first of these that the repository and its rules allow."""


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """The request to create or update a queue.

    `state` None: keep it. A `reason` alone is one for the present state, unless the queue runs.
    """

    settings: Mapping[str, ConfigValue]
    state: QueueState | None = None
    reason: str | None = None
    expected_version: int | None = None


async def create(
    runtime: Runtime, repository: RepositoryRecord, branch: str, request: QueueRequest, actor: Actor
) -> QueueView:
    """Create a queue for an existing branch.

    Raises NotFound(branch_not_found), Conflict(queue_exists), Invalid(merge_method_not_allowed,
    limit_reached), Malformed.
    """
    _check_settings(request.settings)
    provider = runtime.providers[repository.ref.host]
    tip = await provider.tip(repository.ref, branch)
    if tip is None:
        raise NotFound(f'{repository.ref.slug} has no branch "{branch}".', code="branch_not_found")
    target = Target(repository.ref, branch, tip.sha, repository.merge_methods)
    reading = await repository_files.read_files(runtime, target)
    given = {**request.settings, **reading.settings}.get(vehicles.SETTING)
    choice = await vehicles.choose(runtime, repository.ref, branch, tip.sha, given)
    settings = {vehicles.SETTING: choice.wants_drafts, **_with_defaults(request.settings)}
    own = _draft(runtime, branch, changed(QueueConfig(), settings), request, actor)
    draft = repository_files.with_file(replace(own, test_branch_reason=choice.reason), reading)
    _check_rules(draft, {})
    override = requirements.override_of(draft)
    new = replace(draft, tip=Tip(tip.sha, tip.tree))
    resolved = await requirements.resolve(runtime, repository.ref, branch, override, new)
    _check_method(repository, resolved, draft.config.merge_method)
    place = f"{repository.ref.host}/{repository.ref.slug}@{branch}"
    row = audit_log.allowed(actor, repository.org_id, "queue.create", place, runtime.clock.now())
    queue = await runtime.store.run(_insert, runtime, repository, draft, row)
    first = TargetMoved(Tip(tip.sha, tip.tree))
    inputs: list[Input] = [first, *requirements.reports(draft, resolved)]
    if choice.never:
        inputs.append(WorkflowsChanged(choice.never))
    if not any(isinstance(one, RequiredChanged) for one in inputs) and not resolved.owned:
        inputs.append(RequiredChanged(resolved.required, resolved.error))
    if await provider.can_rerun(repository.ref):
        inputs.append(RepositoryChanged(reruns=True))
    await turn.report(runtime, queue.id, inputs)
    await building.prepare(runtime, repository.ref, branch)
    return await queue_views.last_queue_view(runtime, queue)


def first_request(repository: RepositoryRecord, resolved: requirements.Resolved) -> QueueRequest:
    """Return the request for the first queue of a branch, which nobody gave settings for."""
    method = first_method(repository, resolved) or MergeMethod.SQUASH
    return QueueRequest({**CLI_DEFAULTS, "merge_method": method})


def first_method(
    repository: RepositoryRecord, resolved: requirements.Resolved
) -> MergeMethod | None:
    """Return the preferred merge method among the allowed ones, None if none is allowed."""
    allowed = _allowed_methods(repository, resolved)
    return next((method for method in METHOD_PREFERENCE if method in allowed), None)


def _allowed_methods(
    repository: RepositoryRecord, resolved: requirements.Resolved
) -> frozenset[MergeMethod]:
    allowed = repository.merge_methods
    return allowed if resolved.merge_methods is None else allowed & resolved.merge_methods


def _with_defaults(settings: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """`bisection_concurrency` follows `concurrency` at creation (docs/design/engine.md 6)."""
    chosen = dict(settings)
    if "concurrency" in chosen:
        chosen.setdefault("bisection_concurrency", chosen["concurrency"])
    return chosen


def _check_settings(settings: Mapping[str, ConfigValue]) -> None:
    wrong = out_of_range(settings)
    if wrong is not None:
        raise Malformed(f"{wrong} is out of range.", code="invalid_field")


def _check_rules(value: MergeQueue, settings: Mapping[str, ConfigValue]) -> None:
    """Refuse rules for conflicts where a merge call lands, which knows no rules."""
    after = changed(value.config, settings)
    if after.conflict_rules and not after.rules_for_conflicts:
        fault = FieldError("/conflictRules", "format", RULES_NEED_LANDING)
        text = f"conflictRules {RULES_NEED_LANDING}."
        raise Malformed(text, code="invalid_field", errors=(fault,))


def _check_method(
    repository: RepositoryRecord, resolved: requirements.Resolved, method: MergeMethod
) -> None:
    allowed = _allowed_methods(repository, resolved)
    if method not in allowed:
        names = ", ".join(sorted(one.value for one in allowed)) or "none"
        raise Invalid(
            f"{repository.ref.slug} does not allow {method.value}; allowed: {names}.",
            code="merge_method_not_allowed",
        )


def _draft(
    runtime: Runtime, branch: str, config: QueueConfig, request: QueueRequest, actor: Actor
) -> MergeQueue:
    chosen = (name for name, value in request.settings.items() if value is not None)
    return MergeQueue(
        id=0,
        uid=runtime.ids.uuid(),
        branch=branch,
        config=config,
        chosen=tuple(sorted(chosen)),
        state=request.state or QueueState.RUNNING,
        state_reason=request.reason if request.state is not None else None,
        state_since=runtime.clock.now(),
        state_by=actor,
    )


def _insert(
    session: Tx, runtime: Runtime, repository: RepositoryRecord, draft: MergeQueue, row: AuditEntry
) -> QueueRef:
    callers.recheck(session, row.actor, row.at)
    access.lock_organization(session, repository.org_id)
    if len(stored.queues_of(session, repository.id)) >= QUEUES_MAX:
        raise Invalid(
            f"{repository.ref.slug} has {QUEUES_MAX} queues already.", code="limit_reached"
        )
    made = stored.create(session, repository.org_id, repository.id, draft)
    ref = QueueRef(made.id, repository.org_id, repository.id, repository.ref, draft.branch)
    audit.append(session, row)
    whole = Step(queue=made, actions=(), events=(), refusal=None, wake_at=None)
    turn.record_result(session, runtime, TurnResult(ref, None, whole, row.at))
    return ref


def _audit_row(queue: QueueRef, actor: Actor, action: str, at: datetime) -> AuditEntry:
    return audit_log.allowed(actor, queue.org_id, action, audit_log.subject_of_queue(queue), at)


async def update(
    runtime: Runtime,
    queue: QueueRef,
    request: QueueRequest,
    actor: Actor,
) -> QueueView:
    """Change settings and state, all or nothing; nothing to change keeps the version.

    PAUSED returns after an open landing has ended, 20 s at most. Raises Malformed,
    Conflict(version_conflict, mode_switch_in_progress), Invalid(merge_method_not_allowed,
    set_in_repository_file).
    """
    _check_settings(request.settings)
    value = await turn.value(runtime, queue.id)
    _check_file(value, request.settings)
    if not OF_LANDING.isdisjoint(request.settings):
        _check_rules(value, request.settings)
    await _check_new_method(runtime, queue, value, request)
    reason = await _test_branch_reason(runtime, queue, request)
    commands = _commands(request, actor, reason)
    if commands:
        row = _audit_row(queue, actor, "queue.update", runtime.clock.now())
        along = turn.Along(audit=row, whole=True, expected_version=request.expected_version)
        steps = await turn.take(runtime, queue.id, commands, along)
        refused = next((step.refusal for step in steps if step.refusal is not None), None)
        if refused is not None:
            raise pull_requests.refusal_error(refused, queue.branch)
    if not OF_REQUIRED.isdisjoint(request.settings):
        await _refresh_required(runtime, queue)
    if request.state is QueueState.PAUSED:
        await wait_for_landing(runtime, queue)
    return await queue_views.last_queue_view(runtime, queue)


def set_by_file(value: MergeQueue, settings: Mapping[str, ConfigValue]) -> list[str]:
    """Return those settings, by their names in the API, whose value comes from a file."""
    names = () if value.file is None else value.file.names
    return repository_file.api_names(settings.keys() & set(names))


def _check_file(value: MergeQueue, settings: Mapping[str, ConfigValue]) -> None:
    """Refuse to change what a file of the repository sets."""
    fixed = set_by_file(value, settings)
    if fixed and value.file is not None:
        path = repository_file.path_of(fixed[0], value.file)
        raise Invalid(
            f"{path} on {value.branch} sets {', '.join(fixed)}. "
            "Change the file on that branch, or remove the setting there.",
            code="set_in_repository_file",
            members={"settings": fixed, "file": path},
        )


async def _check_new_method(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, request: QueueRequest
) -> None:
    method = request.settings.get("merge_method")
    if isinstance(method, MergeMethod) and method is not value.config.merge_method:
        override = requirements.override_of(value)
        resolved = await requirements.resolve(runtime, queue.repo, queue.branch, override)
        repository = await runtime.store.read(access.repository, queue.repository_id)
        _check_method(repository, resolved, method)


async def _test_branch_reason(
    runtime: Runtime, queue: QueueRef, request: QueueRequest
) -> str | None:
    """Return the reason shown for a kind of test branch that was set by hand."""
    given = request.settings.get(vehicles.SETTING)
    if given is None:
        return None
    tip = await runtime.providers[queue.repo.host].tip(queue.repo, queue.branch)
    if tip is None:
        return vehicles.BY_SETTING
    return (await vehicles.choose(runtime, queue.repo, queue.branch, tip.sha, given)).reason


def _commands(request: QueueRequest, actor: Actor, reason: str | None) -> list[Command]:
    commands: list[Command] = []
    if request.settings:
        commands.append(Configure(dict(request.settings), actor, reason))
    if request.state is not None or request.reason is not None:
        commands.append(SetState(request.state, request.reason, actor))
    return commands


async def _refresh_required(runtime: Runtime, queue: QueueRef) -> None:
    value = await turn.last_value(runtime, queue.id)
    override = requirements.override_of(value)
    resolved = await requirements.resolve(runtime, queue.repo, queue.branch, override, value)
    inputs = requirements.reports(value, resolved)
    if inputs:
        await turn.report(runtime, queue.id, inputs)


async def wait_for_landing(runtime: Runtime, queue: QueueRef) -> None:
    """Wait until no landing is open, or 20 s; one still unknown is then named by a hold."""
    topic = f"queue/{queue.id}"
    deadline = runtime.clock.monotonic_s() + pull_requests.LANDING_WAIT_S
    while True:
        seen = runtime.wakeups.version(topic)
        value = await turn.last_value(runtime, queue.id)
        left_s = deadline - runtime.clock.monotonic_s()
        if value.landing is None:
            return
        if left_s <= 0:
            break
        await runtime.wakeups.wait(topic, seen, left_s)
    text = "A landing was under way when the queue was paused, and its outcome is not known yet."
    held = PlaceHold(HoldReason.LANDING_UNRESOLVED, None, text, SYSTEM)
    await turn.report(runtime, queue.id, [held])


STATE_ACTIONS = {
    QueueState.RUNNING: "queue.resume",
    QueueState.PAUSED: "queue.pause",
    QueueState.DRAINING: "queue.drain",
}
"""The action in the audit log, by the state asked for."""


async def ask_for_state(
    runtime: Runtime, queue: QueueRef, state: QueueState, reason: str | None, by: Requester
) -> None:
    """Run, pause or drain the queue; a landing may still be open after a pause.

    Stores the requester's own rows in the same commit. Raises
    Conflict(mode_switch_in_progress).
    """
    command = SetState(state, reason, by.actor)
    await _ask(runtime, queue, command, STATE_ACTIONS[state], by)


async def set_state(
    runtime: Runtime, queue: QueueRef, state: QueueState, reason: str | None, by: Requester
) -> None:
    """Run, pause or drain the queue; a pause returns as in `update`. Raises as `ask_for_state`."""
    await ask_for_state(runtime, queue, state, reason, by)
    if state is QueueState.PAUSED:
        await wait_for_landing(runtime, queue)


async def delete(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    """Delete an empty queue; its history stays. Nothing enters it afterwards.

    Raises Conflict(queue_not_empty), NotFound(queue_not_found).
    """
    await _ask(runtime, queue, Delete(actor), "queue.delete", Requester(actor))


async def _ask(
    runtime: Runtime, queue: QueueRef, command: Command, action: str, by: Requester
) -> Step:
    """Give the queue a command with its audit entry; raise its refusal as an error."""
    row = _audit_row(queue, by.actor, action, runtime.clock.now())
    along = turn.Along(audit=row, on_taken=by.on_taken)
    step = await turn.ask(runtime, queue, command, along)
    if step.refusal is None:
        return step
    if isinstance(command, PlaceHold) and step.refusal.reason is Reason.LIMIT_REACHED:
        raise Invalid(f"The queue has {HOLDS_MAX} holds already.", code="limit_reached")
    raise pull_requests.refusal_error(step.refusal, queue.branch)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A freeze: its scope, reason and end (None: until released)."""

    text: str
    scope: HoldScope = HoldScope.BOTH
    until: datetime | None = None


async def add_hold(runtime: Runtime, queue: QueueRef, request: HoldRequest, actor: Actor) -> Hold:
    """Freeze the queue. Raises Invalid(limit_reached)."""
    command = PlaceHold(HoldReason.FREEZE, request.scope, request.text, actor, until=request.until)
    step = await _ask(runtime, queue, command, "queue.hold", Requester(actor))
    return step.queue.holds[-1]


async def release_hold(
    runtime: Runtime, queue: QueueRef, hold_id: str, text: str, actor: Actor
) -> None:
    """Release a hold with a reason.

    Raises NotFound(hold_not_found), Invalid(hold_not_liftable).
    """
    command = ReleaseHold(hold_id, text, actor)
    await _ask(runtime, queue, command, "queue.release", Requester(actor))
