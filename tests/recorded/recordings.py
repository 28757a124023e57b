"""Recordings as values: what GitHub sent (deliveries) and answered (calls), case by case."""

import json
import lzma
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).parent

REPOSITORY = re.compile(r"/(repos/[^/]+/[^/]+|repositories/\d+)")
VARIABLES = (
    (
        re.compile(
            r"/(branches|git/refs/heads|git/ref/heads|git/matching-refs)/.+?(?=/protection|$)"
        ),
        r"/\1/BRANCH",
    ),
    (re.compile(r"/compare/.+"), "/compare/NAME"),
    (re.compile(r"/(collaborators|labels|contents)/[^/]+"), r"/\1/NAME"),
    (re.compile(r"/[0-9a-f]{40}"), "/SHA"),
    (re.compile(r"/\d+(?=/|$)"), "/N"),
)


@dataclass(frozen=True)
class Call:
    """One call with GitHub's answer; `path` is below the repository."""

    case: str
    order: int
    method: str
    path: str
    query: str
    request: Any
    status: int | None
    answer: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The call without what differs from case to case: `PUT /pulls/N/merge 200`."""
        pattern = self.path
        for variable, name in VARIABLES:
            pattern = variable.sub(name, pattern)
        return f"{self.method} {pattern} {self.status}"


@dataclass(frozen=True)
class Sent:
    """One delivery."""

    case: str
    order: int
    event: str
    payload: Any

    @property
    def kind(self) -> str:
        """Event and action: `check_run.created`."""
        action = self.payload.get("action")
        return f"{self.event}.{action}" if action else self.event


@dataclass(frozen=True)
class Recording:
    """Everything of one file, in its order; `app_id` and `slug` are those of the App it was for."""

    app_id: str
    slug: str
    entries: tuple[Call | Sent, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls alone."""
        return tuple(one for one in self.entries if isinstance(one, Call))

    @property
    def deliveries(self) -> tuple[Sent, ...]:
        """The deliveries alone."""
        return tuple(one for one in self.entries if isinstance(one, Sent))

    def cases(self) -> dict[str, tuple[Call | Sent, ...]]:
        """The same, case by case."""
        found: dict[str, list[Call | Sent]] = defaultdict(list)
        for one in self.entries:
            found[one.case].append(one)
        return {case: tuple(ones) for case, ones in found.items()}


@cache
def of_2022() -> Recording:
    """What another merge queue recorded on github.com: README.md."""
    return read(FOLDER / "github-2022.jsonl.xz")


@cache
def of_a_client() -> Recording:
    """What a client library recorded on github.com: README.md."""
    return read(FOLDER / "github-client.jsonl.xz")


def read(path: Path) -> Recording:
    """Read a recording; `.xz` is unpacked."""
    raw = path.read_bytes()
    text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode()
    return parse(text.splitlines())


def parse(lines: Iterable[str]) -> Recording:
    """Read the lines of a recording."""
    head, *entries = map(json.loads, lines)
    assert head["recording"] == 1, head
    own = head["app"]
    return Recording(str(own["id"]), own["slug"], tuple(map(_entry, entries)))


def _entry(line: dict[str, Any]) -> Call | Sent:
    place = line["case"], line["order"]
    if "event" in line:
        return Sent(*place, line["event"], line["payload"])
    address = urlsplit(line["url"])
    path = REPOSITORY.sub("", address.path, count=1)
    rest = line["request"], line["status"], line["answer"], line.get("headers", {})
    return Call(*place, line["method"], path, address.query, *rest)
