"""Submit, cancel, restart and show pull requests.

Comments, the REST API and the command line all use these operations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from service.accounts import audit_log
from service.accounts.store.audit import AuditEntry
from service.database.database import Tx
from service.errors import Conflict, Invalid, NotFound, OverBudget, ServiceError
from service.mergequeue.engine.explaining import previews
from service.mergequeue.engine.explaining.previews import Preview
from service.mergequeue.engine.inputs import Cancel, Restart, SetImpactedTargets, Submit
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    EntryUpdated,
    Refused,
    Step,
)
from service.mergequeue.engine.past import Blamed, Over
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import (
    admission,
    chains,
    consents,
    estimates,
    facts,
    foreseen,
    naming,
    queue_views,
    requirements,
    turn,
    undone_work,
)
from service.mergequeue.operations.views import CommandResult, PullRequestView
from service.mergequeue.reasons.record import RefusalKind
from service.mergequeue.store import consents as stored_consents
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.wording import refusals
from service.provider.errors import Gone, GoneKind
from service.provider.stacks import StackMember
from service.provider.values import (
    PullRequest,
)
from service.runtime import Runtime
from service.vocabulary import Actor, Channel, PullRequestState, QueueRef, RepoRef

LANDING_WAIT_S = 20.0
"""A cancellation waits at most this long for a landing that has its permit."""


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The options of a submission; None: not given. `sha` may be a prefix of the head.

    `entry`: they are for this submission, and for no other that a command may find instead.
    `undoes` names merged work that it takes back on purpose (`Entry.undoes`).
    `rule`: it enters by this rule of the queue; empty: somebody submits it. `again`: a head that
    has failed is tested again.
    """

    priority: int | None = None
    no_batch: bool | None = None
    sha: str | None = None
    entry: str | None = None
    rule: str = ""
    undoes: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True, slots=True)
class Requester:
    """The actor of a command; `on_taken` runs in the transaction of the turn that accepts it."""

    actor: Actor
    on_taken: Callable[[Tx], None] | None = None


async def fetch_pull_request(runtime: Runtime, repo: RepoRef, number: int) -> PullRequest:
    """Return the pull request at the provider. Raises NotFound(pull_request_not_found)."""
    try:
        return await runtime.providers[repo.host].pull_request(repo, number)
    except Gone as gone:
        if gone.kind is not GoneKind.PULL_REQUEST:
            raise
        raise NotFound(
            f"{repo.slug} has no pull request {number}.", code="pull_request_not_found"
        ) from gone


async def submit_fetched(
    runtime: Runtime,
    queue: QueueRef,
    pulls: Sequence[PullRequest],
    options: SubmitOptions,
    by: Requester,
) -> Step:
    """Submit a pull request that was just read, with its requirements and the target's tip.

    It is the last of `pulls`; those below it in its stack come before it, from the bottom up. A
    refusal is a value in the step. Submitting again with the same head changes options only.
    """
    value = await turn.value(runtime, queue.id)
    resolved = await requirements.resolve(
        runtime, queue.repo, queue.branch, requirements.override_of(value), value
    )
    inputs = requirements.reports(value, resolved)
    if value.tip is None or pulls[-1].base_tip != value.tip.sha:
        inputs += await facts.target(runtime, queue, value)
    conflict = await foreseen.conflict(runtime, queue, value, pulls)
    if conflict is not None:
        return Step(value, (), (), conflict, None)
    judged = await undone_work.judgements(runtime, queue, value, pulls)
    known = await facts.facts_of_many(runtime, queue, value.config, pulls)
    *below, top = [
        Submit(
            each,
            by.actor,
            priority=options.priority,
            no_batch=options.no_batch,
            targets=await _targets_of(runtime, queue, each),
            p_fail=estimates.of_submission(runtime, queue, each),
            rule=options.rule,
            work=judged.get(each.pr),
            again=options.again,
            taken_back=await admission.taken_back(runtime, queue, each.head),
        )
        for each in known.values()
    ]
    submission = replace(top, below=tuple(below), entry=options.entry, undoes=options.undoes)
    row = None
    if not options.rule:
        row = audit_row(runtime, queue, by.actor, "pull_request.submit", top.facts.pr)
    along = turn.Along(audit=row, on_taken=by.on_taken)
    steps = await turn.take(runtime, queue.id, [*inputs, submission], along)
    if steps[-1].refusal is None:
        await _take_late_targets(runtime, queue, [*below, top])
    return steps[-1]


async def _take_late_targets(
    runtime: Runtime, queue: QueueRef, submitted: Sequence[Submit]
) -> None:
    """Take in uploads of targets that were stored meanwhile and so found no entry."""
    for each in submitted:
        newest = await _targets_of(runtime, queue, each.facts)
        if newest is not None and newest != each.targets:
            late = SetImpactedTargets(each.facts.pr, each.facts.head, newest, each.actor)
            await turn.report(runtime, queue.id, [late])


def below(pull: PullRequest) -> tuple[StackMember, ...]:
    """Return the unmerged members below it in its stack, from the bottom up; empty if none."""
    if pull.stack is None or not pull.stack.members:
        return ()
    return pull.stack.below(pull.number)


async def submit_stack(
    runtime: Runtime, queue: QueueRef, pull: PullRequest, options: SubmitOptions, by: Requester
) -> Step:
    """Submit it with those below it in its stack, all or none; return the step.

    A stack onto another branch counts as none. Raises Invalid if a member below is closed or if it
    is a draft for tests of ours, or an error of the API if the queue refuses one.
    """
    _check_not_of_test(pull)
    pull = await chains.with_chain(runtime, queue.repo, pull, queue.branch)
    members = below(pull) if pull.target_branch == queue.branch else ()
    closed = [one.number for one in members if one.state is not PullRequestState.OPEN]
    if closed:
        raise Invalid(
            f"Pull request {closed[0]}, which is below it in its stack, is closed: reopen it, or "
            "take it out of the stack.",
            code="pull_request_closed",
        )
    is_chain = bool(members) and pull.stack is not None and not pull.stack.is_native
    if is_chain and not (await turn.value(runtime, queue.id)).config.land_tested_commits:
        await _check_approvals(runtime, queue, members)
    lower = [await fetch_pull_request(runtime, queue.repo, member.number) for member in members]
    for member in lower:
        _check_not_of_test(member)
    step = await submit_fetched(runtime, queue, [*lower, pull], options, by)
    refused = step.refusal
    if refused is not None and refused.prs and refused.head is None:
        raise refusal_error(refused, queue.branch, refused.prs[0])
    return step


def _check_not_of_test(pull: PullRequest) -> None:
    if not pull.is_fork and naming.is_of_test(pull.head_branch):
        raise Invalid(
            f"Pull request {pull.number} is a draft that Headgate opened, so that CI tests others "
            "on its branch. Submit those that it names.",
            code="own_test_branch",
        )


async def _check_approvals(
    runtime: Runtime, queue: QueueRef, members: Sequence[StackMember]
) -> None:
    """Raise Invalid if approvals of a chain's members would end with the first landing.

    Headgate changes the base of a member once those below it have landed.
    """
    if await runtime.providers[queue.repo.host].dismisses_approvals(queue.repo, queue.branch):
        raise Invalid(
            f"The rules of {queue.branch} dismiss stale approvals, also when the base of a pull "
            f"request changes. Headgate has to change it from the branch of "
            f"#{members[-1].number} to {queue.branch} once that one is merged, so the approvals "
            f"would be lost. Submit #{members[0].number} alone; when it is merged, change the base "
            "of the next one, have it approved again, and submit it. Or make a stack of them on "
            "GitHub.",
            code="stack_loses_approvals",
        )


async def _targets_of(runtime: Runtime, queue: QueueRef, known: Facts) -> Targets | None:
    """Return the impacted targets uploaded for this head, None if there are none."""
    pair = (known.pr, known.head)
    found = await runtime.store.read(known_pulls.targets_of, queue.repository_id, [pair])
    return found.get(pair)


async def submit(
    runtime: Runtime, queue: QueueRef, number: int, options: SubmitOptions, actor: Actor
) -> CommandResult:
    """Submit by API, with those below it in its stack: result created, updated or unchanged.

    A token never admits a fork's pull request unless a person has let in exactly this head onto
    this base, with its sensitive files. Raises NotFound(pull_request_not_found),
    Conflict(head_mismatch), Invalid(pull_request_closed, pull_request_merged, fork_needs_person,
    no_required_statuses, conflict_after_landing, stack_loses_approvals, own_test_branch,
    limit_reached).
    """
    pull = await fetch_pull_request(runtime, queue.repo, number)
    if options.sha is not None and not pull.head_sha.startswith(options.sha.lower()):
        raise Conflict(
            f"The head of pull request {number} is {pull.head_sha}, not {options.sha}.",
            code="head_mismatch",
        )
    config = (await turn.last_value(runtime, queue.id)).config
    await consents.check_fork(runtime, queue, pull, config)
    step = await submit_stack(runtime, queue, pull, options, Requester(actor))
    if step.refusal is not None:
        raise refusal_error(step.refusal, queue.branch)
    return CommandResult(await _last_status(runtime, queue, number), result_of(step))


def result_of(step: Step) -> str:
    """Return the result of a submission: created, updated or unchanged."""
    happened = {type(recorded.event) for recorded in step.events}
    if EntrySubmitted in happened:
        return "created"
    return "updated" if EntryUpdated in happened else "unchanged"


def refusal_error(refused: Refused, branch: str, member: int | None = None) -> ServiceError:
    """Return a queue's refusal as the error of the API (docs/design/http.md 7).

    `member`: of this one below it in its stack.
    """
    detail = refusals.message(refused, branch)
    if member is not None:
        detail = f"Pull request {member}, which is below it in its stack: {detail}"
    members: Mapping[str, object] = {"pull_requests": list(refused.prs)} if refused.prs else {}
    code = refused.reason.value
    if refused.over is not None:
        return OverBudget(detail, until=refused.over.until, members=_of_budget(refused.over))
    if refused.blamed is not None:
        members = {**members, **_of_failure(refused.blamed)}
    record = refused.reason.record.refused
    kind = RefusalKind.INVALID if record is None else record.kind
    if kind is RefusalKind.MISSING:
        return NotFound(detail, code=code, members=members)
    if kind is RefusalKind.CONFLICT:
        return Conflict(detail, code=code, members=members)
    return Invalid(detail, code=code, members=members)


def _of_budget(over: Over) -> Mapping[str, object]:
    return {
        "budget": "open_entries" if over.until is None else "ci_minutes",
        "of": "token" if over.token else "queue",
        "used": over.used,
        "limit": over.limit,
        "until": over.until,
    }


def _of_failure(blamed: Blamed) -> Mapping[str, object]:
    return {
        "run_id": blamed.run,
        "run_number": blamed.number,
        "commit": blamed.commit,
        "checks": [{"name": each.name, "url": each.url} for each in blamed.checks],
        "tests": list(blamed.tests),
        "landings": blamed.missing,
    }


async def cancel(
    runtime: Runtime, queue: QueueRef, number: int, actor: Actor, reason: str = ""
) -> PullRequestView:
    """Cancel a submission; wait up to 20 s for a landing already under way.

    Raises NotFound(not_in_queue), Conflict(already_landed, landing_in_progress).
    """
    step = await request_cancel(runtime, queue, number, Requester(actor), reason)
    if step.refusal is not None:
        raise refusal_error(step.refusal, queue.branch)
    view = await wait_until_settled(runtime, queue, number, step)
    if view.entry.state is EntryState.MERGED:
        raise Conflict(f"Pull request {number} has landed already.", code="already_landed")
    if view.entry.state not in FINAL:
        raise Conflict(
            f"Pull request {number} is landing now. The cancellation is kept: it applies if the "
            "landing does not happen. Ask again in 5 seconds.",
            code="landing_in_progress",
        )
    return view


async def request_cancel(
    runtime: Runtime, queue: QueueRef, number: int, by: Requester, reason: str
) -> Step:
    """Return the queue's answer to a cancellation; a refusal is a value.

    It also takes back the consent to a fork, whether or not the pull request is in the queue.
    """
    by_api = by.actor.channel is Channel.API
    code = Reason.API_REQUESTED if by_api else Reason.USER_REQUESTED
    if by.actor.channel is Channel.LABEL:
        code = Reason.LABEL_REMOVED
    cancellation = Cancel(number, code, by.actor, reason)
    row = audit_row(runtime, queue, by.actor, "pull_request.cancel", number)

    def end_consent(session: Tx) -> None:
        stored_consents.end(session, queue.repository_id, number)
        if by.on_taken is not None:
            by.on_taken(session)

    along = turn.Along(audit=row, on_taken=end_consent)
    step = await turn.ask(runtime, queue, cancellation, along)
    if step.refusal is not None:
        await runtime.store.run(stored_consents.end, queue.repository_id, number)
    return step


async def wait_until_settled(
    runtime: Runtime, queue: QueueRef, number: int, step: Step
) -> PullRequestView:
    """Return the submission that a step cancels once that is decided, or as it is after 20 s.

    The pull request may have been submitted again since.
    """
    finished = {entry.pr: entry for entry in step.finished_entries}
    cancelled = finished.get(number) or step.queue.entries[number]
    topic = f"queue/{queue.id}"
    deadline = runtime.clock.monotonic_s() + LANDING_WAIT_S
    while True:
        seen = runtime.wakeups.version(topic)
        view = await _last_status(runtime, queue, number, cancelled.id)
        left_s = deadline - runtime.clock.monotonic_s()
        if view.entry.state in FINAL or view.entry.cancel is None or left_s <= 0:
            return view
        await runtime.wakeups.wait(topic, seen, left_s)


async def restart(runtime: Runtime, queue: QueueRef, number: int, actor: Actor) -> CommandResult:
    """Restart the tests; the result is restarted, or not_needed if no tests have begun.

    Raises NotFound(not_in_queue), Conflict(already_landed), OverBudget.
    """
    step = await request_restart(runtime, queue, number, Requester(actor))
    if step.refusal is not None:
        raise refusal_error(step.refusal, queue.branch)
    view = await _last_status(runtime, queue, number)
    return CommandResult(view, "restarted" if has_restarted(step, number) else "not_needed")


async def request_restart(runtime: Runtime, queue: QueueRef, number: int, by: Requester) -> Step:
    """Return the queue's answer to a restart; a refusal is a value."""
    row = audit_row(runtime, queue, by.actor, "pull_request.restart", number)
    along = turn.Along(audit=row, on_taken=by.on_taken)
    return await turn.ask(runtime, queue, Restart(number, by.actor), along)


def has_restarted(step: Step, number: int) -> bool:
    """Return whether a restart had an effect."""
    return any(isinstance(one.event, EntryMoved) and one.event.pr == number for one in step.events)


async def status(
    runtime: Runtime, queue: QueueRef, number: int, *, include_timeline: bool = False
) -> PullRequestView:
    """Return the newest submission. Raises NotFound: queue_not_found, never_submitted."""
    view = _submitted(
        queue, number, await queue_views.pull_request_view(runtime, queue, number, None)
    )
    return (await queue_views.with_timelines(runtime, (view,)))[0] if include_timeline else view


async def _last_status(
    runtime: Runtime, queue: QueueRef, number: int, entry_id: str | None = None
) -> PullRequestView:
    """Return what a command has led to; its queue may have been deleted since.

    `entry_id` None: the newest submission.
    """
    view = await queue_views.last_pull_request_view(runtime, queue, number, entry_id)
    return _submitted(queue, number, view)


def _submitted(queue: QueueRef, number: int, view: PullRequestView | None) -> PullRequestView:
    if view is None:
        raise NotFound(
            f"Pull request {number} was never submitted to the queue for {queue.branch}.",
            code="never_submitted",
        )
    return view


def audit_row(
    runtime: Runtime, queue: QueueRef, actor: Actor, action: str, number: int
) -> AuditEntry:
    """Return an audit entry about one pull request."""
    subject = f"{audit_log.subject_of_queue(queue)}#{number}"
    return audit_log.allowed(actor, queue.org_id, action, subject, runtime.clock.now())


async def preview_cancel(runtime: Runtime, queue: QueueRef, number: int, actor: Actor) -> Preview:
    """Return what `/cancelPullRequest` would do now. Raises NotFound(not_in_queue)."""
    return await _preview(runtime, queue, Cancel(number, Reason.API_REQUESTED, actor))


async def preview_priority(
    runtime: Runtime, queue: QueueRef, number: int, priority: int, actor: Actor
) -> Preview:
    """Return what another priority of a queued pull request would do now.

    Raises NotFound(not_in_queue).
    """
    entry = (await turn.value(runtime, queue.id)).entries.get(number)
    if entry is None:
        refused = Refused(Reason.NOT_IN_QUEUE, f"pull request {number} is not queued")
        raise refusal_error(refused, queue.branch)
    return await _preview(runtime, queue, Submit(entry.facts, actor, priority=priority))


async def _preview(runtime: Runtime, queue: QueueRef, command: Cancel | Submit) -> Preview:
    value = await turn.value(runtime, queue.id)
    found = previews.of_command(value, command, runtime.clock.now())
    if isinstance(found, Refused):
        raise refusal_error(found, queue.branch)
    return found
