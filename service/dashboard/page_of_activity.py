"""The audit log: who did or was denied what, with filters and as lines of JSON."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

import orjson

from service.accounts import page_addresses
from service.accounts.audit_log import AuditEntry, AuditFilter
from service.dashboard import filters
from service.database.paging import Page, PageSelection
from service.errors import FieldError, Malformed
from service.runtime import Runtime
from service.testhealth.operations import all_tests
from service.vocabulary import RepoRef

ON_PAGE = 50
EXPORTED_MAX = 10_000
"""Entries of one export, the newest; narrower times give the others."""
TEXT_MAX = 200
FILTERS = ("actor", "action", "subject", "since", "until")


SUBJECT_TEST = "test/"
"""An entry about a test has this as its subject, followed by the id of the test."""


ReadableOf = Callable[[Collection[RepoRef]], Awaitable[Collection[RepoRef]]]
"""Returns those of some repositories that a visitor may read."""


class LinkedTest(NamedTuple):
    """The test that an entry is about: its name, its repository, and the path of its page."""

    name: str
    slug: str
    path: str


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """Entries, newest first; `older` is the query of the next page, empty: there is none.

    `tests` has the tests that entries are about, by the number of the entry.
    """

    entries: tuple[AuditEntry, ...]
    given: Mapping[str, str]
    older: str
    export: str
    tests: Mapping[int, LinkedTest] = field(default_factory=dict)

    def lines(self) -> str:
        """Return the entries as lines of JSON."""
        return "".join(f"{orjson.dumps(_plain(each)).decode()}\n" for each in self.entries)


def wanted_of(query: Mapping[str, str]) -> AuditFilter:
    """Return which entries a query asks for. Raises Malformed, which names the wrong filter."""
    texts = {name: query.get(name, "").strip() for name in ("actor", "action", "subject")}
    for name, text in texts.items():
        if len(text) > TEXT_MAX or "\0" in text:
            raise _wrong(name, f"must have at most {TEXT_MAX} characters")
    until = _day(query, "until")
    return AuditFilter(
        since=_day(query, "since"),
        until=None if until is None else until + timedelta(days=1),
        **texts,
    )


def selection_of(query: Mapping[str, str]) -> PageSelection:
    """Return which page of the log a query asks for; an export is one page of many entries."""
    return PageSelection(EXPORTED_MAX if "export" in query else ON_PAGE, query.get("cursor"))


def _day(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise _wrong(name, "must be a day, as 2026-11-24") from None


def _wrong(name: str, message: str) -> Malformed:
    fault = FieldError(f"/{name}", "format", message)
    return Malformed(f"{name} {message}.", errors=(fault,))


def made_of(page: Page[AuditEntry], query: Mapping[str, str]) -> ActivityPage:
    """Return the page of these entries, with the addresses of older ones and of the export."""
    given = {name: query.get(name, "").strip() for name in FILTERS}
    kept = {name: text for name, text in given.items() if text}
    older = "" if page.next_cursor is None else urlencode({**kept, "cursor": page.next_cursor})
    return ActivityPage(page.rows, given, older, urlencode({**kept, "export": "jsonl"}))


async def with_tests(runtime: Runtime, page: ActivityPage, readable: ReadableOf) -> ActivityPage:
    """Return the page with the tests that its entries are about, if the visitor may read them."""
    about = {
        each.id: (each.org_id, each.subject.removeprefix(SUBJECT_TEST))
        for each in page.entries
        if each.subject.startswith(SUBJECT_TEST)
    }
    org_ids = {org_id for org_id, _ in about.values() if org_id is not None}
    places = await all_tests.places_of(runtime, org_ids, {test_id for _, test_id in about.values()})
    may_read = await readable({repo for repo, _ in places.values()})
    tests = {}
    for entry_id, key in about.items():
        if key in places and places[key][0] in may_read:
            repo, name = places[key]
            path = f"{page_addresses.home(runtime.options, repo)}/tests/{key[1]}"
            tests[entry_id] = LinkedTest(name, repo.slug, path)
    return replace(page, tests=tests)


def _plain(entry: AuditEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "at": filters.instant(entry.at),
        "actor": {"kind": entry.actor.kind.value, "login": entry.actor.login, "id": entry.actor.id},
        "channel": entry.actor.channel.value,
        "action": entry.action,
        "subject": entry.subject,
        "decision": entry.decision,
        "reason": entry.reason,
        "request_id": entry.request_id,
        "data": entry.data,
    }
