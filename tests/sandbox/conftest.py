"""A sandbox that stands still, one repository in it, and those who call it."""

import aiohttp
import pytest
from aiohttp import web

from bot.sandbox.app import SandboxOptions, running
from tests.sandbox.client import REPO, Client, Receiver, app_token, as_app

CI = """
triggers: { push: [main, "headgate/merge/**"], pull_request: true }
checks:
  - name: unit
    seconds: 3
    rules:
      - { exists: [bad.txt], conclusion: failure }
      - { exists: [a.txt, b.txt], conclusion: failure }
"""
FILES = {
    "README.md": "widgets\n",
    "app.py": "one\ntwo\nthree\nfour\nfive\n",
    ".sandbox/ci.yml": CI,
}


@pytest.fixture
async def sandbox():
    async with running(SandboxOptions(is_manual=True)) as started:
        await started.seed(repositories=[{"full_name": REPO, "files": FILES}])
        yield started


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def jwt_client(sandbox, http):
    return Client(sandbox, http, app_token(sandbox))


@pytest.fixture
async def app(sandbox, http):
    """The App, with a token for the repository."""
    return await as_app(sandbox, http)


@pytest.fixture
def person(sandbox, http):
    """`person("alice")`: a client with the token of a person."""
    return lambda login: Client(sandbox, http, sandbox.credentials.person_token(login))


@pytest.fixture
async def receiver(sandbox):
    """Where webhooks go."""
    made = Receiver()
    application = web.Application()
    application.router.add_post("/hook", made.receive)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sandbox.world.webhook_url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()
