"""What receivers hear of stories with pull requests: every state once, in words of the contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.cli.webhooks import FOR_PEOPLE
from service.accounts import access, tokens
from service.accounts.tokens import TokenRequest
from service.mergequeue.engine.config import ConfirmFailures
from service.mergequeue.operations import pull_requests, queues
from service.mergequeue.operations.queues import HoldRequest
from service.mergequeue.store import journal, runs
from service.mergequeue.store.journal import enters_a_state
from service.notifications import endpoints
from service.notifications.endpoints import EndpointChange
from service.vocabulary import SYSTEM, EndpointFormat, Role
from tests.contract.instance import HOST, RECEIVERS
from tests.end_to_end.test_batches import batch_of
from tests.harness import gates
from tests.harness.receiver import Receiver, receiving, verified
from tests.harness.world import World, WorldOptions


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that ends when the story says so, and receivers on this machine."""
    return WorldOptions(ci=gates.CI, settings=RECEIVERS)


@asynccontextmanager
async def heard(
    world: World, *events: str, form: EndpointFormat = EndpointFormat.JSON
) -> AsyncIterator[Receiver]:
    """A receiver of these events, every message of which is verified at the end."""
    await world.settle()
    wish = TokenRequest(HOST, "octo", "ops", Role.ADMIN)
    made = await tokens.create_token(world.runtime, wish, SYSTEM)
    caller = await access.look_up(world.runtime, made.secret)
    async with receiving() as receiver:
        told = EndpointChange(receiver.url, events, format=form)
        _, secret = await endpoints.create(world.runtime, caller, told)
        yield receiver
        await world.settle()
        for got in receiver.got:
            verified(got, secret)
        assert len({got.id for got in receiver.got}) == len(receiver.got)


def of(receiver: Receiver, number: int) -> list[dict[str, Any]]:
    """What was heard of a pull request, by its sequence."""
    told = [got.json for got in receiver.got if got.json.get("pr_number") == number]
    told = [each for each in told if "sequence" in each]
    return sorted(told, key=lambda each: each["sequence"])


def actions(told: list[dict[str, Any]]) -> list[str]:
    """The last parts of their types."""
    return [each["action"] for each in told]


async def entered(world: World, number: int) -> int:
    """How many states the newest submission has entered, by the journal."""
    queue, entry = await world.queue(), await world.entry(number)
    recorded = await world.runtime.store.read(journal.timeline, queue.id, number, entry.id)
    return sum(1 for each in recorded if enters_a_state(each.event))


async def test_a_merge_is_told_state_by_state_without_a_gap(world: World) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue()
    async with heard(world, "*") as receiver:
        await world.comment("/merge", on=number)
        run = await gates.ends(world, number)
        await world.settle()
        told = of(receiver, number)
        assert actions(told) == ["submitted", "queued", "testing", "tests_passed", "merged"]
        assert [each["sequence"] for each in told] == [1, 2, 3, 4, 5]
        assert await entered(world, number) == 5
        submitted, queued, testing, passed, merged = told
        entry = await world.entry(number)
        assert submitted["submitted_reason"] == "USER_REQUESTED"
        assert submitted["test_run_id"] is None
        assert queued["queued_reason"] == "MERGE_ITEM_NOW_READY"
        assert (testing["test_run_id"], testing["batched"]) == (run.id, False)
        assert not {"queued_reason", "failure_reason", "merged_reason"} & set(testing)
        assert passed["passed_reason"] == "TEST_RUN_PASSED"
        built = await world.runtime.store.read(runs.run, (await world.queue()).id, run.id)
        assert built is not None
        assert (passed["test_branch"], passed["test_branch_sha"]) == (built.branch, built.sha)
        assert passed["test_pr_number"] is not None
        assert merged == {
            "type": "pull_request.merged",
            "action": "merged",
            "timestamp": merged["timestamp"],
            "organization": "octo",
            "repository": {"host": HOST, "owner": "octo", "name": "widgets"},
            "target_branch": "main",
            "status": "MERGED",
            "pr_number": number,
            "author": "bob",
            "http_details_url": None,
            "is_bisection": False,
            "batched": False,
            "test_branch": built.branch,
            "test_branch_sha": built.sha,
            "test_pr_number": passed["test_pr_number"],
            "merged_reason": merged["merged_reason"],
            "reason": "landed",
            "reason_message": merged["reason_message"],
            "verdict": None,
            "retryable": False,
            "entry_id": entry.id,
            "pr_sha": entry.head,
            "test_run_id": run.id,
            "merged_sha": entry.landed_sha,
            "sequence": 5,
        }
        assert merged["merged_reason"] == "MERGE_GRAPH_MERGE"


async def test_slack_is_told_in_one_text_what_failed_what_landed_and_why_the_queue_stands(
    world: World,
) -> None:
    failing, landing = [await world.open() for _ in range(2)]
    await world.settle()
    await world.make_queue(confirm_failures=ConfirmFailures.OFF)
    async with heard(world, *FOR_PEOPLE, form=EndpointFormat.SLACK) as receiver:
        await world.comment("/merge", on=failing)
        await gates.fails(world, failing)
        await world.settle()
        await world.comment("/merge", on=landing)
        await gates.ends(world, landing)
        await world.settle()
        queue = await world.queue()
        hold = await queues.add_hold(world.runtime, queue, HoldRequest("release"), SYSTEM)
        await queues.release_hold(world.runtime, queue, hold.id, "shipped", SYSTEM)
        await world.settle()
        assert all(set(got.json) == {"text"} for got in receiver.got)
        failed, merged, *holds = [got.json["text"] for got in receiver.got]
        assert failed.startswith(f"❌ octo/widgets#{failing} for `main` was not merged: unit fail")
        assert "• `unit` failed" in failed
        assert merged.startswith(f"🟣 octo/widgets#{landing} for `main` was merged as `")
        held, released = sorted(holds, key=lambda text: "ended" in text)
        where = "The queue for `main` of octo/widgets"
        assert held.startswith(f"⏸️ {where} is held: ")
        assert "release" in held
        assert released == f"▶️ {where}: the hold `freeze` has ended: shipped"


async def test_a_failure_says_why_whose_fault_it_is_and_in_the_words_of_the_record(
    world: World,
) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue(confirm_failures=ConfirmFailures.BISECTION)
    async with heard(world, "pull_request.*") as receiver:
        await world.comment("/merge", on=number)
        await gates.fails(world, number)
        await world.settle()
        told = of(receiver, number)
        assert actions(told)[-1] == "failed"
        assert [each["sequence"] for each in told] == list(range(1, len(told) + 1))
        failed = told[-1]
        view = await pull_requests.status(world.runtime, await world.queue(), number)
        assert (failed["status"], failed["reason"]) == ("FAILED", "required_status_failed")
        assert failed["failure_reason"] == "TEST_RUN_REQUIRED_STATUS_FAILED"
        assert failed["verdict"] == "pr_fault"
        assert (failed["merged_sha"], failed["retryable"]) == (None, False)
        assert failed["entry_id"] == view.entry.id
        assert failed["test_run_id"] is not None
        assert "unit" in failed["reason_message"]


async def test_a_submission_that_is_cancelled_and_submitted_again_counts_from_one(
    world: World,
) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue()
    async with heard(world, "pull_request.*") as receiver:
        await world.comment("/merge", on=number)
        await gates.under_test(world, number)
        await world.comment("/merge cancel", on=number)
        await world.settle()
        first = of(receiver, number)
        assert actions(first) == ["submitted", "queued", "testing", "canceled"]
        assert first[-1]["cancellation_reason"] == "USER_REQUESTED"
        assert [each["sequence"] for each in first] == [1, 2, 3, 4]
        await world.comment("/merge", on=number)
        await gates.ends(world, number)
        await world.settle()
        ids = {each["entry_id"] for each in of(receiver, number)}
        second = [e for e in of(receiver, number) if e["entry_id"] != first[0]["entry_id"]]
        assert len(ids) == 2
        assert [each["sequence"] for each in second] == [1, 2, 3, 4, 5]


async def test_sequences_count_also_while_nobody_listens(world: World) -> None:
    number = await world.open()
    await world.settle()
    await world.make_queue()
    await world.comment("/merge", on=number)
    await gates.under_test(world, number)
    async with heard(world, "pull_request.*") as receiver:
        await gates.ends(world, number)
        await world.settle()
        told = of(receiver, number)
        assert [(each["action"], each["sequence"]) for each in told] == [
            ("tests_passed", 4),
            ("merged", 5),
        ]


async def test_a_batch_is_told_once_beside_its_pull_requests(world: World) -> None:
    async with heard(world, "pull_request.*", "pull_request_batch.*") as receiver:
        numbers = await batch_of(world, 3)
        run = await gates.ends(world, *numbers)
        await world.settle()
        batch = [got.json for got in receiver.got if "batch_id" in got.json]
        batch.sort(key=lambda each: each["timestamp"])
        assert {each["action"] for each in batch} == {"submitted", "testing", "merged"}
        assert len(batch) == 3
        for each in batch:
            assert each["type"].startswith("pull_request_batch.")
            assert (each["batch_id"], each["test_run_id"]) == (run.id, run.id)
            assert each["pr_numbers"] == each["pr_numbers_in_batch"] == numbers
            single = {"pr_number", "author", "batched", "entry_id", "pr_sha", "sequence"}
            assert not single & set(each)
        for number in numbers:
            told = of(receiver, number)
            assert actions(told) == ["submitted", "queued", "testing", "tests_passed", "merged"]
            assert told[2]["batched"] is True


async def test_a_batch_that_fails_is_told_once_in_each_state(world: World) -> None:
    async with heard(world, "pull_request.*", "pull_request_batch.*") as receiver:
        first, culprit, last = numbers = await batch_of(world, 3, concurrency=2)
        failed = await gates.fails(world, first, culprit, last)
        await gates.under_test(world, first)
        await gates.ends(world, first)
        await gates.fails(world, first, culprit)
        await gates.under_test(world, first, culprit)
        await world.settle()
        await gates.fails(world, first, culprit)
        await gates.ends(world, last)
        await world.settle()
        batch = [got.json for got in receiver.got if got.json.get("batch_id") == failed.id]
        own = [each["action"] for each in batch]
        assert sorted(own) == ["failed", "pending_failure", "submitted", "testing"]
        blamed = next(each for each in batch if each["action"] == "failed")
        assert blamed["failure_reason"] == "TEST_RUN_REQUIRED_STATUS_FAILED"
        assert blamed["pr_numbers_in_batch"] == numbers
        for number in numbers:
            told = of(receiver, number)
            assert [each["sequence"] for each in told] == list(range(1, len(told) + 1))
            assert len(told) == await entered(world, number)
        assert of(receiver, culprit)[-1]["action"] == "failed"
        assert {actions(of(receiver, number))[-1] for number in (first, last)} == {"merged"}


async def test_a_program_is_told_when_there_is_something_else_to_do_than_wait(
    world: World,
) -> None:
    await world.make_queue(confirm_failures="OFF")
    async with heard(world, "next_step.changed") as receiver:
        number = await world.open()
        await world.settle()
        await world.comment("/merge", on=number)
        await gates.fails(world, number)
        await world.settle()
        await world.act("push", number=number, files={"more.txt": "x\n"})
        await world.settle()
        await world.comment("/merge", on=number)
        await gates.ends(world, number)
        await world.settle()
    told = [got.json for got in receiver.got]
    told.sort(key=lambda each: each["timestamp"])
    assert [each["next_step"]["kind"] for each in told] == ["FIX", "DONE"]
    fix, done = (each["next_step"] for each in told)
    assert [check["name"] for check in fix["failures"]["checks"]] == ["unit"]
    assert fix["call"]["body"]["pr"] == {"number": number}
    assert (fix["call"]["tool"], done["call"]) == ("land_pull_request", None)
    assert done["commit"] == world.repository.git.branch("main")
    assert {each["pr_number"] for each in told} == {number}
