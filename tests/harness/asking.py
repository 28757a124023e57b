"""Whoever asks a world's service: over HTTP with a token, and by the command line."""

import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from service.accounts import tokens
from service.accounts.tokens import TokenRequest
from service.vocabulary import SYSTEM, Role
from tests.harness.processes import command
from tests.harness.world import REPO, World

HOST = "github.localhost"


class Asker:
    """Somebody with an admin token of the world's organization."""

    def __init__(self, world: World, secret: str) -> None:
        self.world = world
        self.secret = secret

    async def post(
        self, name: str, number: int | None = None, **more: Any
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer of an endpoint below /v1, about a pull request if one is named.

        `headers` and `sha` go where they belong, all else into the body; what is None is left out.
        """
        headers = more.pop("headers", {"x-api-token": self.secret})
        owner, repo = REPO.split("/")
        body = {"repo": {"host": HOST, "owner": owner, "name": repo}, "targetBranch": "main"}
        if number is not None:
            sha = more.pop("sha", None)
            body["pr"] = {"number": number} if sha is None else {"number": number, "sha": sha}
        sent = {key: value for key, value in {**body, **more}.items() if value is not None}
        url = f"{self.world.url}/v1/{name}"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=sent, headers=headers) as answer,
        ):
            return answer.status, await answer.json(content_type=None)

    async def done(self, name: str, number: int | None = None, **more: Any) -> dict[str, Any]:
        """The answer, which must be a success."""
        status, answer = await self.post(name, number, **more)
        assert status == 200, answer
        return answer

    async def headgate(self, *arguments: str) -> str:
        """What a command prints in a checkout of the repository; it must end well."""
        return await self._run(arguments, {"GITHUB_REPOSITORY": REPO})

    async def paste(self, text: str) -> str:
        """What the command that a text quotes prints in a shell elsewhere; it must end well."""
        quoted = re.search(r"`headgate ([^`]+)`", text)
        assert quoted, text
        return await self._run(shlex.split(quoted[1]), {})

    async def _run(self, arguments: Sequence[str], place: Mapping[str, str]) -> str:
        hidden = ("HEADGATE_", "GITHUB_REPOSITORY")
        plain = {key: text for key, text in os.environ.items() if not key.startswith(hidden)}
        own = {"HEADGATE_URL": self.world.url, "HEADGATE_TOKEN": self.secret}
        environment = {**plain, **own, **place, "HEADGATE_GITHUB_HOST": HOST}
        with tempfile.TemporaryDirectory() as folder:
            code, out, err = await command(Path(folder), environment, arguments)
        assert code == 0, err
        return out


async def asker(world: World, role: Role = Role.ADMIN) -> Asker:
    """Somebody of the organization, by default an admin."""
    await world.settle()
    wish = TokenRequest(HOST, REPO.split("/")[0], "story", role)
    return Asker(world, (await tokens.create_token(world.runtime, wish, SYSTEM)).secret)
