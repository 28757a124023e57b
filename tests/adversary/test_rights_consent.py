"""Attacks by which a fork's change would be tested without a person's consent to exactly it."""

import pytest

from service.mergequeue.engine.states import QueueState
from service.process import deliveries
from service.provider.signals import Delivery
from service.vocabulary import Role
from tests.adversary.judge import files_on
from tests.harness.asking import Asker, asker
from tests.harness.world import World, WorldOptions

SKEWS = (0.0, 20.0, -20.0)
"""How far GitHub's clock is ahead of ours; `doctor` allows 30 seconds."""


@pytest.fixture
def ahead_s() -> float:
    return 0.0


@pytest.fixture
def world_options(ahead_s: float) -> WorldOptions:
    return WorldOptions(ahead_s=ahead_s)


def head_of(world: World, number: int) -> str:
    pull = world.repository.issues[number].pull
    assert pull is not None
    return pull.head_sha


async def of_fork(world: World, files: dict[str, str] | None = None) -> int:
    """A pull request of a fork, which has been there for a while."""
    number = await world.open(by="dave", fork=True, files=files or {"f.txt": "good\n"})
    await world.settle()
    await world.rest(5)
    return number


async def push_evil(world: World, number: int) -> None:
    await world.act("push", by="dave", number=number, files={"evil.txt": "x\n"})


@pytest.mark.parametrize("ahead_s", SKEWS)
@pytest.mark.parametrize("way", ["lost", "late"])
async def test_a_head_pushed_after_the_comment_is_not_let_in_whatever_the_clocks(
    world: World, way: str
) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number = await of_fork(world)
    if way == "lost":
        await world.fault({"event": "issue_comment", "nth": 1}, "drop")
    else:
        await world.fault({"event": "issue_comment", "nth": 1}, "delay", s=60)
    await world.comment("/merge", on=number)
    await push_evil(world, number)
    await world.rest(200)
    await world.settle()
    assert await world.merged() == []
    assert "evil.txt" not in await files_on(world)


@pytest.mark.parametrize("ahead_s", SKEWS)
async def test_a_comment_written_for_the_head_lets_it_in_whatever_the_clocks(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number = await of_fork(world)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]


async def test_a_comment_that_names_the_commit_needs_no_times(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue()
    number = await of_fork(world)
    await world.act("push", by="dave", number=number, files={"more.txt": "x\n"})
    head = head_of(world, number)
    await world.comment(f"/merge --sha={head[:12]}", on=number)
    await world.settle()
    (answer,) = [
        one.body for one in world.repository.issues[number].comments if "do not prove" in one.body
    ]
    assert f"`/merge --sha={head}`" in answer
    await world.comment(f"/merge --sha={head}", on=number)
    await world.settle()
    assert await world.merged() == [number]


async def _let_in(world: World) -> tuple[int, Asker]:
    """A fork's pull request that bob has let in, in a queue that does not run."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await of_fork(world)
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "PENDING"
    await world.rest(2)
    return number, await asker(world, Role.QUEUE)


async def refused_by_token(world: World, number: int, ask: Asker) -> None:
    """A token of role `queue` cannot submit the pull request."""
    status, answer = await ask.post("submitPullRequest", number)
    assert (status, answer.get("code")) == (422, "fork_needs_person"), answer
    assert head_of(world, number) in answer["detail"]


async def test_a_token_submits_again_what_a_person_has_let_in(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    await ask.done("submitPullRequest", number)


async def test_a_cancelled_consent_serves_no_token(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await refused_by_token(world, number, ask)


async def test_a_cancel_takes_back_a_consent_outside_of_the_queue_too(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    await world.act("draft", by="dave", number=number)
    await world.settle()
    await world.act("draft", by="dave", number=number, draft=False)
    await world.settle()
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await refused_by_token(world, number, ask)


async def test_a_closed_pull_request_has_no_consent_when_it_is_opened_again(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    await world.act("close", by="dave", number=number)
    await world.settle()
    await world.act("reopen", by="dave", number=number)
    await world.settle()
    await refused_by_token(world, number, ask)


async def test_a_consent_for_another_base_is_none(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    tip = str(world.repository.git.branch("main"))
    await world.act("push", by="alice", branch="dev", files={"dev.txt": "x\n"}, **{"from": tip})
    await world.act("retarget", by="dave", number=number, base="dev")
    await world.settle()
    await world.rest(2)
    await world.act("retarget", by="dave", number=number, base="main")
    await world.settle()
    await refused_by_token(world, number, ask)


@pytest.mark.parametrize("is_named", [False, True])
async def test_a_base_changed_after_the_comment_is_not_let_in(world: World, is_named: bool) -> None:
    """Hurts everybody who builds dev: a change of a fork would run where no person sent it."""
    await world.make_queue()
    tip = str(world.repository.git.branch("main"))
    await world.act("push", by="alice", branch="dev", files={"dev.txt": "x\n"}, **{"from": tip})
    await world.make_queue(branch="dev", required_statuses=("unit",))
    number = await of_fork(world)
    await world.fault({"event": "issue_comment", "nth": 1}, "delay", s=60)
    await world.comment(
        f"/merge --sha={head_of(world, number)}" if is_named else "/merge", on=number
    )
    await world.rest(2)
    await world.act("retarget", by="dave", number=number, base="dev")
    await world.rest(200)
    await world.settle()
    assert await world.merged() == []
    await world.comment(f"/merge --sha={head_of(world, number)}", on=number)
    await world.settle()
    assert await world.merged() == [number]


async def test_a_consent_ends_with_the_head_even_if_that_comes_back(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    good = head_of(world, number)
    await push_evil(world, number)
    await world.settle()
    await world.rest(2)
    await world.act("force_push", by="dave", number=number, to=good)
    await world.settle()
    await refused_by_token(world, number, ask)


async def test_a_person_who_has_lost_the_right_lets_nothing_in(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    number, ask = await _let_in(world)
    await world.act("role", by="alice", login="bob", role="read")
    await ask.done("submitPullRequest", number)
    admin = await asker(world)
    await admin.done("updateQueue", state="RUNNING")
    await world.settle()
    assert await world.merged() == []
    assert await world.state(number) != "TESTING"
    assert [one for one in world.branches() if one.startswith("headgate/")] == []


SENSITIVE = (".circleci/config.yml", "Jenkinsfile", ".gitmodules", "docs/CODEOWNERS")


@pytest.mark.parametrize("path", SENSITIVE)
async def test_sensitive_files_of_a_fork_need_consent_of_a_maintainer(
    world: World, path: str
) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await of_fork(world, {path: "x\n"})
    ask = await asker(world, Role.QUEUE)
    await world.comment("/merge", on=number, by="bob")
    await world.settle()
    status, answer = await ask.post("submitPullRequest", number)
    assert (status, answer.get("code")) == (422, "fork_needs_person"), answer
    assert path in answer["detail"]
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert await world.state(number) == "PENDING"
    await ask.done("submitPullRequest", number)


async def test_a_captured_press_under_another_id_does_nothing_again(world: World) -> None:
    """Hurts everybody who builds main: a change of a fork would run with the secrets of CI."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    await world.comment("/merge cancel", on=number)
    await world.settle()
    await world.act("press_button", number=number, button="requeue")
    await world.settle()
    again = await world.entry(number)
    await world.comment("/merge cancel", on=number)
    await world.settle()
    sent = world.sandbox.world.attempts
    (body,) = [one.body for one in sent if one.action == "requested_action"]
    where = str(world.repository.id)
    host = "github.localhost"
    now = world.clock.now()
    copy = Delivery(host, "captured", "check_run", "requested_action", where, body, now)
    assert await deliveries.accept(world.runtime, copy)
    await world.settle()
    entry = await world.entry(number)
    assert (entry.id, entry.state.value) == (again.id, "CANCELLED")
