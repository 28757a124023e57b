"""From an organization without an App to the first landed pull request, in a browser alone."""

import asyncio
import json
import re
import signal

import pytest

from bot.sandbox.app import SandboxOptions, running
from service.clock import SystemClock
from tests.cli import processes
from tests.harness.browser import browsing
from tests.harness.processes import QUICK, SPEED

REPO = "octo/widgets"
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks: [{name: unit, seconds: 3}]
"""
WITHIN_S = 150.0
LOOK_EVERY_S = 0.1

clock = SystemClock()


@pytest.fixture
async def sandbox():
    async with running(SandboxOptions(has_app=False, speed=SPEED)) as started:
        files = {"README.md": "# Widgets\n", ".sandbox/ci.yml": CI}
        one = {"full_name": REPO, "files": files, "required_checks": ["unit"]}
        await started.seed(repositories=[one, {"full_name": "octo/other"}])
        yield started


@pytest.fixture
def serve(tmp_path, sandbox):
    """A real `headgate serve` that knows the host and nothing else."""
    given = {**sandbox.environment(), **QUICK, "HEADGATE_DATA_DIR": str(tmp_path / "state")}
    with processes.started("serve", "--port", "0", cwd=tmp_path, **given) as child:
        yield child


async def link_in(child):
    """The address that it prints."""
    while True:
        line = await asyncio.to_thread(child.stdout.readline)
        assert line, child.stderr.read()
        found = re.search(r"http://\S+/setup\?token=\S+", line)
        if found is not None:
            return found[0]


async def until(is_so):
    deadline = clock.monotonic_s() + WITHIN_S
    while not await is_so():
        assert clock.monotonic_s() < deadline, "it never came true"
        await clock.sleep(LOOK_EVERY_S)


@pytest.mark.first
async def test_an_organization_gets_its_app_and_lands_its_first_pull_request(
    serve, sandbox, tmp_path
):
    async with browsing() as browser:
        link = await link_in(serve)
        assert (await browser.open(link)).status == 200
        page = await browser.press("Begin")
        assert "token" not in page.url
        page = await browser.press("Continue", organization="octo", name="Octo Queue")
        assert "Create “Octo Queue” on github.localhost" in page.text
        page = await browser.press("Create the GitHub App")
        page = await browser.press("Create GitHub App for octo")
        assert (page.status, "“Octo Queue” is registered" in page.text) == (200, True)

        page = await browser.follow("Install the App on GitHub")
        root = link.partition("/setup")[0]

        async def is_ready():
            try:
                return (await browser.open(f"{root}/readyz")).status == 200
            except OSError:
                return False

        await until(is_ready)
        browser.page = page
        page = await browser.press("Install", owner="octo")
        assert "Installed on octo: 2 repositories" in page.text
        assert "main requires no checks" in page.text
        page = await browser.press("Create the queue")
        assert f"The queue of {REPO} main is ready" in page.text
        assert "Required checks: unit." in page.text

        await browser.open(f"{sandbox.url}/{REPO}")
        page = await browser.press("Open as alice", path="a.txt", text="one\n", title="Add a")
        assert "/pull/1" in page.url
        await browser.press("Comment", body="/merge")
        repository = sandbox.repository(REPO)
        git = repository.git

        # The branch moves a moment after the pull request is marked as merged.
        async def has_landed():
            return git.objects.file_at(git.branch("main"), "a.txt") == b"one\n"

        await until(has_landed)
        assert repository.issues[1].pull.merged
        assert (await browser.open(link)).status == 403

    serve.send_signal(signal.SIGTERM)
    out, log = await asyncio.to_thread(serve.communicate)
    assert serve.returncode == 0
    stored = tmp_path / "state" / "github-app.env"
    assert stored.stat().st_mode & 0o777 == 0o600
    secrets = re.findall(r'(?:KEY|SECRET)="([^"]+)"', stored.read_text())
    assert len(secrets) == 3
    token = link.partition("token=")[2]
    for secret in (token, *secrets, secrets[0].replace("\\n", "\n")):
        assert secret[-40:] not in log
    assert token not in out
    events = [json.loads(line)["event"] for line in log.splitlines() if line.startswith("{")]
    assert events.index("setup_required") < events.index("app_registered") < events.index("ready")
