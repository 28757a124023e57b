"""The control plane `/_sandbox/…`: seeds, acts of people, time, faults, deliveries.

For tests, the demo and people at the keyboard; a malformed request is 400 `{"error"}`. Nothing
here imitates the provider.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from aiohttp import web

from bot.sandbox.acts import actions_by_people, seeds
from bot.sandbox.records import Json
from bot.sandbox.refusal import Refusal
from bot.sandbox.timeline import RunningClock, stamp
from bot.sandbox.world import World

PREFIX = "/_sandbox"


class Control:
    """The handlers of the control plane of one world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def routes(self) -> list[web.RouteDef]:
        """Every route below PREFIX."""
        return [
            web.post(f"{PREFIX}/seed", self._answer(self.seed)),
            web.post(f"{PREFIX}/acts", self._answer(self.act)),
            web.post(f"{PREFIX}/rules", self._answer(self.rules)),
            web.post(f"{PREFIX}/clock", self._answer(self.clock)),
            web.post(f"{PREFIX}/settle", self._answer(self.settle)),
            web.post(f"{PREFIX}/webhook", self._answer(self.webhook)),
            web.post(f"{PREFIX}/faults", self._answer(self.add_fault)),
            web.get(f"{PREFIX}/faults", self._answer(self.list_faults)),
            web.delete(f"{PREFIX}/faults", self._answer(self.clear_faults)),
            web.get(f"{PREFIX}/deliveries", self._answer(self.deliveries)),
        ]

    def _answer(
        self, act: Callable[[Json], Awaitable[Json]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                raw = await request.read()
                value = json.loads(raw) if raw.strip() else {}
                if not isinstance(value, dict):
                    raise Refusal(400, "the body is not a JSON object")
                return web.json_response(await act(value))
            except Refusal as refused:
                return web.json_response({"error": refused.message}, status=refused.status)
            except (ValueError, TypeError, KeyError, AttributeError) as wrong:
                return web.json_response({"error": f"malformed: {wrong!r}"}, status=400)

        return answer

    async def seed(self, value: Json) -> Json:
        """People, repositories, files, rules: acts/seeds.py."""
        return await seeds.seed(self.world, value)

    async def act(self, value: Json) -> Json:
        """Something a person does: acts/actions_by_people.py."""
        return await actions_by_people.act(self.world, value)

    async def rules(self, value: Json) -> Json:
        """Settings and rules of `repo`, as in a seed."""
        repository = self.world.repository(value["repo"])
        if repository is None:
            raise Refusal(400, f"no repository is called {value['repo']!r}")
        seeds.set_rules(repository, value)
        return {}

    async def knobs(self, value: Json) -> Json:
        """Delays of the imitation, by name."""
        seeds.set_knobs(self.world, value)
        return asdict(self.world.knobs)

    async def clock(self, value: Json) -> Json:
        """Move the world's time by `advance_s`, or change its `speed`."""
        timeline = self.world.timeline
        if "speed" in value:
            if not isinstance(timeline.clock, RunningClock):
                raise Refusal(400, "this clock has no speed: it stands still until moved")
            timeline.clock.change_speed(float(value["speed"]))
            timeline.advance(0.0)
        if "advance_s" in value:
            timeline.advance(float(value["advance_s"]))
        return {"now": stamp(timeline.now()), "waiting": timeline.waiting()[:100]}

    async def webhook(self, value: Json) -> Json:
        """Send deliveries to `url` from now on, as an owner does in the App's settings."""
        self.world.webhook_url = str(value["url"])
        return {"url": self.world.webhook_url}

    async def settle(self, value: Json) -> Json:
        """Move time on until no delivery, CI job or other delay is left."""
        done = await self.world.timeline.settle()
        return {"done": done, "now": stamp(self.world.timeline.now()), **value}

    async def add_fault(self, value: Json) -> Json:
        """One more fault."""
        made = self.world.faults.add(self.world.new_id(), value)
        return {"id": made.id}

    async def list_faults(self, _: Json) -> Json:
        """The faults, with how often each matched and struck."""
        return {"faults": [asdict(one) for one in self.world.faults.listed]}

    async def clear_faults(self, value: Json) -> Json:
        """Remove the fault `id`, or all."""
        self.world.faults.clear(value.get("id"))
        return {}

    async def deliveries(self, _: Json) -> Json:
        """Every attempt to deliver a webhook so far, oldest first."""
        names = ("id", "guid", "event", "action", "redelivery", "status", "payload")
        listed = [
            {
                **{name: getattr(one, name) for name in names},
                "at": stamp(one.at),
                "status_code": one.answer_code,
            }
            for one in self.world.attempts
        ]
        return {"deliveries": listed}
