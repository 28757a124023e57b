"""Submissions: the stack that a command takes with it, what is read again, and refusals."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from service.database.database import Tx
from service.errors import Conflict, Invalid, NotFound, OverBudget, ServiceError
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.past import Over
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.engine.targets import Targets
from service.mergequeue.operations import pull_requests, queues, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provider.stacks import Stack, StackMember
from service.provider.values import Commit, PullRequest
from service.runtime import Runtime
from service.vocabulary import SYSTEM, PullRequestState, QueueRef, RepoRef, Sha
from tests.harness.values import ValuesProvider, sha_of

BELOW, TOP = 7, 8
OPEN = PullRequestState.OPEN
TEST_BRANCH = "headgate/merge/pr-7/8b725970-656f-5f85-bd19-cc055e58a8f2"


class Stacked(ValuesProvider):
    """#8 is on #7 in a stack; `changed` are facts of #8, and a base may dismiss approvals."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: dict[str, Any] = {}
        self.dismisses = False

    def put(self, *, target: str = "main", below: PullRequestState = OPEN, **more: bool) -> None:
        """Let the stack be like this."""
        states = {BELOW: below, TOP: OPEN}
        members = (StackMember(each, sha_of("head", each), states[each]) for each in states)
        self.changed["stack"] = Stack(target, tuple(members), **more)

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        pull = await super().pull_request(repo, number)
        return replace(pull, **self.changed) if number == TOP else pull

    async def contains(self, repo: RepoRef, ancestor: Sha, commit: Sha) -> bool:
        return True

    async def dismisses_approvals(self, repo: RepoRef, branch: str) -> bool:
        return self.dismisses


@pytest.fixture
def provider() -> Stacked:
    """Instead of the provider that knows no stacks."""
    return Stacked()


async def submitted(runtime: Runtime, queue: QueueRef, **options: Any) -> set[int]:
    """The pull requests in the queue after #8 was submitted."""
    pull = await pull_requests.fetch_pull_request(runtime, queue.repo, TOP)
    by = Requester(SYSTEM, options.pop("on_taken", None))
    await pull_requests.submit_stack(runtime, queue, pull, SubmitOptions(**options), by)
    return set((await turn.value(runtime, queue.id)).entries)


@pytest.mark.parametrize(
    ("stack", "taken"),
    [
        ({"is_native": True}, {BELOW, TOP}),
        ({"is_native": False}, {BELOW, TOP}),
        ({"below": PullRequestState.MERGED}, {TOP}),
        ({"target": "release"}, {TOP}),
    ],
)
async def test_a_submission_takes_those_below_it_onto_the_same_branch(
    runtime: Runtime, queue: QueueRef, provider: Stacked, stack: dict[str, Any], taken: set[int]
) -> None:
    provider.put(**stack)
    assert await submitted(runtime, queue) == taken


async def test_a_submission_above_a_closed_one_is_refused(
    runtime: Runtime, queue: QueueRef, provider: Stacked
) -> None:
    provider.put(below=PullRequestState.CLOSED)
    with pytest.raises(Invalid, match=f"Pull request {BELOW}, which is below") as refused:
        await submitted(runtime, queue)
    assert refused.value.code == "pull_request_closed"


@pytest.mark.parametrize(
    ("given", "is_refused"),
    [
        (({"is_native": False}, {}), True),
        (({"is_native": True}, {}), False),
        (({"is_native": False, "below": PullRequestState.MERGED}, {}), False),
        (({"is_native": False}, {"land_tested_commits": True}), False),
    ],
)
async def test_a_chain_whose_bases_will_change_loses_approvals_that_a_new_base_dismisses(
    runtime: Runtime,
    queue: QueueRef,
    provider: Stacked,
    given: tuple[dict[str, Any], dict[str, Any]],
    is_refused: bool,
) -> None:
    stack, settings = given
    await queues.update(runtime, queue, QueueRequest(settings), SYSTEM)
    provider.put(**stack)
    provider.dismisses = True
    if is_refused:
        with pytest.raises(Invalid, match="dismiss stale approvals"):
            await submitted(runtime, queue)
    else:
        assert TOP in await submitted(runtime, queue)


@pytest.mark.parametrize("is_fork", [False, True])
async def test_only_a_branch_of_the_repository_itself_is_one_of_our_test_branches(
    runtime: Runtime, queue: QueueRef, provider: Stacked, is_fork: bool
) -> None:
    provider.changed = {"head_branch": TEST_BRANCH, "is_fork": is_fork}
    if is_fork:
        assert await submitted(runtime, queue) == {TOP}
    else:
        with pytest.raises(Invalid, match="a draft that Headgate opened"):
            await submitted(runtime, queue)


async def test_a_target_that_moved_unheard_is_read_with_the_submission(
    runtime: Runtime, queue: QueueRef, provider: Stacked
) -> None:
    await submitted(runtime, queue)
    provider.main = Commit(sha_of("moved"), sha_of("tree"), (provider.main.sha,))
    await submitted(runtime, queue)
    tip = (await turn.value(runtime, queue.id)).tip
    assert tip is not None
    assert tip.sha == sha_of("moved")


async def test_targets_that_are_stored_during_a_submission_are_those_of_its_entry(
    runtime: Runtime, queue: QueueRef
) -> None:
    place = PullRequestHead(queue.repository_id, TOP, sha_of("head", TOP))
    targets = Targets(frozenset({"//a"}))

    def store(session: Tx) -> None:
        known_pulls.put_targets(session, place, targets, runtime.clock.now())

    await submitted(runtime, queue, on_taken=store)
    assert (await turn.value(runtime, queue.id)).entries[TOP].targets == targets


async def test_the_head_that_was_meant_is_submitted_once_and_then_changed(
    runtime: Runtime, queue: QueueRef
) -> None:
    async def submit(sha: str | None, priority: int | None = None) -> str:
        options = SubmitOptions(priority, sha=sha)
        return (await pull_requests.submit(runtime, queue, TOP, options, SYSTEM)).result

    with pytest.raises(Conflict) as refused:
        await submit("0" * 40)
    assert refused.value.code == "head_mismatch"
    head = sha_of("head", TOP).upper()
    results = [await submit(head), await submit(head[:7]), await submit(None, 10)]
    assert results == ["created", "unchanged", "updated"]


async def test_what_is_queued_is_cancelled(runtime: Runtime, queue: QueueRef) -> None:
    with pytest.raises(NotFound) as refused:
        await pull_requests.cancel(runtime, queue, TOP, SYSTEM)
    assert refused.value.code == "not_in_queue"
    await submitted(runtime, queue)
    view = await pull_requests.cancel(runtime, queue, TOP, SYSTEM)
    assert view.entry.state is EntryState.CANCELLED


async def test_a_restart_has_an_effect_if_the_pull_request_itself_moves(
    runtime: Runtime, queue: QueueRef
) -> None:
    await queues.set_state(runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM))
    pull = await pull_requests.fetch_pull_request(runtime, queue.repo, TOP)
    step = await pull_requests.submit_stack(
        runtime, queue, pull, SubmitOptions(), Requester(SYSTEM)
    )
    assert pull_requests.has_restarted(step, TOP)
    assert not pull_requests.has_restarted(step, BELOW)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (Reason.NOT_IN_QUEUE, NotFound),
        (Reason.ALREADY_LANDED, Conflict),
        (Reason.PULL_REQUEST_CLOSED, Invalid),
        (Reason.LANDED, Invalid),
    ],
)
def test_a_refusal_is_an_error_of_its_kind(reason: Reason, kind: type[ServiceError]) -> None:
    error = pull_requests.refusal_error(Refused(reason, "no"), "main")
    assert (type(error), error.code, error.members) == (kind, reason.value, {})
    above = pull_requests.refusal_error(Refused(reason, "no", prs=(7, 8)), "main", 7)
    assert above.members == {"pull_requests": [7, 8]}
    assert above.detail == f"Pull request 7, which is below it in its stack: {error.detail}"


@pytest.mark.parametrize("until", [None, datetime(2026, 3, 3, tzinfo=UTC)])
@pytest.mark.parametrize("token", [False, True])
def test_a_budget_that_is_used_up_is_named(until: datetime | None, token: bool) -> None:
    over = Over("alice", used=5, limit=5, token=token, until=until)
    refused = Refused(Reason.OVER_BUDGET, "no", over=over)
    error = pull_requests.refusal_error(refused, "main")
    assert isinstance(error, OverBudget)
    assert error.members == {
        "budget": "ci_minutes" if until else "open_entries",
        "of": "token" if token else "queue",
        "used": 5,
        "limit": 5,
        "until": until,
    }
