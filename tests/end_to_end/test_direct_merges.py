"""A direct merge believes only checks that judged this head on this base (landing.md 12)."""

from collections.abc import Awaitable, Callable

import pytest

from bot.sandbox import ci
from bot.sandbox.acts import seeds
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {pull_request: true}
checks:
  - name: unit
    seconds: 3
    rules: [{exists: [old-api.txt, uses-new-api.txt], conclusion: failure}]
"""
OF_THE_BRANCH = CI.replace("{pull_request: true}", '{push: ["topic*", "headgate/**"]}')
BY_STATUS = CI.replace("- name: unit", "- name: unit\n    kind: status")

Story = Callable[[World], Awaitable[int]]


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    return WorldOptions(**{"ci": CI, **getattr(request, "param", {})})


def on_main(world: World, *paths: str) -> bool:
    tip = str(world.repository.git.branch("main"))
    return all(world.repository.git.objects.item_at(tip, path) is not None for path in paths)


async def how_it_landed(world: World, number: int) -> str:
    """Ask for the landing, and return the reason of the end."""
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    entry = await world.entry(number)
    return entry.reason.value if entry.reason is not None else entry.state.value


async def another_base(world: World) -> str:
    """Make `dev` without the old interface, which `main` has; the tip of `main`."""
    await world.act("push", by="alice", branch="main", files={"old-api.txt": "o"}, bypass=True)
    tip = str(world.repository.git.branch("main"))
    await world.act("push", by="alice", branch="dev", **{"from": tip}, files={"old-api.txt": None})
    return tip


async def retargeted(world: World, files: dict[str, str] | None = None) -> int:
    """Open on `dev`, let CI judge it there, then change the base to `main`."""
    tip = await another_base(world)
    files = files or {"topic.txt": "x"}
    number = await world.open(base="dev", head="topic", files=files, **{"from": tip})
    await world.settle()
    await world.act("retarget", number=number, base="main")
    return number


async def retargeted_and_run_again(world: World) -> int:
    number = await retargeted(world)
    await world.settle()
    run = world.repository.workflow_runs[-1]
    ci.rerun(world.repository, run, failed_only=False)
    return number


async def retargeted_and_back(world: World) -> int:
    await another_base(world)
    number = await world.open(head="topic", fresh=True)
    await world.settle()
    for base in ("dev", "main"):
        await world.act("retarget", number=number, base=base)
    return number


async def of_a_parent_that_was_merged(world: World) -> int:
    parent = await world.open(head="parent", fresh=True)
    start = {"from": str(world.repository.git.branch("parent"))}
    child = await world.open(head="topic", base="parent", files={"t.txt": "x"}, **start)
    await world.settle()
    seeds.set_rules(world.repository, {})
    await world.act("force_push", by="alice", branch="main", to=start["from"])
    await world.act("retarget", number=child, base="main")
    seeds.set_rules(world.repository, {"required_checks": ["unit"]})
    assert await world.merged() == [parent]
    return child


async def beside_another_of_its_branch(world: World) -> int:
    number = await world.open(head="topic", fresh=True)
    await another_base(world)
    await world.act("push", number=number, files={"old-api.txt": "o", "more.txt": "x"})
    await world.act("open", head="topic", base="dev")
    return number


async def opened_on_main(world: World) -> int:
    return await world.open(head="topic", fresh=True)


async def with_main_merged_into_it(world: World) -> int:
    number = await world.open(head="topic")
    await world.settle()
    tip = str(world.repository.git.branch("main"))
    await world.act("force_push", number=number, onto=tip, files={"t.txt": "x"})
    return number


async def opened_again_on_main(world: World) -> int:
    tip = await another_base(world)
    first = await world.open(base="dev", head="topic", files={"t.txt": "x"}, **{"from": tip})
    await world.settle()
    await world.act("close", number=first)
    await world.settle()
    number: int = (await world.act("open", head="topic", base="main"))["number"]
    return number


async def retargeted_and_pushed(world: World) -> int:
    number = await retargeted(world)
    await world.settle()
    await world.act("push", number=number, files={"more.txt": "x"})
    return number


@pytest.mark.parametrize(
    "story",
    [
        retargeted,
        retargeted_and_run_again,
        retargeted_and_back,
        of_a_parent_that_was_merged,
        beside_another_of_its_branch,
    ],
)
async def test_a_check_that_may_have_judged_another_base_needs_a_test_branch(
    world: World, story: Story
) -> None:
    number = await story(world)
    assert await how_it_landed(world, number) == "landed"


@pytest.mark.parametrize(
    "story",
    [opened_on_main, with_main_merged_into_it, opened_again_on_main, retargeted_and_pushed],
)
async def test_a_check_of_this_head_on_this_base_needs_no_test_branch(
    world: World, story: Story
) -> None:
    number = await story(world)
    assert await how_it_landed(world, number) == "landed_directly"


async def test_what_breaks_the_target_does_not_land_by_a_check_of_another_base(
    world: World,
) -> None:
    number = await retargeted(world, {"uses-new-api.txt": "x"})
    assert await how_it_landed(world, number) == "required_status_failed"
    assert not on_main(world, "old-api.txt", "uses-new-api.txt")


@pytest.mark.parametrize("world_options", [{"ci": OF_THE_BRANCH}], indirect=True)
async def test_a_check_of_the_commit_itself_counts_on_each_base(world: World) -> None:
    number = await retargeted(world)
    assert await how_it_landed(world, number) == "landed_directly"


@pytest.mark.parametrize("world_options", [{"ci": BY_STATUS}], indirect=True)
@pytest.mark.parametrize(
    ("story", "end"), [(opened_on_main, "landed_directly"), (retargeted, "landed")]
)
async def test_a_status_counts_only_if_the_base_never_changed(
    world: World, story: Story, end: str
) -> None:
    # The account of CI is learned as the reporter of the name.
    await how_it_landed(world, await world.open(head="first", fresh=True))
    number = await story(world)
    assert await how_it_landed(world, number) == end
