"""The playground of `headgate demo`: each button, over HTTP, with real servers, git and CI.

The time of both servers runs faster. All their traffic is held against GitHub's published
descriptions.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from bot.demo import ground, playground, run
from bot.demo.ground import Ground
from bot.demo.run import DemoOptions
from bot.demo.stage import Parts, Ports
from bot.demo.watching import Watch
from tests.cli import processes
from tests.harness.clock import FastClock
from tests.harness.machine import free_port
from tests.harness.published import Traffic

pytestmark = pytest.mark.asyncio(loop_scope="module")
OVER_WITHIN_S = 240
FAST = 8.0
SPEED = 6.0


def free_ports() -> Ports:
    """Ports on which nobody listens."""
    return Ports(*(free_port() for _ in range(3)))


class Visitor:
    """A browser without JavaScript on the page of a playground."""

    def __init__(
        self, played: Ground, address: str, http: aiohttp.ClientSession, said: list[str]
    ) -> None:
        self.played, self.address, self.http, self.said = played, address, http, said

    async def page(self) -> str:
        """The page as it is now."""
        async with self.http.get(self.address) as answer:
            assert answer.status == 200
            return await answer.text()

    async def send(self, path: str, **fields: str) -> str:
        """Send a form; the page to which it leads."""
        async with self.http.post(f"{self.address}{path}", data=fields) as answer:
            assert (answer.status, str(answer.url)) == (200, self.address)
            return await answer.text()

    async def plays(self, name: str) -> list[int]:
        """Press the button of a story and wait for its end; the pull requests it opened."""
        before = {pull.number for pull in self.played.pulls}
        await self.send("stories", story=name)
        await self.over(name)
        return sorted({pull.number for pull in self.played.pulls} - before)

    async def over(self, name: str) -> None:
        """Wait for the end of a story."""
        await asyncio.wait([self.played.playing[name]], timeout=OVER_WITHIN_S)
        assert self.played.playing[name].done(), self.told()
        await self.played.playing[name]

    def number_of(self, title: str) -> int:
        """The number of the pull request with a title."""
        return next(pull.number for pull in self.played.pulls if pull.title == title)

    async def until_tested(self, title: str) -> None:
        """Wait until a pull request is opened, submitted and tested."""
        async with asyncio.timeout(OVER_WITHIN_S):
            while title not in {pull.title for pull in self.played.pulls}:
                await self.played.clock.sleep(ground.LOOK_S)
            await self.played.until([self.number_of(title)], lambda each: each.is_being_tested)

    def ends(self, numbers: list[int]) -> list[str]:
        """How pull requests ended, by what the service reports."""
        assert self.played.watch.submissions.keys() >= set(numbers), self.told()
        found = [self.played.watch.submissions[number] for number in numbers]
        return [f"{each.state} {each.reason}" for each in found]

    def told(self) -> str:
        """Everything that was told since the beginning, oldest first."""
        return "\n".join(self.said)

    def unproved(self) -> list[str]:
        """The proofs by git that do not hold at the end."""
        assert self.played.proofs
        return [f"{proof.name}: {proof.detail}" for proof in self.played.proofs if not proof.ok]


@asynccontextmanager
async def visiting(folder: Path) -> AsyncIterator[Visitor]:
    """A playground whose tests take a quarter of a second."""
    clock, ports, traffic = FastClock(SPEED), free_ports(), Traffic()
    parts, said = Parts(clock, clock.shared, traffic), list[str]()
    with processes.log_kept():
        async with (
            clock.running(),
            ground.running(folder, ports, parts, said.append) as played,
            playground.serving(played, ports.page or 0) as address,
            aiohttp.ClientSession() as http,
        ):
            played.stage.set_pace(FAST)
            yield Visitor(played, address, http, said)
    traffic.check()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def visitor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Visitor]:
    """One playground for all stories, in whatever order they come; git proves it at the end."""
    async with visiting(tmp_path_factory.mktemp("ground")) as visitor:
        yield visitor
        await visitor.send("end")
        assert visitor.unproved() == []


async def test_the_page_shows_both_sides_and_its_look_comes_from_the_dashboard(
    visitor: Visitor,
) -> None:
    page = await visitor.page()
    for button in playground.BUTTONS:
        assert f'value="{button.name}"' in page
    assert "Retry uploads" in page
    assert "A test branch waits until 10 s after the push before it" in page
    for name in re.findall(r'(?:href|src)="/static/([^"]+)"', page):
        async with visitor.http.get(f"{visitor.address}static/{name}") as answer:
            assert (answer.status, len(await answer.read()) > 100) == (200, True)
    (framed,) = re.findall(r'<iframe src="([^"]+)"', page)
    async with visitor.http.get(framed) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert answer.status == 200
        assert policy.endswith(f"frame-ancestors {visitor.address.rstrip('/')}")


async def test_a_comment_on_the_page_lands_a_pull_request_that_was_opened_there(
    visitor: Visitor,
) -> None:
    page = await visitor.send("pulls", title="A <b>bold</b> \0idea", kind="good")
    assert "A &lt;b&gt;bold&lt;/b&gt; idea" in page
    number = visitor.played.pulls[0].number
    page = await visitor.send("comments", number=str(number), text="/merge")
    assert f"#{number} alice comments /merge" in page
    async with asyncio.timeout(OVER_WITHIN_S):
        await visitor.played.until([number])
    assert visitor.ends([number]) == ["MERGED landed"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(visitor: Visitor) -> Mapping[str, list[int]]:
    """The pull requests of stories that were played at the same time, by story."""
    played = visitor.played
    names = ("break-a-test", "flaky-test", "conflict", "stack")
    for name in names:
        await visitor.send("stories", story=name)
        page = await visitor.page()
        assert f'value="{name}" disabled' in page, visitor.told()
    await asyncio.gather(*map(visitor.over, names))
    titles = {pull.title: pull.number for pull in played.pulls}
    return {
        "break-a-test": [titles["Round totals up"], titles["Sort the wish list"]],
        "flaky-test": [titles["List the picnics"]],
        "conflict": [titles["Rename the routes"], titles["Rename the routes differently"]],
        "stack": [number for title, number in sorted(titles.items()) if title[:6] == "Orders"],
    }


async def test_one_that_breaks_a_test_fails_alone(
    visitor: Visitor, opened: Mapping[str, list[int]]
) -> None:
    ends = visitor.ends(opened["break-a-test"])
    assert ends == ["FAILED required_status_failed", "MERGED landed"]


async def test_a_known_flake_is_excused_before_ones_eyes(
    visitor: Visitor, opened: Mapping[str, list[int]]
) -> None:
    assert visitor.ends(opened["flaky-test"]) == ["MERGED landed"]
    assert "test_picnic failed in the test run; the failure was excused" in visitor.told()


async def test_one_of_two_that_conflict_fails(
    visitor: Visitor, opened: Mapping[str, list[int]]
) -> None:
    # The first of them to be ready goes ahead.
    assert sorted(visitor.ends(opened["conflict"])) == ["FAILED conflict_target", "MERGED landed"]


async def test_one_of_two_that_conflict_lands_though_their_story_breaks_off(
    visitor: Visitor,
) -> None:
    played = visitor.played
    first = max(pull.number for pull in played.pulls) + 1
    await visitor.send("stories", story="conflict")
    async with asyncio.timeout(OVER_WITHIN_S):
        while first not in {pull.number for pull in played.pulls}:
            await played.clock.sleep(ground.LOOK_S)
        played.playing["conflict"].cancel()
        await visitor.send("comments", number=f"{first}", text="/merge")
        await played.until([first])
    assert visitor.ends([first]) == ["MERGED landed"]


async def test_a_stack_is_not_tested_member_by_member(
    visitor: Visitor, opened: Mapping[str, list[int]]
) -> None:
    assert visitor.ends(opened["stack"]) == ["MERGED landed"] * 3
    found = visitor.played.watch.submissions
    # One run, and another one for the rest where a landing member by member was interrupted.
    runs = {found[number].verified_by_test_run for number in opened["stack"]}
    assert len(runs) < len(opened["stack"])


async def test_an_urgent_one_lands_first_once_a_pause_of_the_tests_is_over(
    visitor: Visitor,
) -> None:
    page = await visitor.send("pace", pace="pause")
    assert 'value="pause" aria-pressed="true"' in page
    await visitor.send("stories", story="urgent")
    await visitor.until_tested("Hotfix")
    visitor.played.stage.set_pace(FAST)
    await visitor.over("urgent")
    waiting, hotfix = (visitor.number_of(title) for title in ("Tidy the cart", "Hotfix"))
    assert visitor.ends([waiting, hotfix]) == ["MERGED landed"] * 2
    found = visitor.played.watch.submissions
    ended = [found[number].conclusion for number in (hotfix, waiting)]
    first, second = (each.at for each in ended if each is not None)
    assert first < second


async def test_one_lands_though_every_webhook_is_lost(visitor: Visitor) -> None:
    numbers = await visitor.plays("lost-webhooks")
    assert visitor.ends(numbers) == ["MERGED landed"]
    assert visitor.played.stage.sandbox.world.faults.listed == []


async def test_nobody_is_blamed_for_a_broken_main(visitor: Visitor) -> None:
    numbers = await visitor.plays("broken-main")
    assert visitor.ends(numbers) == ["MERGED landed"]
    told = visitor.told()
    assert "The queue stopped: the target" in told
    assert "alice lets the queue go on: main is repaired" in told


async def test_a_playground_whose_service_was_away_for_a_while_follows_again(
    visitor: Visitor,
) -> None:
    stage, clock = visitor.played.stage, visitor.played.clock
    await visitor.send("comments", number="3", text="/merge")
    nobody = replace(stage, service=f"http://127.0.0.1:{free_port()}")
    said: list[str] = []
    second = Ground(Watch(nobody), clock, said.append, visitor.played.older)
    following = asyncio.create_task(second.follow())
    async with asyncio.timeout(OVER_WITHIN_S):
        while not said:
            await clock.sleep(ground.LOOK_S)
        await clock.sleep(3 * ground.LOOK_S)
        second.watch.stage = stage
        await second.until([3])
    following.cancel()
    assert sum("Headgate does not answer" in line for line in said) == 1


async def test_a_form_of_another_site_or_without_its_fields_is_refused(visitor: Visitor) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    url = f"{visitor.address}stories"
    async with visitor.http.post(url, data={"story": "stack"}, headers=foreign) as answer:
        assert answer.status == 403
    async with visitor.http.post(url, data={"story": "no such story"}) as answer:
        assert answer.status == 400
    page = await visitor.send("comments", number="999", text="/merge")
    assert "Refused: octo/widgets has no #999" in page


async def test_the_end_empties_the_queue_and_proves_by_git_what_landed(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visitor:
        landed = await visitor.plays("urgent")
        await visitor.send("pace", pace="pause")
        await visitor.send("comments", number="2", text="/merge")
        await visitor.until_tested("Bump client")
        page = await visitor.send("end")
        ends = visitor.ends([*landed, 2])
        assert ends == ["MERGED landed", "MERGED landed", "CANCELLED api_requested"]
        assert visitor.unproved() == []
        assert "Everything is proved, by git alone" in page
        again = await visitor.send("stories", story="stack")
        assert "Everything is proved, by git alone" in again
        assert "stack" not in visitor.played.playing


async def test_ctrl_c_ends_it_with_the_proofs_and_its_first_address_is_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FastClock(SPEED)
    parts = Parts(clock, clock.shared)
    options = DemoOptions(keep=tmp_path / "state", ports=free_ports(), parts=parts)
    said = ""
    with processes.log_kept():
        async with clock.running(), asyncio.timeout(OVER_WITHIN_S):
            playing = asyncio.create_task(run.playground(options))
            while "Ctrl-C" not in said:
                assert not playing.done(), playing.exception()
                await clock.sleep(0.1)
                said += capsys.readouterr().out
            os.kill(os.getpid(), signal.SIGINT)
            assert await playing
    assert re.findall(r"http://\S+", said)[0] == f"http://127.0.0.1:{options.ports.page}/"
    assert "✓ history is what was reported: main none" in capsys.readouterr().out
