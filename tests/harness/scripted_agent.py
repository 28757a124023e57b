"""An agent that knows nothing of a queue but the next step about its pull request, and obeys it.

It has a token, git, and what a model would write: the repaired content of each of its files.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.sandbox.command import isolated_environment
from tests.harness.asking import Asker
from tests.harness.world import REPO, World

Step = dict[str, Any]
OVER = frozenset({"DONE", "DROP", "SUPERSEDED"})
STEPS_MAX = 600
WHO = "bob"


@dataclass
class ScriptedAgent:
    """Works in a clone of its own; `repairs` are contents by path, `asks` reaches people.

    `steps` are the steps that it was told, one after the other.
    """

    ask: Asker
    folder: Path
    repairs: Mapping[str, str] = field(default_factory=dict)
    asks: Callable[[Step], Awaitable[object]] | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def world(self) -> World:
        """The world in which it works."""
        return self.ask.world

    @property
    def kinds(self) -> list[str]:
        """The kinds of the steps that it was told, each once in a row."""
        kinds = [step["kind"] for step in self.steps]
        return [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]

    async def work_on(self, number: int) -> Step:
        """Obey until nothing is left to do; the last step."""
        step = await self.ask.done("getNextStep", number)
        for _ in range(STEPS_MAX):
            self.steps.append(step)
            if step["kind"] in OVER:
                return step
            await self._obey(step)
            step = await self._call(step)
        raise AssertionError(f"no end: {self.kinds}")

    async def _obey(self, step: Step) -> None:
        match step["kind"]:
            case "FIX":
                await self._repair(step["prNumber"])
            case "REBASE":
                await self._rebase(step["prNumber"], step["commit"], step["paths"])
            case "RESUBMIT" if step["at"] is not None:
                left = datetime.fromisoformat(step["at"]) - self.world.clock.now()
                await self.world.rest(max(left.total_seconds(), 0.0))
            case "ASK":
                assert self.asks is not None, step
                await self.asks(step)

    async def _call(self, step: Step) -> Step:
        """Make the call that a step names; the next step, which also a refusal has."""
        call = step["call"]
        name = call["path"].removeprefix("/v1/")
        body = {key: value for key, value in call["body"].items() if key not in ("repo", "pr")}
        number = call["body"]["pr"]["number"]
        status, answer = await self.ask.post(name, number, **body)
        if name == "getNextStep":
            assert status == 200, answer
            return dict(answer)
        if status != 200:
            return dict(answer["next_step"])
        return await self.ask.done("getNextStep", step["prNumber"])

    async def _repair(self, number: int) -> None:
        """Write the repaired files and push, by git."""
        await self._check_out(number)
        for path, content in self.repairs.items():
            (self.folder / path).write_text(content)
        await self._git("add", "--all")
        await self._git("commit", "--quiet", "--message", "Repair it")
        await self._push(number)

    async def _rebase(self, number: int, onto: str, paths: list[str]) -> None:
        """Rebase onto the commit; in conflict the repaired content is taken."""
        await self._check_out(number)
        stopped = await self._git("rebase", "--quiet", onto, may_fail=True)
        if stopped:
            found = (await self._out("diff", "--name-only", "--diff-filter=U")).split()
            assert not paths or set(found) == set(paths)
            for path in found:
                (self.folder / path).write_text(self.repairs[path])
            await self._git("add", "--all")
            await self._git("-c", "core.editor=true", "rebase", "--continue")
        await self._push(number)

    async def _check_out(self, number: int) -> None:
        if not (self.folder / ".git").exists():
            url = f"{self.world.sandbox.url}/{REPO}.git"
            await self._git("clone", "--quiet", url, str(self.folder), cwd=self.folder.parent)
        head = self._branch_of(number)
        await self._git("fetch", "--quiet", "origin")
        await self._git("checkout", "--quiet", "-B", head, f"origin/{head}")

    async def _push(self, number: int) -> None:
        await self._git("push", "--quiet", "--force", "origin", f"HEAD:{self._branch_of(number)}")

    def _branch_of(self, number: int) -> str:
        pull = self.world.repository.issues[number].pull
        assert pull is not None
        return str(pull.head_ref)

    async def _out(self, *arguments: str) -> str:
        child = await self._start(arguments, self.folder)
        said, _ = await child.communicate()
        return said.decode()

    async def _git(self, *arguments: str, cwd: Path | None = None, may_fail: bool = False) -> int:
        child = await self._start(arguments, cwd or self.folder)
        said, _ = await child.communicate()
        assert may_fail or child.returncode == 0, said.decode()
        return child.returncode or 0

    async def _start(self, arguments: tuple[str, ...], cwd: Path) -> asyncio.subprocess.Process:
        sandbox = self.world.sandbox
        environment = {
            **isolated_environment(),
            **{f"GIT_{who}_NAME": WHO for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": f"{WHO}@localhost" for who in ("AUTHOR", "COMMITTER")},
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{sandbox.url}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Bearer {sandbox.credentials.person_token(WHO)}",
        }
        return await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
