"""SQLite: the file, its lock, and one writer whose functions share a commit."""

import asyncio
import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection, make_url
from sqlalchemy.exc import IntegrityError, OperationalError

from service.clock import RandomIds, SystemClock
from service.crash_points import NoCrashes
from service.database import sqlite, sqlite_file
from service.database.database import Store, StoreOptions, address, open_store
from service.errors import DatabaseAway, DatabaseUnavailable, StartRefused
from service.mergequeue.store import queues
from service.mergequeue.store.cache import QueueCache, newest_known
from tests.harness.databases import opened_at
from tests.store.conftest import a_stored_queue


class Recorder:
    """A crash point that writes down where a crash could strike, and strikes where told."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.strikes_at: str | None = None

    def reach(self, name: str) -> None:
        """Note the name; the end of the process here, as a test sees it."""
        self.reached.append(name)
        if name == self.strikes_at:
            raise KeyboardInterrupt


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def notes(sqlite_url: str, recorder: Recorder):
    """A store with a table of notes."""
    store = await open_store(
        sqlite_url, clock=SystemClock(), ids=RandomIds(), crash_points=recorder
    )
    await store.run(execute, "CREATE TABLE note (text TEXT UNIQUE)")
    yield store
    await store.close()


def execute(session: Connection, statement: str, *parameters: object) -> None:
    session.exec_driver_sql(statement, parameters)


def note(session: Connection, text: str) -> str:
    execute(session, "INSERT INTO note VALUES (?)", text)
    return text


def note_and_fail(session: Connection, text: str) -> None:
    note(session, text)
    raise ArithmeticError(text)


def noted(session: Connection) -> list[str]:
    return sorted(session.exec_driver_sql("SELECT text FROM note").scalars())


async def together(store: Store, *calls) -> list[object]:
    """What these functions come to when all wait while the writer is busy."""
    started, may_end = Event(), Event()

    def keep_busy(_: Connection) -> None:
        started.set()
        may_end.wait(10)

    first = asyncio.ensure_future(store.run(keep_busy))
    # What is queued before the writer has begun could still join the first function's group.
    await asyncio.to_thread(started.wait, 10)
    waiting = [asyncio.ensure_future(store.run_kind("turn", *call)) for call in calls]
    await asyncio.sleep(0)
    may_end.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_functions_that_wait_share_one_commit(notes: Store, recorder: Recorder):
    assert await together(notes, *((note, text) for text in "abc")) == ["a", "b", "c"]
    assert recorder.reached == ["tx.turn.before_commit", "tx.turn.after_commit"]
    assert await notes.read(noted) == ["a", "b", "c"]


async def test_a_function_that_raises_is_undone_alone(notes: Store, recorder: Recorder):
    first, failed, last = await together(notes, (note, "a"), (note_and_fail, "b"), (note, "c"))
    assert (first, last) == ("a", "c")
    assert isinstance(failed, ArithmeticError)
    assert len(recorder.reached) == 2
    assert await notes.read(noted) == ["a", "c"]


async def test_when_the_database_gives_up_nobody_is_told_done_and_all_run_again_alone(
    notes: Store, recorder: Recorder
):
    await notes.run(note, "taken")
    gives_up = (execute, "INSERT OR ROLLBACK INTO note VALUES ('taken')")
    first, failed, last = await together(notes, (note, "a"), gives_up, (note, "c"))
    assert (first, last) == ("a", "c")
    assert isinstance(failed, IntegrityError)
    assert recorder.reached == ["tx.turn.before_commit", "tx.turn.after_commit"] * 2
    assert await notes.read(noted) == ["a", "c", "taken"]


async def test_a_transaction_that_was_given_up_unnoticed_is_not_told_done(notes: Store):
    def hides_it(session: Connection) -> None:
        execute(session, "ROLLBACK")

    (failed,) = await together(notes, (hides_it,))
    assert isinstance(failed, DatabaseUnavailable)


async def test_a_full_disk_refuses_what_needs_room_and_takes_the_rest(notes: Store):
    def fill(session: Connection) -> None:
        (pages,) = session.exec_driver_sql("PRAGMA page_count").one()
        session.exec_driver_sql(f"PRAGMA max_page_count = {pages + 20}")

    await notes.run(fill)
    first, failed, last = await together(notes, (note, "a"), (note, "large" * 100_000), (note, "c"))
    assert (first, last) == ("a", "c")
    assert isinstance(failed, DatabaseUnavailable)
    assert failed.retry_after_s == 30
    await notes.run(execute, "PRAGMA max_page_count = 1000000")
    large = await notes.run(note, "large" * 100_000)
    assert await notes.read(noted) == ["a", "c", large]


async def test_a_mistake_of_ours_is_told_as_it_is(notes: Store):
    with pytest.raises(OperationalError, match="no such table"):
        await notes.run(execute, "INSERT INTO missing VALUES (1)")


def failing(code: int) -> sqlite3.OperationalError:
    """What the driver raises with this code."""
    failed = sqlite3.OperationalError("It cannot be done.")
    failed.sqlite_errorcode = code
    return failed


NOT_NOW = {
    sqlite3.SQLITE_BUSY_SNAPSHOT: True,
    sqlite3.SQLITE_CANTOPEN_ISDIR: False,
    sqlite3.SQLITE_FULL: True,
    sqlite3.SQLITE_IOERR_WRITE: True,
    sqlite3.SQLITE_LOCKED_SHAREDCACHE: True,
    sqlite3.SQLITE_NOMEM: True,
    sqlite3.SQLITE_READONLY_DBMOVED: False,
}
"""Codes that say "not now"; whether that passes without anybody's hand."""
MISTAKES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_MISUSE)


@pytest.mark.parametrize("code", [*NOT_NOW, *MISTAKES])
async def test_what_the_file_cannot_now_is_told_apart_from_mistakes(notes: Store, code: int):
    def fail(_: Connection) -> None:
        raise failing(code)

    told = DatabaseUnavailable if code in NOT_NOW else sqlite3.OperationalError
    with pytest.raises(told):
        await notes.run(fail)


@pytest.mark.parametrize(
    ("strikes_at", "kept"), [("tx.permit.before_commit", []), ("tx.permit.after_commit", ["a"])]
)
async def test_a_strike_at_the_commit_reaches_who_waits(
    notes: Store, recorder: Recorder, strikes_at: str, kept: list[str]
):
    recorder.strikes_at = strikes_at
    with pytest.raises(KeyboardInterrupt):
        await notes.run_kind("permit", note, "a")
    assert await notes.read(noted) == kept


async def test_a_caller_that_gives_up_stops_nobody(notes: Store):
    busy = Event()
    gone = asyncio.ensure_future(notes.run(lambda _: busy.wait(10)))
    other = asyncio.ensure_future(notes.run(note, "a"))
    await asyncio.sleep(0)
    gone.cancel()
    busy.set()
    assert await other == "a"


@pytest.mark.parametrize("fails", [False, True])
async def test_memory_is_dropped_after_a_commit_that_its_caller_does_not_await(
    sqlite_url: str, fails: bool
):
    store = await opened_at(sqlite_url)
    queue = await store.run(a_stored_queue)
    store.caches.of(QueueCache).put(queue)
    began, may_end = Event(), Event()

    def call(_: Connection) -> None:
        began.set()
        may_end.wait(10)
        if fails:
            raise ArithmeticError

    gone = asyncio.ensure_future(store.run(call))
    await asyncio.to_thread(began.wait, 10)
    gone.cancel()
    may_end.set()
    await store.run(lambda _: None)
    assert await newest_known(store, queue.id) == (queue if fails else None)
    await store.close()


async def test_readers_cannot_write(notes: Store):
    with pytest.raises(DatabaseUnavailable) as refused:
        await notes.read(note, "a")
    assert "readonly" in str(refused.value.__cause__)


async def test_a_reader_sees_one_snapshot(notes: Store):
    began, written = Event(), Event()

    def twice(session: Connection) -> tuple[list[str], list[str]]:
        before = noted(session)
        began.set()
        written.wait(10)
        return before, noted(session)

    reading = asyncio.ensure_future(notes.read(twice))
    await asyncio.to_thread(began.wait, 10)
    await notes.run(note, "a")
    written.set()
    assert await reading == ([], [])
    assert await notes.read(noted) == ["a"]


async def test_each_read_sees_what_was_committed_before_it(notes: Store):
    for count in range(2 * sqlite.READERS):
        await notes.run(note, str(count))
        assert len(await notes.read(noted)) == count + 1


COUNT_UP = "UPDATE deployment SET access_version = access_version + 1"


async def test_the_access_version_is_that_of_the_last_commit_of_any_process(sqlite_url: str):
    store = await opened_at(sqlite_url)
    seen = await store.access_version()
    with sqlite3.connect(make_url(sqlite_url).database or "") as another:
        another.execute(COUNT_UP)
    another.close()
    assert await store.access_version() == seen + 1
    await store.run(execute, COUNT_UP)
    assert await store.access_version() == seen + 2
    await store.close()


async def test_a_writer_in_another_process_is_waited_for_and_then_refused(
    notes: Store, sqlite_url: str
):
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    await notes.run(hurry)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable):
        await notes.run(note, "a")
    other.execute("COMMIT")
    other.close()
    assert await notes.run(note, "a") == "a"


def hurry(session: Connection) -> None:
    """Let a busy database be told soon."""
    session.exec_driver_sql("PRAGMA busy_timeout = 1")


async def test_what_waits_is_finished_before_the_store_closes(sqlite_url: str):
    store = await opened_at(sqlite_url)
    await store.run(execute, "CREATE TABLE note (text TEXT UNIQUE)")
    waiting = [asyncio.ensure_future(store.run(note, str(number))) for number in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*waiting)) == 300


async def test_a_second_process_is_refused_and_told_who_holds_the_file(sqlite_url: str):
    store = await opened_at(sqlite_url)
    with pytest.raises(StartRefused, match=f"in use by process {os.getpid()}"):
        await opened_at(sqlite_url)
    await store.close()
    await (await opened_at(sqlite_url)).close()


async def test_one_short_transaction_runs_beside_the_process_that_serves(sqlite_url: str):
    serving = await opened_at(sqlite_url)
    beside = await open_store(
        sqlite_url,
        clock=SystemClock(),
        ids=RandomIds(),
        crash_points=NoCrashes(),
        options=StoreOptions(alone=False),
    )
    identity = await serving.read(queues.deployment_id)
    assert await beside.read(queues.deployment_id) == identity
    await beside.close()
    await serving.close()


PROGRAM = """
import asyncio, sys
from service.crash_points import NoCrashes
from service.clock import RandomIds, SystemClock
from service.database.database import open_store
from service.mergequeue.store import queues

async def main():
    store = await open_store(
        sys.argv[1], clock=SystemClock(), ids=RandomIds(), crash_points=NoCrashes()
    )
    print(await store.run(queues.deployment_id), await store.read(queues.deployment_id))
    if sys.argv[2] == "close":
        await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("end", [pytest.param("close", marks=pytest.mark.soak), "forget"])
def test_a_process_ends_whether_it_closed_its_store_or_not(database_url: str, end: str):
    subprocess.run([sys.executable, "-c", PROGRAM, database_url, end], check=True)


async def test_a_clean_stop_leaves_one_file_and_an_empty_lock(tmp_path: Path):
    folder = tmp_path / "any" / "new"
    await (await opened_at(f"sqlite:///{folder}/headgate.db")).close()
    files = sorted(folder.iterdir())
    assert [each.name for each in files] == ["headgate.db", "headgate.db.lock"]
    assert files[1].read_bytes() == b""


async def test_folder_and_files_are_for_our_user_alone(tmp_path: Path):
    store = await opened_at(f"sqlite:///{tmp_path}/new/headgate.db")
    await store.run(execute, "CREATE TABLE note (text TEXT)")
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "new").iterdir()}
    await store.close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}
    assert len(modes) == 4


async def test_every_connection_is_set_as_promised(sqlite_url: str):
    store = await opened_at(sqlite_url)

    def settings(session: Connection) -> dict[str, object]:
        names = (*sqlite_file.PRAGMAS, "query_only", "auto_vacuum")
        return {name: session.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}

    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "trusted_schema": 0,
        "auto_vacuum": 2,
    }
    assert await store.run(settings) == wanted | {"query_only": 0}
    assert await store.read(settings) == wanted | {"query_only": 1}
    await store.close()


MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
31 22 0:27 / /mnt/team rw shared:9 - nfs4 server:/team rw
32 31 0:28 / /mnt/team/disk rw - xfs /dev/vdb rw
33 22 0:29 / /mnt/a\\040b rw - fuse.sshfs me@there: rw
"""


@pytest.mark.parametrize("place", ["/mnt/team/x.db", "/mnt/team/deep/x.db", "/mnt/a b/x.db"])
def test_network_file_systems_are_refused(place: str):
    with pytest.raises(StartRefused, match="network file system"):
        sqlite_file.refuse_network(Path(place), MOUNTS)


@pytest.mark.parametrize("name", ["9p", "afs", "ceph", "cifs", "glusterfs", "ncpfs", "nfs", "smb2"])
def test_file_systems_of_every_network_are_refused(name: str):
    for kind in (name, *OTHER_NAMES.get(name, ())):
        with pytest.raises(StartRefused, match="network file system"):
            sqlite_file.refuse_network(Path("/mnt/team/x.db"), MOUNTS.replace("nfs4", kind))


OTHER_NAMES = {"glusterfs": ["fuse.glusterfs"], "nfs": ["nfs4"], "smb2": ["smb3", "smbfs"]}


@pytest.mark.parametrize("place", ["/srv/x.db", "/mnt/team/disk/x.db", "/mnt/teamwork/x.db"])
@pytest.mark.parametrize("mounts", [MOUNTS, "".join(reversed(MOUNTS.splitlines(True)))])
def test_local_file_systems_are_not(place: str, mounts: str):
    sqlite_file.refuse_network(Path(place), mounts)


@pytest.mark.parametrize("place", ["/", "/mnt/team/disk"])
def test_the_last_mount_of_a_folder_is_the_one_that_counts(place: str):
    above = f"34 1 0:30 / {place} rw - nfs4 server:/ rw\n"
    with pytest.raises(StartRefused, match="network file system"):
        sqlite_file.refuse_network(Path(place) / "x.db", MOUNTS + above)
    with pytest.raises(StartRefused, match="network file system"):
        sqlite_file.refuse_network(Path(place) / "x.db", above)


async def test_the_mounts_of_the_machine_are_looked_at_where_it_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mounts, url = tmp_path / "mountinfo", f"sqlite:///{tmp_path}/x.db"
    monkeypatch.setattr(sqlite_file, "MOUNTS", mounts)
    await (await opened_at(url)).close()
    mounts.write_text(f"22 1 0:27 / {tmp_path} rw - nfs4 server:/ rw\n")
    with pytest.raises(StartRefused, match="network file system"):
        await opened_at(url)


@pytest.mark.parametrize(("name", "value"), [("page_size", 1024), ("no_such_setting", 1)])
async def test_a_connection_that_is_set_otherwise_is_refused(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, name: str, value: int
):
    monkeypatch.setitem(sqlite_file.PRAGMAS, name, value)
    with pytest.raises(StartRefused, match=f"SQLite's {name} is"):
        await opened_at(sqlite_url)


@pytest.fixture
def damaged_url(sqlite_url: str) -> str:
    """A database of which two pages were overwritten while its process was killed."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    whole = bytearray(path.read_bytes())
    whole[8192:16384] = bytes(8192)
    path.write_bytes(whole)
    path.with_name(f"{path.name}.lock").write_text("4711\n")
    return sqlite_url


async def test_a_damaged_file_is_refused_after_an_unclean_stop(damaged_url: str):
    with pytest.raises(StartRefused, match="damaged"):
        await opened_at(damaged_url)


async def test_after_an_unclean_stop_a_sound_file_opens(sqlite_url: str, tmp_path: Path):
    store = await opened_at(sqlite_url)
    await store.run(execute, "CREATE TABLE note (text TEXT UNIQUE)")
    await store.run(note, "kept")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal", ".lock"):
        shutil.copyfile(f"{tmp_path}/headgate.db{suffix}", crashed / f"headgate.db{suffix}")
    await store.close()
    again = await opened_at(f"sqlite:///{crashed}/headgate.db")
    assert await again.read(noted) == ["kept"]
    await again.close()


async def test_what_is_no_database_is_refused(tmp_path: Path):
    (tmp_path / "x.db").write_text("not a database, but long enough to look at" * 50)
    with pytest.raises(StartRefused, match=r"x\.db") as refused:
        await opened_at(f"sqlite:///{tmp_path}/x.db")
    assert not isinstance(refused.value, DatabaseAway)


@pytest.mark.parametrize(
    ("code", "passes"), [*NOT_NOW.items(), *((each, False) for each in MISTAKES)]
)
async def test_a_file_that_may_open_later_is_away_and_any_other_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, passes: bool
):
    def fail(*args: object, **given: object) -> None:
        raise failing(code)

    monkeypatch.setattr(sqlite3, "connect", fail)
    with pytest.raises(StartRefused) as refused:
        await opened_at(f"sqlite:///{tmp_path}/x.db")
    assert isinstance(refused.value, DatabaseAway) is passes


@pytest.mark.parametrize(
    ("number", "passes"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, True), (errno.EROFS, False)],
)
async def test_a_file_that_may_be_made_later_is_away_and_any_other_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
):
    def fail(*args: object, **given: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(StartRefused) as refused:
        await opened_at(f"sqlite:///{tmp_path}/x.db")
    assert isinstance(refused.value, DatabaseAway) is passes


async def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="HEADGATE_DATABASE_URL"):
        await opened_at(f"sqlite:///{tmp_path}/file/x.db")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://host/db",
        "headgate.db",
        "",
        "postgresql+pg8000://h/d",
    ],
)
async def test_other_databases_are_refused_by_the_name_of_the_setting(url: str):
    with pytest.raises(StartRefused, match="HEADGATE_DATABASE_URL"):
        await opened_at(url)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_both_usual_names_of_the_server_are_taken(scheme: str):
    assert address(f"{scheme}://headgate@host/d").host == "host"


async def test_a_password_in_a_wrong_address_is_not_told():
    with pytest.raises(StartRefused) as refused:
        await opened_at("mysql://me:hunter2@host/db")
    assert "hunter2" not in refused.value.detail
