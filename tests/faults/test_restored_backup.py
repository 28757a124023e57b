"""A backup is put in place of the database: what is recognized, mended, and lost.

docs/how-to/operate.md says the same to operators.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot.cli import app
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry, AuditFilter
from service.errors import NotFound
from service.mergequeue.auditing.findings import Rule
from service.mergequeue.operations import restored
from service.mergequeue.store.restored import ACTION
from service.text import times
from service.vocabulary import MergeMethod
from tests.harness import audited, gates
from tests.harness.asking import asker
from tests.harness.databases import DIALECTS, Server, sqlite_at
from tests.harness.world import World, WorldOptions, hosting, serving

Story = Callable[[World], Awaitable[None]]


async def is_merged(world: World, number: int) -> bool:
    """Whether the sandbox shows it as merged, whatever the service has recorded of it."""
    return number in await world.merged()


def statuses_on(world: World, number: int) -> int:
    """How many status comments our App has on a pull request."""
    comments = world.repository.issues[number].comments
    return sum("headgate:status" in one.body for one in comments)


class SqliteFile:
    """A database file, its copy by command while it is used, and the copy in its place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.copy = folder / "headgate.db", folder / "copy.db"
        self.url = sqlite_at(self.path)

    async def back_up(self) -> None:
        """Copy it as the page says."""
        place = ["--database-url", self.url, "--data-dir", str(self.folder)]
        command = ["migrate", "--backup-to", str(self.copy), *place]
        assert await asyncio.to_thread(app.run, command) == 0

    @contextmanager
    def restored(self) -> Iterator[str]:
        """The address of what comes back."""
        shutil.move(self.copy, self.path)
        for end in ("-wal", "-shm"):
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        yield self.url


class PostgresDatabase:
    """A database, its dump while it is used, and the dump in an empty database."""

    def __init__(self, server: Server, url: str) -> None:
        self.server, self.url = server, url
        self.file = Path()

    async def back_up(self) -> None:
        """Dump it as the page says."""
        self.file = await asyncio.to_thread(self.server.dump, self.url)

    @contextmanager
    def restored(self) -> Iterator[str]:
        """The address of what comes back."""
        with self.server.restored(self.file) as url:
            yield url


Kept = SqliteFile | PostgresDatabase


@pytest.fixture(params=DIALECTS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A database that can be backed up."""
    if request.param == "sqlite":
        return SqliteFile(tmp_path)
    server = request.getfixturevalue("postgres")
    return PostgresDatabase(server, request.getfixturevalue("postgres_url"))


@asynccontextmanager
async def restored_after(
    folder: Path, kept: Kept, before: Story, after: Story
) -> AsyncIterator[World]:
    """A service whose database is that of the time between two parts of a story."""
    options = WorldOptions(database_url=kept.url, ci=gates.CI)
    async with hosting(options) as host:
        async with serving(folder, options, *host) as world:
            await world.make_queue()
            await before(world)
            await kept.back_up()
            await after(world)
        with kept.restored() as url:
            options = replace(options, database_url=url)
            async with serving(folder, options, *host) as world:
                await world.settle()
                yield world


async def noted(world: World) -> list[AuditEntry]:
    """What the audit log says of a restored backup."""
    wanted = AuditFilter(action=ACTION)
    store = world.runtime.store
    return list(await store.read(audit.entries_before, None, wanted, audit.NEWEST, 10))


@pytest.mark.fault(
    "a backup is put in place of the database",
    holds="nothing lands twice; landings since then are recognized as our own, comments mended",
    within="-",
)
async def test_a_restored_queue_recognizes_its_landings_and_mends_what_it_said(
    tmp_path: Path, kept: Kept
) -> None:
    queued, by_hand, later, unfinished, lost = range(1, 6)

    async def before(world: World) -> None:
        assert [await world.open() for _ in range(5)] == [1, 2, 3, 4, 5]
        await world.settle()
        for number in (queued, by_hand):
            await world.comment("/merge", on=number)
        await gates.under_test(world, by_hand)

    async def after(world: World) -> None:
        await gates.ends(world, queued)
        await world.settle()
        await world.act("merge", by="alice", number=by_hand, bypass=True)
        await world.settle()
        await world.comment("/merge", on=later)
        await gates.ends(world, later)
        await world.settle()
        assert [await world.state(each) for each in (queued, later)] == ["MERGED", "MERGED"]
        await world.comment("/merge", on=unfinished)
        await gates.under_test(world, unfinished)
        ask = await asker(world)
        await ask.done("submitPullRequest", lost)
        await world.settle()
        assert "Testing" in world.check_on(lost)

    async with restored_after(tmp_path, kept, before, after) as world:
        assert (await world.value()).holds == ()
        entry = await world.entry(queued)
        assert (entry.state, entry.reason) == ("MERGED", "landed_unrecorded")
        assert "by Headgate" in world.comment_on(queued)
        assert (await world.entry(by_hand)).reason == "merged_by_hand"
        for number in (later, lost):
            with pytest.raises(NotFound, match="was never submitted"):
                await world.entry(number)
        assert "### 🟣 Merged into `main` as " in world.comment_on(later)
        assert "restored from a backup" in world.comment_on(later)
        assert world.check_on(later) == "Merged (success)"
        assert "Comment `/merge` to submit this pull request again" in world.comment_on(lost)
        assert world.check_on(lost) == "Not queued any more (neutral)"
        # Its comment is read again, so it is queued again, and the same comment says so.
        await gates.ends(world, unfinished)
        await world.settle()
        assert (await world.entry(unfinished)).reason == "landed"
        assert "### 🟣 Merged into `main` as " in world.comment_on(unfinished)
        assert statuses_on(world, unfinished) == 1
        await world.comment("/merge", on=lost)
        await gates.ends(world, lost)
        await world.settle()
        assert (await world.state(lost), statuses_on(world, lost)) == ("MERGED", 1)
        assert world.check_on(lost).endswith("(success)")


async def test_what_a_restored_database_lacks_is_in_log_doctor_and_audit(tmp_path: Path) -> None:
    first, second = 1, 2

    async def before(world: World) -> None:
        assert [await world.open() for _ in range(2)] == [first, second]
        await world.settle()

    async def after(world: World) -> None:
        await world.comment("/merge", on=first)
        await gates.ends(world, first)
        await world.settle()
        ask = await asker(world)
        await ask.done("submitPullRequest", second)
        await gates.under_test(world, second)
        await world.settle()

    async with restored_after(tmp_path, SqliteFile(tmp_path), before, after) as world:
        (entry,) = await noted(world)
        data: dict[str, Any] = dict(entry.data)
        assert (data["forgotten"], list(data["landed"])) == ([1, 2], ["1"])
        (branch,) = data["branches"]
        assert branch.startswith("headgate/merge/pr-2/")
        assert branch in world.branches()
        ask = await asker(world)
        said = await ask.headgate("doctor", "--branch", "main")
        since = times.moment(datetime.fromisoformat(data["since"]))
        assert (
            f"Of the time after {since} it has no record of landings of #1 and of submissions of "
            "#1, #2"
        ) in said
        (result,) = await audited.audit_of(world)
        assert [(one.rule, one.pr) for one in result.findings] == [(Rule.LANDED_UNRECORDED, 1)]


async def test_a_service_that_starts_again_finds_nothing_restored(tmp_path: Path) -> None:
    options = WorldOptions(database_url=sqlite_at(tmp_path / "headgate.db"), ci=gates.CI)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            numbers = [await world.open() for _ in range(3)]
            await world.settle()
            for number in numbers:
                await world.comment("/merge", on=number)
            await gates.ends(world, numbers[0])
            await world.until(lambda: is_merged(world, numbers[0]))
        async with serving(tmp_path, options, *host) as world:
            await world.settle()
            assert await noted(world) == []
            assert (await world.entry(numbers[0])).reason == "landed"


@pytest.mark.fault(
    "a backup was restored, and the provider is away at the start",
    holds="the start waits for one call, and the look is made by a sweep",
    within="-",
)
async def test_a_provider_that_is_away_at_the_start_is_looked_at_later(tmp_path: Path) -> None:
    kept = SqliteFile(tmp_path)
    options = WorldOptions(database_url=kept.url, ci=gates.CI)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            number = await world.open()
            await world.settle()
            await kept.back_up()
            await world.comment("/merge", on=number)
            await gates.ends(world, number)
            await world.settle()
            await world.fault({"path": "*/issues/comments"}, "fail_before", status=503)
        with kept.restored():
            async with serving(tmp_path, options, *host) as world:
                assert await noted(world) == []
                world.sandbox.world.faults.clear()
                await restored.look_again(world.runtime)
                await world.settle()
                (entry,) = await noted(world)
                assert entry.data["forgotten"] == [number]


async def land(world: World, number: int) -> None:
    """Submit a pull request by a comment, and let its tests pass."""
    await world.comment("/merge", on=number)
    await gates.ends(world, number)
    await world.settle()


async def test_a_queue_that_was_made_anew_is_no_restored_backup(tmp_path: Path) -> None:
    options = WorldOptions(database_url=sqlite_at(tmp_path / "headgate.db"), ci=gates.CI)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            number = await world.open()
            await world.settle()
            await land(world, number)
            await (await asker(world)).done("deleteQueue")
            await world.settle()
            await world.make_queue()
            said = world.comment_on(number)
        async with serving(tmp_path, options, *host) as world:
            await world.settle()
            assert (await noted(world), world.comment_on(number)) == ([], said)


async def test_a_new_deployment_leaves_what_an_older_one_landed_and_said(tmp_path: Path) -> None:
    options = WorldOptions(database_url=sqlite_at(tmp_path / "headgate.db"), ci=gates.CI)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            still_open, number = await world.open(), await world.open()
            await world.settle()
            await land(world, number)
            said = world.comment_on(number)
        options = replace(options, database_url=sqlite_at(tmp_path / "new.db"))
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            await world.comment("thanks", on=number)
            await world.settle()
        async with serving(tmp_path, options, *host) as world:
            await world.settle()
            assert (await noted(world), world.comment_on(number)) == ([], said)
            assert still_open in world.open_pulls()


async def test_a_restored_backup_is_noted_once(tmp_path: Path) -> None:
    kept = SqliteFile(tmp_path)
    options = WorldOptions(database_url=kept.url, ci=gates.CI)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue()
            landed, lost = await world.open(), await world.open()
            await world.settle()
            await kept.back_up()
            await land(world, landed)
            await (await asker(world)).done("submitPullRequest", lost)
            await gates.under_test(world, lost)
            # What was said about it on the pull request is what the restored service finds.
            await world.settle()
        with kept.restored():
            for _ in range(2):
                async with serving(tmp_path, options, *host) as world:
                    await world.settle()
                    (entry,) = await noted(world)
                    assert entry.data["forgotten"] == [landed, lost]


@pytest.mark.fault(
    "a backup is restored in which a pull request is queued that was removed, or failed, since",
    holds="it leaves the queue again and does not land; another submission is not touched",
    within="-",
)
async def test_what_left_the_queue_after_the_backup_does_not_come_back(tmp_path: Path) -> None:
    by_api, by_comment, failed, again = 1, 2, 3, 4

    async def before(world: World) -> None:
        assert [await world.open() for _ in range(4)] == [1, 2, 3, 4]
        await world.settle()
        for number in (by_api, by_comment, failed, again):
            await world.comment("/merge", on=number)
            await gates.under_test(world, number)

    async def after(world: World) -> None:
        ask = await asker(world)
        await world.comment("/merge cancel", on=by_comment)
        for number in (by_api, again):
            await ask.done("cancelPullRequest", number)
        await world.settle()
        await ask.done("submitPullRequest", again)
        for _ in range(2):
            await gates.fails(world, failed)
            await world.settle()
        states = [await world.state(each) for each in (by_api, by_comment, failed, again)]
        assert states == ["CANCELLED", "CANCELLED", "FAILED", "TESTING"]

    async with restored_after(tmp_path, SqliteFile(tmp_path), before, after) as world:
        for number in (by_api, by_comment, failed):
            assert await world.state(number) == "CANCELLED"
            assert "had left the queue before a backup" in world.comment_on(number)
        assert await world.state(again) == "TESTING"
        (entry,) = await noted(world)
        assert entry.data["ended"] == [by_api, by_comment, failed]
        said = await (await asker(world)).headgate("doctor", "--branch", "main")
        assert "#1, #2, #3 had left the queue" in said


async def test_the_draft_of_a_batch_that_landed_is_no_landing_without_a_record(
    tmp_path: Path,
) -> None:
    options = WorldOptions(database_url=sqlite_at(tmp_path / "headgate.db"))
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await world.make_queue(
                merge_method=MergeMethod.MERGE_COMMIT, batch=True, batching_min_size=2
            )
            numbers = [await world.open() for _ in range(2)]
            await world.settle()
            for number in numbers:
                await world.comment("/merge", on=number)
            await world.settle()
            assert await world.merged() == [*numbers, draft := numbers[-1] + 1]
        async with serving(tmp_path, options, *host) as world:
            await world.settle()
            assert await noted(world) == []
            assert world.repository.issues[draft].comments == []
