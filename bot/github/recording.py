"""A recording of what GitHub answered and sent, without what names people or repositories.

A file of JSON lines. The first has `recording` (the version of the format), `host`, and `app`,
our own App's id and slug; each further one is a call with its answer (`method`, `url`, `request`,
`status`, `headers`, `answer`) or a delivery (`event`, `payload`). `case` and `order` give their
order. Every id, name, text and commit is a placeholder (`anonymizing.py`).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from bot.github import anonymizing
from bot.github.anonymizing import Anonymizer
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer, Exchange
from service.provider.errors import ProviderError

FORMAT = 1
CASE = "live"
PUBLIC = "github.com"
DELIVERIES_MAX = 100
"""Deliveries read one by one for a recording; the live checks cause some thirty."""

OPERATION = re.compile(r"(query|mutation)\b\s*\w*")

SLACK = timedelta(seconds=60)
"""GitHub's clock may be so much behind ours; it refuses an App whose clock differs more."""

Line = Mapping[str, object]


@dataclass(slots=True)
class Recorder:
    """Every exchange of one client, and what GitHub delivered meanwhile, as it was.

    `trouble`: why the deliveries could not be read.
    """

    client: RepositoryClient
    calls: list[tuple[datetime, Line]] = field(default_factory=list)
    deliveries: list[tuple[datetime, Line]] = field(default_factory=list)
    trouble: str = ""

    def keep(self, exchange: Exchange, answer: Answer) -> None:
        """Keep one call with its answer."""
        call = {
            "method": exchange.method,
            "url": exchange.url,
            "request": exchange.body,
            "status": answer.status,
            "headers": answer.headers,
            "answer": answer.content,
        }
        self.calls.append((self.client.clock.now(), call))

    async def collect(self, since: datetime) -> None:
        """Read from the App's own log what GitHub has delivered about the repository since then."""
        github, path = self.client.github, "/app/hook/deliveries"
        repository = (await self.client.get("")).fields.id("id")
        listed = (await github.app_call("GET", f"{path}?per_page={DELIVERIES_MAX}")).objects
        for each in listed:
            is_ours = each.id_or_none("repository_id") == repository
            if is_ours and each.moment("delivered_at") >= since:
                whole = (await github.app_call("GET", f"{path}/{each.id('id')}")).fields
                self.deliveries.append((each.moment("delivered_at"), _delivery_of(whole)))

    def summary(self) -> str:
        """Return how much was recorded, in words."""
        lost = f" (not read: {self.trouble})" if self.trouble else ""
        return f"{len(self.calls)} calls and {len(self.deliveries)} deliveries{lost}"

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        options, slug = self.client.github.options, self.client.github.tokens.slug
        ordered = sorted([*self.calls, *self.deliveries], key=lambda each: each[0])
        entries = [
            {"case": CASE, "order": order, **line} for order, (_, line) in enumerate(ordered)
        ]
        host = PUBLIC if options.host == PUBLIC else "a server of its own"
        yield from anonymized(entries, host, (options.app_id, slug or ""))


@asynccontextmanager
async def recorded(client: RepositoryClient, path: Path) -> AsyncIterator[Recorder]:
    """Write what happens meanwhile to a file, also after a failure."""
    recorder, since = Recorder(client), client.clock.now() - SLACK
    client.github.observe(recorder.keep)
    try:
        yield recorder
    finally:
        client.github.observe(None)
        try:
            await client.github.slug()
            await recorder.collect(since)
        except ProviderError as failed:
            recorder.trouble = failed.message
        await asyncio.to_thread(path.write_text, "".join(recorder.lines()), "utf-8")


def _delivery_of(whole: Fields) -> Line:
    request = whole.inner("request")
    return {"event": whole.text("event"), "payload": request.inner("payload").as_object()}


def anonymized(entries: Iterable[Line], host: str, app: tuple[str, str]) -> Iterator[str]:
    """Yield the lines of a recording of these calls and deliveries."""
    anonymizer = Anonymizer()
    own = {"id": anonymizer.id(app[0]), "slug": anonymizer.word(app[1])}
    yield _json({"recording": FORMAT, "host": host, "app": own})
    for entry in entries:
        yield _json(_anonymous(entry, anonymizer))


def _anonymous(entry: Line, anonymizer: Anonymizer) -> Line:
    place = {name: entry[name] for name in ("case", "order")}
    if "event" in entry:
        return {**place, "event": entry["event"], "payload": anonymizer.message(entry["payload"])}
    status, given = entry["status"], entry.get("headers")
    answer, is_refused = entry["answer"], not isinstance(status, int) or status >= 400
    is_refused = is_refused or (isinstance(answer, dict) and "errors" in answer)
    hide = anonymizer.refusal if is_refused else anonymizer.message
    return {
        **place,
        "method": entry["method"],
        "url": anonymizer.path(str(entry["url"])),
        "request": _request(entry["request"], anonymizer),
        "status": status,
        **({"headers": anonymizing.headers(given)} if isinstance(given, Mapping) else {}),
        "answer": hide(answer),
    }


def _request(request: object, anonymizer: Anonymizer) -> object:
    """Return the body of a request; of a GraphQL document only its name."""
    if not isinstance(request, dict) or not isinstance(request.get("query"), str):
        return anonymizer.message(request)
    named = OPERATION.search(request["query"])
    variables = anonymizer.message(request.get("variables"))
    return {"query": named.group() if named else "query", "variables": variables}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True) + "\n"
