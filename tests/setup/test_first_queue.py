"""The page of the first queue, on a service that runs."""

import pytest
from aiohttp import web

from bot import settings as all_settings
from bot.setup import first_queue, sessions
from bot.setup.first_queue import FirstQueue
from bot.setup.sessions import Sessions
from service.http.health import Check, Readiness, Word
from service.mergequeue.operations.repository_file import PATH
from tests.harness.browser import browsing
from tests.harness.world import REPO

CREATE = "Create the queue"


@pytest.fixture
async def browser(world, tmp_path):
    """A browser that opened a link of `headgate setup-url`."""
    await world.settle()
    settings = all_settings.alone(data_dir=str(tmp_path))
    token = sessions.new_link(settings, world.clock.now())
    async with browsing() as opened:
        await opened.open(sessions.link_of(world.url, token))
        page = await opened.press("Begin")
        assert (page.status, page.url) == (200, f"{world.url}{first_queue.PATH}")
        yield opened


async def test_the_page_needs_a_link(world):
    async with browsing() as stranger:
        for path in ("/setup", "/setup/queues", "/setup?token=wrong"):
            page = await stranger.open(f"{world.url}{path}")
            assert (page.status, "headgate setup-url" in page.text) == (403, True)
        async with stranger.http.post(f"{world.url}/setup/queues", data={}) as answer:
            assert answer.status == 403


async def test_it_creates_a_queue_that_lands_a_pull_request(world, browser):
    assert "Required checks: unit. Merge method: squash." in browser.page.text
    page = await browser.press(CREATE)
    assert f"The queue of {REPO} main is ready" in page.text
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "Has a queue." in page.text
    assert page.forms == []
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.merged() == [number]


async def test_a_queue_that_is_there_is_refused_with_the_answer_of_the_api(world, browser):
    first = browser.page
    await browser.press(CREATE)
    browser.page = first
    page = await browser.press(CREATE)
    assert (page.status, "Not done:" in page.text) == (409, True)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"repository": "999"}, 404, "does not see this repository"),
        ({"branch": "nowhere"}, 422, "requires no checks"),
    ],
)
async def test_a_queue_that_cannot_be_is_refused(world, browser, fields, status, words):
    page = await browser.press(CREATE, **fields)
    assert (page.status, words in page.text) == (status, True)


async def test_a_form_of_another_site_creates_nothing(world, browser):
    form = dict(browser.page.form(CREATE).fields)
    sent = browser.http.post(browser.page.url, data=form, headers={"Origin": "https://evil.test"})
    async with sent as answer:
        assert answer.status == 403
    page = await browser.press(CREATE, csrf="wrong")
    assert page.status == 403
    assert "Has a queue." not in (await browser.open(f"{world.url}{first_queue.PATH}")).text


async def test_rules_that_exclude_landings_are_shown(world, browser):
    strict = {"checks": ["unit"], "strict": True}
    await world.sandbox.control.rules({"repo": REPO, "protection": {"main": strict}})
    await world.settle()
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "Turn off “Require branches to be up to date before merging”" in page.text


async def write_file(world, text: str) -> None:
    """Push the repository file to the target branch."""
    await world.act("push", by="alice", branch="main", files={PATH: text}, bypass=True)
    await world.settle()


async def test_the_repository_file_says_the_merge_method(world, browser):
    await write_file(world, "version: 1\nqueues:\n  main:\n    mergeMethod: REBASE\n")
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "Required checks: unit. Merge method: rebase." in page.text
    page = await browser.press(CREATE)
    assert "Merge method: rebase." in page.text


async def test_a_fault_of_the_repository_file_is_named(world, browser):
    await write_file(world, "version: 1\nqueues:\n  main:\n    concurency: 3\n")
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert f"{PATH}, line 4:" in page.text
    assert "concurency" in page.text
    assert "the file changes nothing" in page.text


async def test_a_branch_of_githubs_own_queue_gets_none(world, browser):
    rule = {"name": "queue", "rules": [{"type": "merge_queue", "parameters": {}}]}
    await world.sandbox.control.rules({"repo": REPO, "rulesets": [rule]})
    await world.settle()
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "GitHub's own merge queue owns main." in page.text
    assert page.forms == []


async def test_archived_repositories_get_none(world, browser):
    await world.act("archive", by="alice")
    await world.settle()
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "The repository is archived." in page.text


async def test_without_an_installation_it_says_so(world, browser):
    await world.act("uninstall", by="alice")
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert (page.status, "The App is not installed yet" in page.text) == (200, True)


async def test_many_repositories_take_several_pages(world, browser):
    names = [{"full_name": f"octo/r{number:02}"} for number in range(first_queue.SHOWN_MAX)]
    await world.sandbox.seed(repositories=names)
    await world.settle()
    page = await browser.open(f"{world.url}{first_queue.PATH}")
    assert "octo/r19" in page.text
    assert REPO not in page.text
    page = await browser.follow("Next")
    assert REPO in page.text
    assert "octo/r19" not in page.text


async def test_while_it_starts_the_page_reloads_until_it_shows_the_repositories(world, tmp_path):
    await world.settle()
    readiness = Readiness()
    settings = all_settings.alone(data_dir=str(tmp_path))
    starting = FirstQueue(world.runtime, settings, readiness, Sessions(settings, world.clock))
    app = web.Application()
    app.add_routes(starting.routes())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    token = sessions.new_link(settings, world.clock.now())
    async with browsing() as opened:
        root = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await opened.open(sessions.link_of(root, token))
        page = await opened.press("Begin")
        assert (page.status, "Headgate is starting" in page.text) == (503, True)
        assert page.reload_s == first_queue.RELOAD_S
        readiness.mark(Check.RECOVERY, Word.OK)
        page = await opened.open(page.url)
        assert (page.status, page.reload_s) == (200, None)
        assert REPO in page.text
    await runner.cleanup()
