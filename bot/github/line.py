"""Calls about one repository at one priority: what the verbs of the adapter are made of."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from bot.github.client import Call, Client, Query
from bot.github.fields import Fields, Unreadable
from bot.github.pacing import Priority
from bot.github.wire import Answer
from service.clock import Clock
from service.provider.errors import GoneKind
from service.vocabulary import RepoRef

PAGES_MAX = 50  # GITHUB.md 4.2


@dataclass(frozen=True, slots=True)
class Line:
    """Calls about one repository at one priority."""

    client: Client
    repo: RepoRef
    priority: Priority

    @property
    def clock(self) -> Clock:
        """The clock all waiting goes through."""
        return self.client.clock

    async def get(
        self,
        tail: str,
        query: Query | None = None,
        *,
        expects: tuple[int, ...] = (),
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> Answer:
        """Read something below the repository."""
        call = self._call("GET", tail, query or {}, expects)
        return await self.client.run(replace(call, missing=missing, is_read=True, is_kept=is_kept))

    async def pages(
        self,
        tail: str,
        member: str | None = None,
        query: Query | None = None,
        *,
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> AsyncIterator[Answer]:
        """Every page of a list, at most 50; the last may still name a next one."""
        answer = await self.get(
            tail, {"per_page": 100, **(query or {})}, missing=missing, is_kept=is_kept
        )
        yield _page(answer, member)
        for _ in range(PAGES_MAX - 1):
            if answer.next_page is None:
                return
            answer = await self.get(self._checked(answer.next_page), is_kept=is_kept)
            yield _page(answer, member)

    async def listed(
        self,
        tail: str,
        member: str | None = None,
        query: Query | None = None,
        *,
        missing: GoneKind = GoneKind.BRANCH,
        is_kept: bool = False,
    ) -> tuple[tuple[Fields, ...], bool]:
        """All members of a list, and whether that is really all."""
        found: list[Fields] = []
        complete = True
        async for page in self.pages(tail, member, query, missing=missing, is_kept=is_kept):
            found += [Fields(each) for each in page.listed]
            complete = page.next_page is None
        return tuple(found), complete

    async def send(
        self,
        method: str,
        tail: str,
        body: Mapping[str, object] | None = None,
        *,
        expects: tuple[int, ...] = (),
        missing: GoneKind = GoneKind.BRANCH,
    ) -> Answer:
        """Write something once. Raises OutcomeUnknown when the answer was lost."""
        return await self.client.run(
            replace(self._call(method, tail, {}, expects), body=body, missing=missing)
        )

    async def create(
        self,
        method: str,
        tail: str,
        body: Mapping[str, object],
        *,
        expects: tuple[int, ...] = (),
        missing: GoneKind = GoneKind.PULL_REQUEST,
    ) -> Answer:
        """Like `send`, for content that people see and GitHub counts apart."""
        call = self._call(method, tail, {}, expects)
        return await self.client.run(replace(call, body=body, missing=missing, is_content=True))

    async def graphql(
        self, document: str, variables: Mapping[str, object], *, is_mutation: bool = False
    ) -> Answer:
        """Run a document; errors inside a 200 stand in the answer for the caller to read."""
        call = self._call("POST", "", {}, ())
        body = {"query": document, "variables": variables}
        return await self.client.run(
            replace(call, body=body, is_graphql=True, is_read=not is_mutation)
        )

    def at(self, priority: Priority) -> "Line":
        """The same repository at another priority."""
        return replace(self, priority=priority)

    def _call(self, method: str, tail: str, query: Query, expects: tuple[int, ...]) -> Call:
        return Call(
            repo=self.repo,
            priority=self.priority,
            method=method,
            tail=tail,
            query=query,
            body=None,
            expects=frozenset(expects),
            missing=GoneKind.BRANCH,
            is_read=False,
        )

    def _checked(self, url: str) -> str:
        """A next page; our token goes nowhere else."""
        if not url.startswith(self.client.options.addresses.api + "/"):
            raise Unreadable("next page: at another host")
        return url


def _page(answer: Answer, member: str | None) -> Answer:
    if member is None:
        return answer
    return replace(answer, content=answer.fields.members(member))
