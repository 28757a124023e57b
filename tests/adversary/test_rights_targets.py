"""Attacks by which a fork's CI run would change what another's pull request is tested with."""

import aiohttp
import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.store import pull_requests as known_pulls
from service.vocabulary import Sha
from tests.adversary.judge import files_on, landed_on
from tests.harness.asking import Asker, asker
from tests.harness.world import REPO, World, WorldOptions

CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 20
    rules:
      - {exists: [x.txt, y.txt], conclusion: failure}
  - name: targets
    seconds: 1
    rules:
      - {branch: "headgate/merge/**", conclusion: success}
      - {conclusion: hang}
"""
"""Both halves together fail; the CI run of a pull request itself goes on for ever."""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI)


@pytest.fixture
async def ask(world: World) -> Asker:
    """An admin of the organization."""
    return await asker(world)


def head_of(world: World, number: int) -> Sha:
    pull = world.repository.issues[number].pull
    assert pull is not None
    return Sha(pull.head_sha)


async def run_of(world: World, number: int) -> str:
    """The CI run of a pull request's present head, once it runs."""
    found: list[str] = []

    async def has_begun() -> bool:
        found[:] = [
            str(one.id)
            for one in world.repository.workflow_runs
            if one.pulls == [number]
            and one.head_sha == head_of(world, number)
            and one.status != "completed"
        ]
        return bool(found)

    await world.until(has_begun)
    return found[-1]


async def of_fork(world: World, *, same_as: int | None = None, by: str = "dave") -> int:
    """A pull request of a fork; with `same_as` its head is another pull request's commit."""
    number = await world.open(by=by, fork=True)
    if same_as is not None:
        await world.act("force_push", by=by, number=number, to=head_of(world, same_as))
    await world.settle()
    return number


async def upload(
    world: World, number: int, run: str, *names: str, sha: Sha | None = None
) -> tuple[int, str]:
    """What an upload without a token answers: status and text."""
    host, (owner, name) = "github.localhost", REPO.split("/")
    body = {
        "repo": {"host": host, "owner": owner, "name": name},
        "targetBranch": "main",
        "pr": {"number": number, "sha": sha or head_of(world, number)},
        "impactedTargets": list(names),
    }
    headers = {"x-forked-workflow-run-id": run}
    url = f"{world.url}/v1/setImpactedTargets"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def targets_kept(world: World, number: int) -> frozenset[str] | None:
    """Names kept for the pull request's head; None: there are none."""
    pair = (number, head_of(world, number))
    repository = (await world.queue()).repository_id
    kept = await world.runtime.store.read(known_pulls.targets_of, repository, [pair])
    return None if pair not in kept else frozenset(kept[pair].names)


async def test_a_fork_run_at_the_same_commit_cannot_empty_the_targets_of_a_member(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: two halves that fail together would both land."""
    await world.make_queue(mode=Mode.PARALLEL)
    one, other = await world.open(files={"x.txt": "x\n"}), await world.open(files={"y.txt": "y\n"})
    await world.settle()
    for number in (one, other):
        await ask.done("setImpactedTargets", number, impactedTargets=["//core"])
    fork = await of_fork(world, same_as=other)
    assert head_of(world, fork) == head_of(world, other)
    status, refusal = await upload(world, other, await run_of(world, fork))
    await world.comment("/merge", on=one)
    await world.comment("/merge", on=other)
    await world.settle()
    assert len(await landed_on(world)) == 1
    assert not {"x.txt", "y.txt"} <= await files_on(world)
    assert await targets_kept(world, other) == frozenset({"//core"})
    assert (status, "not_own_pull_request" in refusal) == (403, True)
    assert f"#{other}" in refusal


async def test_a_fork_run_sets_only_its_own_pull_requests(world: World, ask: Asker) -> None:
    """Hurts an author: a stranger's run would move the author's change to another lane."""
    await world.make_queue(mode=Mode.PARALLEL)
    member = await world.open()
    mine = await of_fork(world)
    theirs = await of_fork(world, by="carol", same_as=mine)
    run = await run_of(world, mine)
    refused = {
        "another fork's, at the same commit": await upload(world, theirs, run),
        "a member's, under its own head": await upload(world, member, run),
        "a member's, under the fork's head": await upload(
            world, member, run, sha=head_of(world, mine)
        ),
        "a number that nobody has": await upload(world, 9999, run, sha=head_of(world, mine)),
        "an issue's number": await upload(
            world,
            (await world.act("open_issue", title="Broken", body=""))["number"],
            run,
            sha=head_of(world, mine),
        ),
    }
    assert {why: status for why, (status, _) in refused.items() if status not in (401, 403)} == {}
    assert [await targets_kept(world, each) for each in (member, theirs)] == [None, None]
    status, _ = await upload(world, mine, run, "//web")
    assert (status, await targets_kept(world, mine)) == (200, frozenset({"//web"}))


async def test_a_run_of_an_older_head_or_one_that_ended_is_worth_nothing(
    world: World, ask: Asker
) -> None:
    """Hurts the author of a fork: whoever replays an old run would decide for the new head."""
    await world.make_queue(mode=Mode.PARALLEL)
    mine = await of_fork(world)
    stale = await run_of(world, mine)
    before = head_of(world, mine)
    await world.act("push", by="dave", number=mine, files={"more.txt": "x\n"})
    await world.settle()
    status, _ = await upload(world, mine, stale)
    assert status == 401
    status, _ = await upload(world, mine, stale, sha=before)
    assert status in (401, 403)
    over = await run_of(world, mine)
    for one in world.repository.workflow_runs:
        if str(one.id) == over:
            one.status, one.conclusion = "completed", "cancelled"
    status, _ = await upload(world, mine, over)
    assert (status, await targets_kept(world, mine)) == (401, None)


async def test_a_run_of_another_repository_or_of_a_member_is_worth_nothing(
    world: World, ask: Asker
) -> None:
    """Hurts everybody who builds main: own CI elsewhere would speak for this repository."""
    await world.make_queue(mode=Mode.PARALLEL)
    files = {"README.md": "# Gears\n", ".sandbox/ci.yml": CI}
    await world.sandbox.seed(repositories=[{"full_name": "octo/gears", "files": files}])
    member, mine = await world.open(), await of_fork(world)
    made = await world.sandbox.act("open", "dave", "octo/gears", fork=True, files={"a": "b"})
    gears = world.sandbox.world.repository("octo/gears")
    assert gears is not None
    await world.settle()
    elsewhere = str(gears.workflow_runs[-1].id)
    assert gears.issues[made["number"]].pull is not None
    for run in (elsewhere, await run_of(world, member)):
        for number in (mine, member):
            status, _ = await upload(world, number, run)
            assert status == 401
    assert REPO not in str(elsewhere)
    assert [await targets_kept(world, each) for each in (member, mine)] == [None, None]
