"""Every command by every right on the repository: done, or refused with words that say why.

A new command without a row fails here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from sqlalchemy import select

from service.accounts.store import access
from service.database.database import Tx
from service.database.tables_deliveries import OutboxRow
from service.mergequeue.operations import comments, turn
from service.provenance import ProviderTime
from service.provider.signals import (
    Ask,
    AskCancel,
    AskDrain,
    Asked,
    AskForeign,
    AskHelp,
    AskPause,
    AskResume,
    AskRetry,
    AskSource,
    AskStatus,
    AskSubmit,
    AskUnclear,
    Unclear,
    Where,
)
from service.provider.values import AccessLevel, ChangedFiles, PullRequest
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, QueueRef, RepoId, RepoRef
from tests.harness.values import ValuesProvider, sha_of

NONE, READ, TRIAGE, WRITE, MAINTAIN, ADMIN = AccessLevel
NEEDS: list[tuple[Ask, AccessLevel]] = [
    (AskHelp(), READ),
    (AskStatus(), READ),
    (AskUnclear(Unclear.UNKNOWN_WORD, "now"), READ),
    (AskCancel(), TRIAGE),
    (AskSubmit(), WRITE),
    (AskSubmit(priority=10), WRITE),
    (AskRetry(), WRITE),
    (AskSubmit(priority=9), MAINTAIN),
    (AskPause("why"), MAINTAIN),
    (AskResume(), MAINTAIN),
    (AskDrain("why"), MAINTAIN),
]
"""Command → the least right that it takes; the author of a pull request may always cancel it."""

PERSON = Actor(ActorKind.PERSON, "zoe", "77")


def test_every_command_has_a_row():
    # One of another queue is answered, or taken for one of these.
    assert {type(ask) for ask, _ in NEEDS} == set(get_args(Ask)) - {AskForeign}


class Rights(ValuesProvider):
    """A provider at which the person has one right, and pull request 9 comes from a fork."""

    def __init__(self) -> None:
        super().__init__()
        self.level = NONE
        self.author: tuple[str, str | None] = ("alice", "1")
        self.paths: tuple[str, ...] = ("app.py",)

    async def access(self, repo: RepoRef, actor: Actor) -> AccessLevel:
        return self.level

    async def pull_request(
        self, repo: RepoRef, number: int, *, awaits_mergeability: bool = True
    ) -> PullRequest:
        found = await super().pull_request(repo, number)
        login, account = self.author
        return replace(found, is_fork=number == 9, author=login, author_id=account)

    async def changed_files(self, repo: RepoRef, number: int) -> ChangedFiles:
        head = sha_of("head", number)
        return ChangedFiles(self.paths, complete=True, head=head, base="main")


@pytest.fixture
def provider() -> Rights:
    return Rights()


def sent(session: Tx) -> Sequence[str]:
    """Keys of reactions and replies, in order."""
    table = OutboxRow.__table__
    kinds = table.c.kind.in_(("reaction", "reply"))
    return (
        session.execute(select(table.c.idem_key).where(kinds).order_by(table.c.id)).scalars().all()
    )


async def said(
    runtime: Runtime, queue: QueueRef, ask: Ask, number: int = 7, by: Actor = PERSON
) -> tuple[str, bool]:
    """The reaction to a command, and whether there is a reply too."""
    record = await runtime.store.read(access.repository, queue.repository_id)
    before = len(await runtime.store.read(sent))
    where = Where(RepoId(queue.repo.host, "1"), queue.repo)
    source = runtime.ids.uuid()
    at = ProviderTime(runtime.clock.now())
    asked = Asked(where, number, by, ask, AskSource.COMMENT, source, at)
    await comments.answer_comment(runtime, record, asked)
    keys = (await runtime.store.read(sent))[before:]
    emoji = [key.rpartition("/")[2] for key in keys if key.startswith("reaction/")]
    return (emoji[0] if emoji else "", any(key.startswith("reply/") for key in keys))


@pytest.mark.parametrize(("ask", "needed"), NEEDS, ids=lambda each: repr(each)[:40])
async def test_a_command_takes_its_right_and_a_refusal_is_answered(
    runtime: Runtime, queue: QueueRef, provider: Rights, ask: Ask, needed: AccessLevel
):
    for level in AccessLevel:
        provider.level = level
        before = (await turn.value(runtime, queue.id)).version
        emoji, has_words = await said(runtime, queue, ask)
        after = (await turn.value(runtime, queue.id)).version
        if level < needed:
            assert (level, emoji, before == after) == (level, "-1", True)
        else:
            assert (level, emoji == "-1") == (level, False)
        if TRIAGE <= level < needed or level is NONE:
            assert (level, has_words) == (level, True)


async def test_outsiders_are_told_once_on_each_pull_request(runtime, queue, provider):
    provider.level = READ
    assert await said(runtime, queue, AskSubmit()) == ("-1", True)
    assert await said(runtime, queue, AskSubmit()) == ("-1", False)
    assert await said(runtime, queue, AskSubmit(), number=8) == ("-1", True)


async def test_an_author_without_rights_may_cancel_and_nothing_else(runtime, queue, provider):
    author = Actor(ActorKind.PERSON, "alice", "1")
    for ask, _ in NEEDS[4:]:
        assert await said(runtime, queue, ask, by=author) == ("-1", True)
    emoji, _ = await said(runtime, queue, AskCancel(), by=author)
    assert emoji != "-1"


@pytest.mark.parametrize(
    ("login", "account", "emoji"),
    [
        ("renamed", "49699333", "confused"),
        ("dependabot", "5", "-1"),  # GraphQL shows bots without their suffix
        ("dependabot", "", "-1"),
    ],
)
async def test_an_author_is_known_by_the_account_and_not_by_its_name(
    runtime, queue, login, account, emoji
):
    runtime.providers[queue.repo.host].author = ("dependabot", "49699333")
    person = Actor(ActorKind.PERSON, login, account)
    assert (await said(runtime, queue, AskCancel(), by=person))[0] == emoji


async def test_a_deleted_account_is_the_author_of_nothing(runtime, queue, provider):
    provider.author = ("ghost", None)
    for number in ("10137", ""):
        ghost = Actor(ActorKind.PERSON, "ghost", number)
        assert (await said(runtime, queue, AskCancel(), by=ghost))[0] == "-1"


@pytest.mark.parametrize("path", [".github/workflows/ci.yml", ".trunk/trunk.yaml"])
async def test_a_forks_change_of_ci_takes_maintain(runtime, queue, provider, path):
    provider.level = WRITE
    provider.paths = (path,)
    assert await said(runtime, queue, AskSubmit(), number=9) == ("-1", True)
    provider.level = MAINTAIN
    await said(runtime, queue, AskSubmit(), number=9)
    emoji, _ = await said(runtime, queue, AskSubmit(), number=9)
    assert emoji != ""


@pytest.mark.parametrize("kind", [ActorKind.SELF, ActorKind.BOT])
async def test_our_own_words_and_bots_nobody_listed_command_nothing(runtime, queue, provider, kind):
    provider.level = ADMIN
    bot = Actor(kind, "helper[bot]", "8")
    for ask, _ in NEEDS:
        assert await said(runtime, queue, ask, by=bot) == ("", False)
