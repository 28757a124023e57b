"""The stories of the playground: one for each button of its page."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp

from bot.demo import story, watching, widgets
from bot.demo.ground import LOOK_S, Ground
from bot.demo.stage import NOT_ANSWERED
from service.errors import ServiceError

STORY_TIMEOUT_S = 900.0
WRONG_TEST = widgets.test_file("mail", 'self.assertTrue(mail.SENDER.endswith(".org"))')
RIGHT_TEST = widgets.test_file("mail", 'self.assertTrue(mail.SENDER.endswith(".example"))')


@dataclass(frozen=True, slots=True)
class Button:
    """A story: what its button says, what a visitor will see, and what happens."""

    name: str
    label: str
    shows: str
    play: Callable[[Ground], Awaitable[None]]


async def _break_a_test(ground: Ground) -> None:
    """Submit one that breaks a test, and a good one behind it."""
    bad = await ground.open("bob", "Round totals up", {"widgets/cart.py": story.ROUNDED_UP})
    good = await ground.open("alice", "Sort the wish list", ground.own_file())
    await ground.merge("bob", bad)
    await ground.merge("alice", good)
    await ground.until([bad, good])


async def _excuse_a_flake(ground: Ground) -> None:
    """Submit one while a test fails that is known to be flaky."""
    ground.say("It rains on the CI machine: test_picnic, which is known to be flaky, will fail")
    ground.stage.set_rain(is_on=True)
    try:
        number = await ground.open("bob", "List the picnics", ground.own_file())
        await ground.merge("bob", number)
        await ground.until([number])
    finally:
        ground.stage.set_rain(is_on=False)
    for name in sorted(watching.excused_in(await ground.runs_of(number))):
        ground.say(f"{name} failed in the test run; the failure was excused", [number])


async def conflict(ground: Ground) -> None:
    """Submit two that write the same file; their tests end once both are queued."""
    name = f"routes_{ground.made + 1}"
    path, sign = f"widgets/{name}.py", f"{name}-are-queued"

    def files(route: str) -> dict[str, str]:
        test = f"{name}_{route}"
        waiting = widgets.awaiting_test_file(test, sign)
        return {path: f'ROUTE = "/{route}"\n', f"tests/test_{test}.py": waiting}

    try:
        first = await ground.open("alice", "Rename the routes", files("v2"))
        second = await ground.open("bob", "Rename the routes differently", files("new"))
        await ground.merge("alice", first)
        await ground.merge("bob", second)
    finally:
        # Once the first lands, every test run has its test, also if the story has broken off.
        ground.stage.show_sign(sign)
    await ground.until([first, second])


async def stack(ground: Ground) -> None:
    """Submit a stack of three by one comment on its top."""
    bottom = await ground.open("alice", "Orders 1: a model", ground.own_file())
    middle = await ground.open("alice", "Orders 2: a store", ground.own_file(), ground.pull(bottom))
    top = await ground.open("alice", "Orders 3: a page", ground.own_file(), ground.pull(middle))
    await ground.stage.act("alice", "stack", numbers=[bottom, middle, top])
    ground.say("The three are a stack", [bottom, top])
    await ground.merge("alice", top)
    await ground.until([bottom, middle, top])


async def _lose_webhooks(ground: Ground) -> None:
    """Submit one while no webhook arrives."""
    ground.say("From now on every webhook is lost; sweeps must find what happens")
    fault = await ground.stage.add_fault({"match": {}, "fault": {"kind": "drop"}})
    try:
        number = await ground.open("bob", "Log the orders", ground.own_file())
        await ground.merge("bob", number)
        await ground.until([number])
    finally:
        await ground.stage.clear_fault(fault)
    ground.say("Webhooks arrive again")


async def urgent(ground: Ground) -> None:
    """Submit an urgent one while another one is tested."""
    waiting = await ground.open("bob", "Tidy the cart", ground.own_file())
    hotfix = await ground.open("alice", "Hotfix", ground.own_file())
    await ground.merge("bob", waiting)
    await ground.until([waiting], lambda each: each.is_being_tested or each.is_final)
    await ground.merge("alice", hotfix, "/merge --priority=urgent")
    await ground.until([waiting, hotfix])


async def _break_main(ground: Ground) -> None:
    """Break the branch itself, and repair it once the queue has noticed.

    Each time by a test of its own, so that its earlier results do not make it flaky.
    """
    path = f"tests/test_sender_{ground.made + 1}.py"
    await ground.push({path: WRONG_TEST}, "Test the sender")
    await ground.push(ground.own_file(), "Keep working on the broken branch")
    number = await ground.open("bob", "Count the mails", ground.own_file())
    await ground.merge("bob", number)
    while not (held := await ground.holds()) and not ground.watch.submissions[number].is_final:
        await ground.clock.sleep(LOOK_S)
    await ground.push({path: RIGHT_TEST}, "Correct the test of the sender")
    for each in held:
        await ground.release(each, "main is repaired")
    await ground.until([number])


BUTTONS: tuple[Button, ...] = (
    Button(
        "break-a-test",
        "Break a test",
        "One pull request breaks a test; the one behind it lands without it.",
        _break_a_test,
    ),
    Button(
        "flaky-test",
        "Flaky test",
        "A known flaky test fails. Its failure is excused, and the pull request lands.",
        _excuse_a_flake,
    ),
    Button(
        "conflict",
        "Conflict",
        "Two change the same file. The second one fails once the first has landed.",
        conflict,
    ),
    Button(
        "stack",
        "Stack of three",
        "One /merge on the top lands three from the bottom up, tested by one run.",
        stack,
    ),
    Button(
        "urgent",
        "Urgent",
        "A hotfix goes ahead of one that is being tested.",
        urgent,
    ),
    Button(
        "lost-webhooks",
        "Lose webhooks",
        "No webhook arrives. Sweeps find the comment and the checks, only later.",
        _lose_webhooks,
    ),
    Button(
        "broken-main",
        "Break main",
        "A push by hand breaks main. The queue stops and blames no pull request until main passes.",
        _break_main,
    ),
)
BY_NAME = {button.name: button for button in BUTTONS}


def start(ground: Ground, button: Button) -> None:
    """Begin a story, unless it is being played."""
    before = ground.playing.get(button.name)
    if before is None or before.done():
        ground.playing[button.name] = asyncio.create_task(_played(ground, button))


async def _played(ground: Ground, button: Button) -> None:
    try:
        async with asyncio.timeout(STORY_TIMEOUT_S) as limit:
            await button.play(ground)
    except (aiohttp.ClientError, ServiceError) as broken:
        ground.say(f"“{button.label}” broke off: {broken}")
    except TimeoutError:
        # The session's own time limit for a response raises the same error.
        if limit.expired():
            ground.say(f"“{button.label}” was not over after {STORY_TIMEOUT_S:.0f} s")
        else:
            ground.say(f"“{button.label}” broke off: {NOT_ANSWERED}")
