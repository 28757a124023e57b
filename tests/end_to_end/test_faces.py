"""One story in the faces of GitHub, its deliveries in random orders.

Every other story meets one face, drawn from its name (tests/harness/faces.py).
"""

from itertools import product

import pytest

from bot.sandbox import reports
from bot.sandbox.faces import JITTER_S, Face
from bot.sandbox.records import Actor
from tests.harness import effort, gates
from tests.harness.world import REPO, World, WorldOptions

WAYS = product((False, True), repeat=4)
FACES = [Face(one, two, three, four, JITTER_S, "a") for one, two, three, four in WAYS]
ORDERS = [Face(jitter_s=JITTER_S, seed=f"order {seed}") for seed in range(effort.examples(24))]
PLAYED = [*(FACES if effort.IS_SOAK else FACES[::5]), *ORDERS]
LABEL = "headgate-submit"
CANCEL = "headgate:box=cancel"


def name_of(face: Face) -> str:
    """The name of a variant: the ways of its face, and its order."""
    ways = (face.hides_app, face.reports_as_author, face.has_no_draft_state, face.shows_mergeable)
    return f"{''.join(str(int(way)) for way in ways)} {face.seed}"


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """The face of the variant. Sweeps come too seldom to help."""
    return WorldOptions(ci=gates.CI, face=request.param)


def status_comment(world: World, number: int) -> int:
    """The id of our status comment on a pull request."""
    comments = world.repository.issues[number].comments
    (status,) = [one.id for one in comments if one.body == world.comment_on(number)]
    return status


async def has_entered(world: World, number: int) -> bool:
    return number in (await world.value()).entries


@pytest.mark.fault(
    "webhooks overtake each other, and GitHub shows Apps, senders and drafts in one of two ways",
    holds="each pull request ends as it would in the order of the acts, without a sweep",
    within="-",
)
@pytest.mark.parametrize("world_options", PLAYED, indirect=True, ids=name_of)
async def test_a_story_ends_alike_in_every_face_and_order(world: World) -> None:
    await world.make_queue(delete_branch=True)
    landing, unticked, draft = [await world.open(head=name) for name in ("one", "two", "three")]
    await world.act("draft", number=draft)
    await world.settle()
    await world.act("label", number=landing, label=LABEL)
    await world.until(lambda: has_entered(world, landing))
    await world.comment("/merge", on=draft)
    await world.comment("/merge", on=unticked)
    await gates.under_test(world, unticked)
    await world.settle()
    assert (await world.entry(draft)).unmet[0].value == "draft"

    ticked = {"number": unticked, "box": CANCEL, "comment": status_comment(world, unticked)}
    await world.sandbox.act("tick_checkbox", "bob", REPO, **ticked)
    await gates.ends(world, landing)
    await world.settle()
    assert await world.state(unticked) == "CANCELLED"
    assert await world.merged() == [landing]

    await world.act("draft", number=draft, draft=False)
    await gates.ends(world, draft)
    await world.settle()
    assert await world.merged() == [landing, draft]
    assert [one for one in world.branches() if not one.startswith("refs/")] == ["main", "two"]


def correct(world: World, number: int, conclusion: str) -> None:
    """Let CI set the completed check of a head to another conclusion."""
    pull = world.repository.issues[number].pull
    assert pull is not None
    checks = world.repository.check_runs(pull.head_sha)
    (check,) = [one for one in checks if one.name == gates.CHECK]
    actor = Actor(check.suite.app.bot, check.suite.app)
    reports.change_run(world.repository, check, actor, {"conclusion": conclusion})


@pytest.mark.parametrize("world_options", [FACES[0], FACES[-1]], indirect=True, ids=name_of)
async def test_a_verdict_that_its_app_corrects_is_heard_at_once(world: World) -> None:
    await world.make_queue()
    number = await world.open()
    await world.settle()
    correct(world, number, "failure")
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "NOT_READY"
    correct(world, number, "success")
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]


@pytest.mark.fault(
    "the event of a pull request's first head arrives after that of the next one",
    holds="`/merge` is for the newer head, also if both have one second",
    within="-",
)
@pytest.mark.parametrize("world_options", [FACES[0]], indirect=True, ids=name_of)
async def test_the_older_of_two_heads_of_one_second_is_not_taken_for_the_newer(
    world: World,
) -> None:
    await world.make_queue()
    await world.fault({"event": "pull_request", "action": "opened"}, "delay", s=9)
    number = await world.open()
    await world.act("push", number=number, files={"more.txt": "x\n"})
    await world.settle()
    await world.comment("/merge", on=number)
    await gates.ends(world, number)
    await world.settle()
    assert await world.merged() == [number]
