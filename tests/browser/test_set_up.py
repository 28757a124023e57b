"""From an organization without an App to its first landed pull request, in a real browser."""

import asyncio
import re
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Error

from bot.sandbox.app import SandboxOptions, running
from service.clock import SystemClock
from tests.browser.chromium import WIDTHS, person
from tests.browser.test_journeys import shown_to_all
from tests.cli import processes
from tests.harness.processes import QUICK, SPEED

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPO = "octo/widgets"
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks: [{name: unit, seconds: 3}]
"""
WIDE = WIDTHS[:1]
LOOKS = 600
PAUSE_S = 0.1

clock = SystemClock()


@asynccontextmanager
async def organization():
    """A sandbox with a repository and its pull request, and no App."""
    async with running(SandboxOptions(has_app=False, speed=SPEED)) as sandbox:
        files = {"README.md": "# Widgets\n", ".sandbox/ci.yml": CI}
        one = {"full_name": REPO, "files": files, "required_checks": ["unit"]}
        await sandbox.seed(repositories=[one])
        await sandbox.act("open", "alice", REPO, files={"a.txt": "one\n"}, title="Add a")
        yield sandbox


async def link_of(service):
    """The address that `headgate serve` prints."""
    while line := await asyncio.to_thread(service.stdout.readline):
        if found := re.search(r"http://\S+/setup\?token=\S+", line):
            return found[0]
    raise AssertionError(service.stderr.read())


async def until_ready(page, root):
    """Wait for the restart with the credentials of the App."""
    for _ in range(LOOKS):
        try:
            if (await page.request.get(f"{root}/readyz")).ok:
                return
        except Error:
            pass  # a connection to the set-up pages ends with them
        await clock.sleep(PAUSE_S)
    raise AssertionError("the service is not ready")


async def press(page, name):
    """Press a button, and wait for the page to which it leads."""
    await page.get_by_role("button", name=name, exact=True).click()


async def test_an_organization_gets_its_app_and_lands_its_first_pull_request(browser, tmp_path):
    async with organization() as sandbox:
        given = {**sandbox.environment(), **QUICK, "HEADGATE_DATA_DIR": str(tmp_path / "state")}
        with processes.started("serve", "--port", "0", cwd=tmp_path, **given) as service:
            link = await link_of(service)
            root = link.partition("/setup")[0]
            async with person(browser, root, also=[sandbox.url]) as page:
                await register(page, link)
                await until_ready(page, root)
                await install(page)
                await land(page)
        assert sandbox.repository(REPO).issues[1].pull.merged


async def register(page, link):
    await page.goto(link)
    await press(page, "Begin")
    assert await shown_to_all(page, "set-up-register") == []
    await page.get_by_label("Name of the organization").fill("octo")
    await press(page, "Continue")
    await page.get_by_role("heading", name="Create “Headgate” on github.localhost").wait_for()
    assert await shown_to_all(page, "set-up-confirm", WIDE) == []
    await press(page, "Create the GitHub App")
    await press(page, "Create GitHub App for octo")
    await page.get_by_role("heading", name="“Headgate” is registered").wait_for()
    assert await shown_to_all(page, "set-up-registered", WIDE) == []


async def install(page):
    await page.get_by_role("link", name="Install the App on GitHub").click()
    await press(page, "Install")
    await page.get_by_role("heading", name="Installed on octo: 1 repository").wait_for()
    assert await shown_to_all(page, "set-up-queues", WIDE) == []
    await press(page, "Create the queue")
    await page.get_by_role("heading", name=f"The queue of {REPO} main is ready").wait_for()
    assert await shown_to_all(page, "set-up-created") == []


async def land(page):
    await page.get_by_role("link", name="Open the pull requests").click()
    await page.get_by_role("link", name="Add a").click()
    await page.get_by_label("Comment as alice").fill("/merge")
    await press(page, "Comment")
    await page.get_by_role("link", name="follow").click()
    await page.get_by_role("heading", name="Merged into main").wait_for()
    await page.get_by_role("link", name="Live page").click()
    assert "equals" in await page.locator(".proof").inner_text()
