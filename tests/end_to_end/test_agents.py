"""An agent lands pull requests with the tools of `headgate mcp`, over both transports."""

import re
from typing import NamedTuple

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.cli import processes
from tests.end_to_end.test_command_line import seed
from tests.end_to_end.test_two_processes import token
from tests.harness.machine import free_port
from tests.harness.processes import Service, Stage, stage

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUEUE = {
    "repo": {"host": "github.localhost", "owner": "octo", "name": "widgets"},
    "targetBranch": "main",
}
REPO = "github.localhost/octo/widgets"


class Place(NamedTuple):
    """A running service with a queue, and the token of its admin."""

    set_up: Stage
    service: Service
    token: str

    async def post(self, path, **members):
        """The answer of the REST API."""
        status, answer = await self.set_up.api(self.service, path, self.token, **members)
        assert status == 200, answer
        return answer

    async def update(self, **settings):
        """Change the queue."""
        return await self.post("updateQueue", **QUEUE, **settings)

    async def opened(self, name):
        """A new pull request; its number."""
        change = {"head": name, "files": {f"{name}.txt": name}, "title": f"Add {name}"}
        act = {"as": "alice", "act": "open", "repo": "octo/widgets", **change}
        return (await self.set_up.control("acts", act))["number"]


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="place")
async def _place(tmp_path_factory):
    async with stage(tmp_path_factory.mktemp("agents")) as set_up:
        await seed(set_up)
        async with set_up.serving() as service:
            place = Place(set_up, service, await token(set_up))
            await place.post("createQueue", **QUEUE)
            yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="url")
async def _url(place):
    """The address of a server over HTTP that has no token itself."""
    port = str(free_port())
    started = ("mcp", "--http", "--port", port, "--repo", REPO)
    with processes.started(*started, cwd=place.set_up.folder, HEADGATE_URL=place.service.url):
        url = f"http://127.0.0.1:{port}/mcp"
        assert await status_of(url) == 401
        yield url


def over_stdio(place):
    """The transport to a server of our own that has the token in its environment."""
    arguments = [*processes.COMMAND[1:], "mcp", "--repo", REPO]
    settings = {"HEADGATE_URL": place.service.url, "HEADGATE_TOKEN": place.token}
    environment = processes.environment(**settings)
    return stdio_client(
        StdioServerParameters(
            command=processes.COMMAND[0], args=arguments, env=environment, cwd=place.set_up.folder
        )
    )


def with_token(token):
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)


async def status_of(url, token=None):
    """The status with which a server answers, once it listens."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.AsyncHTTPTransport(retries=8)
    async with httpx2.AsyncClient(transport=transport, timeout=30) as client:
        return (await client.post(url, json={}, headers=headers)).status_code


async def asked(client, tool, **arguments):
    """The structured answer of a tool."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


def said(answer):
    """The words of a refused call."""
    assert answer.is_error
    return str(answer.content)


async def landed(client, number):
    """Do what each step says until there is something else to do than wait; the last step."""
    step = await asked(client, "what_now", number=number)
    while step["kind"] in ("SUBMIT", "WAIT"):
        call = step["call"]
        assert step["code"] != "never_submitted" or call["tool"] == "land_pull_request"
        answer = await asked(client, call["tool"], **call["arguments"])
        step = answer.get("next_step", answer)
    return step


async def test_an_agent_lands_a_pull_request_over_stdio(place):
    async with Client(over_stdio(place)) as client:
        number = await place.opened("agent")
        missing = await client.call_tool("wait_for_pull_request", {"number": number})
        assert "was never submitted" in said(missing)

        step = await landed(client, number)
        assert (step["kind"], step["target_branch"], step["call"]) == ("DONE", "main", None)
        assert re.fullmatch("[0-9a-f]{40}", step["commit"])
        assert (await asked(client, "land_pull_request", number=number))["outcome"] == "merged"

        (queue,) = (await asked(client, "list_queues"))["queues"]
        assert (queue["repository"], queue["branch"], queue["state"]) == (REPO, "main", "RUNNING")
        assert await asked(client, "list_flaky_tests") == {"total": 0, "tests": []}


async def test_an_agent_learns_over_http_why_a_pull_request_failed(place, url):
    assert await status_of(url, "hgt_strange") == 401
    async with (
        with_token(place.token) as own,
        Client(streamable_http_client(url, http_client=own)) as client,
    ):
        await place.update(state="PAUSED", stateReason="freeze")
        for number in (1, 2):
            await asked(client, "land_pull_request", number=number)
        step = await asked(client, "what_now", number=1)
        assert (step["kind"], step["code"]) == ("WAIT", "queue_running")
        assert step["who_must_act"] == "maintainer"
        explained = await asked(client, "explain_pull_request", number=2)
        assert explained["ahead"] == [1]
        preview = await asked(client, "what_if", number=1, change="remove")
        assert preview["moved_up"] == [2]
        raised = await asked(client, "what_if", number=2, change="urgent")
        assert (raised["moved_up"], raised["moved_back"]) == ([2], [1])
        await place.update(state="RUNNING")
        assert (await landed(client, 1))["kind"] == "DONE"
        fix = await landed(client, 2)
        assert (fix["kind"], fix["code"]) == ("FIX", "required_status_failed")
        assert [check["name"] for check in fix["failures"]["checks"]] == ["test"]
        assert fix["who_must_act"] == "author"


async def test_a_token_that_only_reads_cannot_land(place, url):
    reader = await place.post("tokens/create", name="reader", role="read")
    async with (
        with_token(reader["token"]) as own,
        Client(streamable_http_client(url, http_client=own)) as client,
    ):
        refused = await client.call_tool("land_pull_request", {"number": 1})
        assert "`headgate token create --role queue`" in said(refused)
