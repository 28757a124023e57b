"""Recorded deliveries sent to a real service, as if they were about its own repository.

Repository, pull requests, commits and branches become those of a world; the rest stays as GitHub
sent it. Two orders beside the real one: any order in which a cause comes before what it caused,
and everything twice.
"""

import hmac
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from tests.harness.world import REPO, World
from tests.recorded.recordings import Call, Recording, Sent

SHA = re.compile(r"(?!0{40})[0-9a-f]{40}")
TARGET = re.compile(r"(refs/heads/)?\S*/(main|master)")
UNKNOWN = 900_000
"""Added to numbers of pull requests that the world does not have."""


def in_any_order(sent: Sequence[Sent], seed: int) -> list[Sent]:
    """The same deliveries in a random order in which causes come first.

    A push comes before what is about its commit, `opened` before what is about its pull request.
    """
    chance = random.Random(seed)
    waiting = {place: _causes(sent, place) for place in range(len(sent))}
    found: list[Sent] = []
    while waiting:
        ready = sorted(place for place, causes in waiting.items() if not causes & waiting.keys())
        place = chance.choice(ready)
        del waiting[place]
        found.append(sent[place])
    return found


def _causes(sent: Sequence[Sent], place: int) -> set[int]:
    this = sent[place]
    shas, number = _shas_of(this), _number_of(this)
    return {
        other
        for other, one in enumerate(sent[:place])
        if one.case == this.case
        and (
            (one.kind == "push" and one.payload["after"] in shas)
            or (one.kind == "pull_request.opened" and number == _number_of(one) is not None)
        )
    }


def _shas_of(sent: Sent) -> set[str]:
    payload = sent.payload
    inner = payload.get(sent.event)
    head = payload.get("pull_request", {}).get("head", {})
    inner = inner if isinstance(inner, dict) else {}
    return {payload.get("sha"), inner.get("head_sha"), head.get("sha")} - {None}


def _number_of(sent: Sent) -> int | None:
    about = sent.payload.get("pull_request") or sent.payload.get("issue") or {}
    number: int | None = about.get("number")
    return number


def doubled(sent: Iterable[Sent]) -> Iterator[Sent]:
    """Each delivery, and at once again."""
    for one in sent:
        yield from (one, one)


@dataclass
class Stage:
    """What the names of a recording mean in a world; `is_own`: its App is the world's App."""

    world: World
    recording: Recording
    numbers: list[int]
    is_own: bool
    _numbers: dict[int, int] = field(default_factory=dict)
    _shas: dict[str, str] = field(default_factory=dict)

    def staged(self, sent: Sent) -> Sent:
        """The delivery as if it were about the world's repository."""
        return replace(sent, payload=self._value(sent.payload, ""))

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            if "head" in value and isinstance(value.get("number"), int):
                self._meet(value)
            made = {key: self._value(each, key) for key, each in value.items()}
            if "full_name" in value:
                made |= {"id": self.world.repository.id, "full_name": REPO}
            if self.is_own and str(value.get("id")) == self.recording.app_id:
                made |= {"id": self.world.sandbox.app_id}
            return made
        if isinstance(value, list):
            return [self._value(each, name) for each in value]
        if isinstance(value, str):
            return self._text(value, name)
        is_number = name == "number" and isinstance(value, int)
        return self._numbers.get(value, UNKNOWN + value) if is_number else value

    def _meet(self, pull: dict[str, Any]) -> None:
        """Let a recorded pull request be one of the world's, while there are enough."""
        number, sha = pull["number"], pull["head"]["sha"]
        if number not in self._numbers and len(self._numbers) < len(self.numbers):
            self._numbers[number] = self.numbers[len(self._numbers)]
        if number in self._numbers:
            issue = self.world.repository.issues[self._numbers[number]]
            assert issue.pull is not None
            self._shas[sha] = issue.pull.head_sha

    def _text(self, value: str, name: str) -> str:
        if SHA.fullmatch(value):
            return self._shas.setdefault(value, self._some_head(value))
        if name in ("ref", "head_branch", "default_branch", "from") and TARGET.fullmatch(value):
            return "refs/heads/main" if value.startswith("refs/heads/") else "main"
        slug = self.recording.slug
        if self.is_own and value in (slug, f"{slug}[bot]"):
            return value.replace(slug, self.world.sandbox.app.slug)
        return value

    def _some_head(self, sha: str) -> str:
        """One of the world's present heads, test branches included."""
        heads = sorted(set(self.world.repository.git.refs.values()))
        return heads[int(sha, 16) % len(heads)]


async def deliver(stage: Stage, sent: Iterable[Sent], chance: random.Random) -> list[int]:
    """Send deliveries with pauses; the statuses of the answers. The same one has the same id."""
    world, statuses = stage.world, []
    async with aiohttp.ClientSession() as http:
        for one in sent:
            statuses.append(await _post(http, world, f"{one.case}-{id(one)}", stage.staged(one)))
            await world.rest(chance.choice((0.0, 0.0, 0.2, 1.0)))
    return statuses


async def _post(http: aiohttp.ClientSession, world: World, key: str, sent: Sent) -> int:
    body = json.dumps(sent.payload).encode()
    signature = hmac.new(world.sandbox.webhook_secret.encode(), body, "sha256").hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": sent.event,
        "X-GitHub-Delivery": key,
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    address = f"{world.url}/webhooks/github"
    async with http.post(address, data=body, headers=headers) as answer:
        return answer.status


def deliveries_of(case: Iterable[Call | Sent]) -> list[Sent]:
    """The deliveries of a case."""
    return [one for one in case if isinstance(one, Sent)]
