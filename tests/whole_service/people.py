"""What people do in a history, drawn from the seed, and what they were answered."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bot.sandbox.refusal import Refusal
from tests.whole_service.loop import rest
from tests.whole_service.world import History

WISHES: dict[str, tuple[Any, ...]] = {
    "concurrency": (1, 2, 5),
    "mode": ("SINGLE", "PARALLEL"),
    "batch": (True, False),
    "testingTimeoutMinutes": (20, 60),
}

DEFAULTS: dict[str, Any] = {"batch": False, "testingTimeoutMinutes": 300}
"""What a queue has whose plan does not set it; each plan sets the others."""


@dataclass
class Acknowledged:
    """What was answered with success: submissions, and the possible values of each setting."""

    submitted: list[int] = field(default_factory=list)
    settings: dict[str, set[Any]] = field(default_factory=dict)
    excused: set[int] = field(default_factory=set)
    """Pull requests of which commands may stay without an answer."""


class People:
    """Everybody outside of the service."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.chance = random.Random(f"{history.plan.seed}/people")
        self.numbers: list[int] = []
        self.answered = Acknowledged()
        self._made = 0

    async def live(self) -> None:
        """Do things for as long as faults happen."""
        plan = self.history.plan
        for _ in range(plan.people):
            await self.open()
        await rest(5)
        for number in self.numbers:
            await self.submit(number)
        while True:
            await rest(self.chance.expovariate(1 / plan.pause_s))
            if self.history.loop.time() > plan.storm_s:
                return
            (name,) = self.chance.choices(list(plan.acts), list(plan.acts.values()))
            await self.do(name)

    async def do(self, name: str) -> None:
        """Do one thing."""
        number = self.chance.choice(self.numbers)
        try:
            await self._done_by(name, number)
        except Refusal as refused:
            self.history.say(f"refused: {refused.message}")

    def _done_by(self, name: str, number: int) -> Awaitable[object]:
        """Return the doing of a thing, about a pull request where it concerns one."""
        doings: dict[str, Callable[[], Awaitable[object]]] = {
            "open": self._open_and_submit,
            "submit": partial(self.submit, number),
            "cancel": partial(self.either, "cancelPullRequest", "/merge cancel", number),
            "retry": partial(self.either, "restartTestsOnPullRequest", "/merge retry", number),
            "push": partial(self._push, number),
            "push_main": self._push_main,
            "merge_by_hand": partial(self._merge, number),
            "close": partial(self._close, number),
            "settings": self.settings,
            "delete_queue": self.delete_queue,
            "stop": self.stop,
        }
        if name in doings:
            return doings[name]()
        return self.comment(f"/merge {name}", number, by="alice")

    async def _open_and_submit(self) -> None:
        await self.submit(await self.open())

    async def _push(self, number: int) -> None:
        await self.act("push", number=number, files={f"push-{self._new()}.txt": "x\n"})

    async def _push_main(self) -> None:
        files = {f"main-{self._new()}.txt": "x\n"}
        await self.act("push", branch="main", files=files, bypass=True)

    async def _merge(self, number: int) -> None:
        await self.act("merge", number=number, method=self.history.plan.method)

    async def _close(self, number: int) -> None:
        await self.act("close", number=number)
        if self.chance.random() < 0.5:
            await rest(self.chance.uniform(0, 30))
            await self.act("reopen", number=number)

    def _new(self) -> int:
        self._made += 1
        return self._made

    async def open(self) -> int:
        """Open a pull request: good, broken, or at odds with another."""
        kind = self.chance.choices(("good", "broken", "a", "b", "readme"), (8, 1, 1, 1, 1))[0]
        files = {
            "good": {f"file-{self._new()}.txt": "x\n"},
            "broken": {"broken.txt": "x\n"},
            "a": {"a.txt": "x\n"},
            "b": {"b.txt": "x\n"},
            "readme": {"README.md": f"# Number {self._new()}\n"},
        }[kind]
        more = {} if self.chance.random() < 0.3 else {"from": self.history.older}
        made = await self.history.act("open", "bob", files=files, **more)
        number: int = made["number"]
        self.numbers.append(number)
        self.history.say(f"bob opens #{number} ({kind})")
        return number

    async def act(self, name: str, **fields: Any) -> None:
        """Something that alice does at GitHub."""
        self.history.say(f"alice: {name} {fields.get('number', fields.get('branch', ''))}")
        await self.history.act(name, "alice", **fields)

    async def comment(self, body: str, number: int, by: str = "bob") -> None:
        """Comment on a pull request."""
        self.history.say(f"{by} writes {body} on #{number}")
        await self.history.act("comment", by, number=number, body=body)

    async def either(self, endpoint: str, command: str, number: int) -> int:
        """Ask through the API or by a comment; the status, 0 for a comment."""
        if self.chance.random() < 0.5:
            await self.comment(command, number)
            return 0
        return await self.ask(endpoint, number)

    async def ask(self, endpoint: str, number: int | None = None, **more: Any) -> int:
        """Ask through the API; the status."""
        words = f" #{number}" if number else "" + "".join(f" {k}={v}" for k, v in more.items())
        self.history.say(f"api: {endpoint}{words}")
        status, answer = await self.history.ask(endpoint, number, **more)
        code = answer.get("code", "") if isinstance(answer, dict) and status >= 400 else ""
        self.history.say(f"api: {endpoint}{words} answers {status} {code}")
        return status

    async def submit(self, number: int) -> None:
        """Submit a pull request."""
        if await self.either("submitPullRequest", "/merge", number) in (200, 201, 202):
            self.answered.submitted.append(number)

    async def settings(self) -> None:
        """Change a setting, and remember what it may be now."""
        name = self.chance.choice(list(WISHES))
        value = self.chance.choice(WISHES[name])
        known = self.answered.settings
        status = await self.ask("updateQueue", **{name: value})
        if status == 200:
            known[name] = {value}
        elif status == 0 or status >= 500:
            before = {**DEFAULTS, **self.history.plan.settings}[name]
            known.setdefault(name, {before}).add(value)

    async def delete_queue(self) -> None:
        """Delete the queue, which only works without entries, and make it again."""
        if await self.ask("deleteQueue") not in (200, 0, 500, 502, 503):
            return
        self.answered = Acknowledged()
        for _ in range(20):
            status = await self.ask("createQueue", **self.history.plan.settings)
            if 200 <= status < 500:
                return
            await rest(10)

    async def stop(self) -> None:
        """Stop the service in good order, and start it again."""
        living = [one for one in self.history.processes if not one.ended.done()]
        if living:
            self.history.say(f"{living[0].name} is stopped")
            living[0].stop()
            await asyncio.wait({living[0].ended}, timeout=60)
            await self.history.up()
