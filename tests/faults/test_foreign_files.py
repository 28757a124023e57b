"""Files of one tenant that take too much: it gets one clear error, and others are not delayed."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.vocabulary import SYSTEM, RepoRef, Role
from tests.harness.asking import HOST, Asker, asker
from tests.harness.world import World

EVIL = RepoRef(HOST, "evil", "thing")
WORKFLOW = ".github/workflows/x.yml"
FILE = ".github/headgate.yml"
OWN: dict[str, Any] = {"repo": {"host": HOST, "owner": EVIL.owner, "name": EVIL.name}}
KEYS = "".join(f"k{number}: {number}\n" for number in range(11_000))
DEEP = "on: push\njobs: " + "[" * 5_000 + "]" * 5_000 + "\n"


def bomb(levels: int = 9) -> str:
    """Lists of ten in lists of ten, used where a text is expected."""
    names = "abcdefghi"[:levels]
    lists = [f"{one}: &{one} [{','.join([f'*{below}'] * 10)}]" for below, one in pairwise(names)]
    first = "a: &a [x,x,x,x,x,x,x,x,x,x]"
    return "\n".join([first, *lists, "on: [push]", f"concurrency: {{group: *{names[-1]}}}", ""])


async def evil(world: World, files: dict[str, str]) -> Asker:
    """An admin of another organization, whose repository has these files on main."""
    content = {"README.md": "x\n", **files}
    await world.sandbox.seed(repositories=[{"full_name": EVIL.slug, "files": content}])
    await world.settle()
    wish = TokenRequest(HOST, EVIL.owner, "story", Role.ADMIN)
    return Asker(world, (await tokens.create_token(world.runtime, wish, SYSTEM)).secret)


async def merged_one(world: World) -> None:
    """Submit a pull request of octo/widgets and see it land."""
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert number in await world.merged()


def said_of(doctor: dict[str, Any], name: str) -> list[str]:
    return [each["found"] for each in doctor["findings"] if name in each["found"]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(), "The file has more than 20,000 values. Shorten it."),
        (KEYS, "The file has more than 20,000 values. Shorten it."),
        (DEEP, "This is nested more than 50 levels deep."),
        ("on: {<<: {push: }}\n", "Merge keys (`<<`) are not supported. Write the keys."),
    ],
)
@pytest.mark.fault(
    "a workflow file is a bomb",
    holds="it is named and stops nothing",
    within="15 min",
)
async def test_a_workflow_file_that_takes_too_much_is_named_and_stops_nothing(
    world: World, text: str, why: str
) -> None:
    theirs = await evil(world, {WORKFLOW: text})
    await theirs.done("createQueue", **OWN)
    doctor = await theirs.done("runDoctor", **OWN)
    (found, *_) = said_of(doctor, "x.yml")
    assert "Headgate cannot read" in found
    assert why in found
    await world.make_queue()
    await merged_one(world)


async def test_a_settings_file_that_takes_too_much_is_one_fault_of_its_queue(world: World) -> None:
    theirs = await evil(world, {FILE: "version: 1\n" + bomb()})
    await theirs.done("createQueue", **OWN)
    (fault,) = (await theirs.done("getQueue", **OWN))["repositoryFile"]["faults"]
    assert (fault["path"], fault["line"]) == (FILE, 2)
    assert fault["message"] == "Anchors (`&name`) are not supported. Remove the anchor."


@pytest.mark.fault(
    "files of one tenant take long to read",
    holds="other tenants do not wait",
    within="at once",
)
async def test_one_tenants_slow_files_delay_its_own_requests_alone(world: World) -> None:
    settings = "version: 1\nqueues: {main: {concurrency: 3}}\n"
    theirs = await evil(world, {WORKFLOW: bomb(), FILE: settings})
    ours = await asker(world)
    await world.act("push", by="alice", branch="main", files={FILE: settings}, bypass=True)
    await world.settle()
    parsers, clock = world.runtime.parsers, world.runtime.clock
    async with parsers.place(EVIL, clock), parsers.place(EVIL, clock):
        asked = asyncio.create_task(theirs.post("createQueue", **OWN))
        queue = await ours.done("createQueue")
        assert queue["repositoryFile"]["faults"] == []
        assert not asked.done()
    status, answer = await asked
    assert (status, answer["repositoryFile"]["faults"]) == (200, [])


async def test_a_tenant_whose_files_stay_slow_gets_an_error_and_may_try_again(world: World) -> None:
    theirs = await evil(world, {FILE: "version: 1\n"})
    parsers, clock = world.runtime.parsers, world.runtime.clock
    async with parsers.place(EVIL, clock), parsers.place(EVIL, clock):
        status, problem = await theirs.post("createQueue", **OWN)
        assert (status, problem["detail"]) == (503, "Too many files are being read.")
    await theirs.done("createQueue", **OWN)


async def test_a_person_may_merge_where_a_workflow_file_is_a_bomb(world: World) -> None:
    await world.act("push", by="alice", branch="main", files={WORKFLOW: bomb()}, bypass=True)
    await world.settle()
    number = await world.open()
    await world.comment("/merge", on=number, by="alice")
    await world.settle()
    assert await world.merged() == [number]
