"""A whole world for a test: the service and the sandbox in one process, meeting over HTTP.

Its verbs are what people do; its views what they see. `settle` waits until nothing is left to
do; after each world test `clean` demands that nothing was left behind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bot import settings as all_settings
from bot import wiring
from bot.sandbox import app as sandbox_app
from bot.sandbox.acts import seeds
from bot.sandbox.app import PERMISSIONS, Sandbox, SandboxOptions
from bot.sandbox.faces import JITTER_S, Face
from bot.sandbox.git import BareRepository
from bot.sandbox.records import CheckRun
from bot.sandbox.world import GITHUB_LIMITS, Repository
from bot.settings import Settings
from service.accounts.store import access as stored_access
from service.clock import RandomIds
from service.crash_points import CrashPoints, NoCrashes
from service.database.database import Tx
from service.mergequeue.engine.config import ConfigValue
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, turn
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import queues, runs
from service.mergequeue.store.tables_queues import LandingRow
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoRef
from tests.harness import databases, faces
from tests.harness.clock import FastClock
from tests.harness.issuer import AUDIENCE
from tests.harness.published import Traffic
from tests.harness.stillness import is_still

SPEED = 30.0
SETTLE_WITHIN_S = 1200.0
HEARD_S = JITTER_S + 1
"""After so long, the deliveries of an act have been sent."""
LOOK_EVERY_S = 0.6
LOOK_RARELY_S = 2.0
"""Between two looks in a long wait; what lasts is seen, and so is a check of three seconds."""
REPO = "octo/widgets"
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
    rules:
      - {exists: [broken.txt], conclusion: failure}
      - {exists: [a.txt, b.txt], conclusion: failure}
"""


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """How a world begins; periods of sweeps are long unless a test is about them.

    `ahead_s`: so far the sandbox's clock is ahead of the service's, negative: behind.
    `permissions` are those of our App that differ from what it asks for at least. `has_limits`:
    the sandbox limits content as github.com does, and refuses more pushes than github.com
    recommends; the service paces its calls by that. `is_compared`: what passes between the two is
    compared with GitHub's descriptions. `face`: how the sandbox behaves where GitHub has two ways,
    and in what order it delivers; None: drawn from the name of the test.
    """

    required: tuple[str, ...] = ("unit",)
    ci: str = CI
    permissions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    crash_points: CrashPoints = field(default_factory=NoCrashes)
    speed: float = SPEED
    database_url: str | None = None
    ahead_s: float = 0.0
    has_limits: bool = False
    is_compared: bool = True
    face: Face | None = None


@dataclass(slots=True)
class World:
    """Both halves, and the words to tell a story with; `main` was at `start` when it began."""

    sandbox: Sandbox
    runtime: Runtime
    clock: FastClock
    url: str
    older: str
    start: str
    heard_at_s: float = 0.0
    """When the command before has been delivered for sure."""

    async def open(
        self, *, by: str = "bob", files: Mapping[str, str | None] | None = None, **more: Any
    ) -> int:
        """Open a pull request that adds files to an older commit of `main`; its number.

        Its head does not contain the tip, so it needs a test branch; `fresh` true: it does.
        """
        if not more.pop("fresh", False):
            more.setdefault("from", self.older)
        content = files if files is not None else {f"file-{self.sandbox.world.new_id()}.txt": "x\n"}
        made = await self.sandbox.act("open", by, REPO, files=content, **more)
        number: int = made["number"]
        return number

    async def comment(self, body: str, on: int, *, by: str = "bob") -> None:
        """Comment on a pull request; a command waits until the one before has been delivered.

        What arrives first goes first in the queue (docs/design/comments.md 4), and GitHub promises
        no order: only a pause says which of two commands that is. `act` comments at once.
        """
        if body.startswith("/"):
            await self.rest(max(0.0, self.heard_at_s - self.clock.monotonic_s()))
            self.heard_at_s = self.clock.monotonic_s() + HEARD_S
        await self.sandbox.act("comment", by, REPO, number=on, body=body)

    async def act(self, name: str, *, by: str = "bob", **fields: Any) -> dict[str, Any]:
        """Any other act of a person (bot/sandbox/acts/actions_by_people.py)."""
        return await self.sandbox.act(name, by, REPO, **fields)

    async def fault(self, match: dict[str, Any], kind: str, **more: Any) -> None:
        """Let the sandbox go wrong where a call or delivery matches.

        See docs/design/provider.md 16.
        """
        await self.sandbox.control.add_fault({"match": match, "fault": {"kind": kind, **more}})

    async def rest(self, seconds: float) -> None:
        """Let so much world time pass, whatever goes on meanwhile."""
        await self.clock.sleep(seconds)

    async def until(self, is_so: Callable[[], Awaitable[bool]], within_s: float = 900.0) -> None:
        """Wait until something has come true, looking often at first.

        Raises AssertionError when it never does.
        """
        began = self.clock.monotonic_s()
        while not await is_so():
            waited_s = self.clock.monotonic_s() - began
            assert waited_s < within_s, "it never came true"
            await self.clock.sleep(min(max(waited_s / 10, LOOK_EVERY_S / 4), LOOK_RARELY_S))

    async def settle(self) -> None:
        """Wait until nothing is left to do on either side.

        Raises AssertionError when something never ends, naming it.
        """
        deadline = self.clock.monotonic_s() + SETTLE_WITHIN_S
        calm = 0
        why = ""
        while calm < 2:
            why = await is_still(self.runtime, self.sandbox)
            calm = calm + 1 if not why else 0
            if self.clock.monotonic_s() > deadline:
                raise AssertionError(f"never came to rest: {why}")
            await self.clock.sleep(LOOK_EVERY_S)

    async def queue(self, branch: str = "main") -> QueueRef:
        """The queue of a branch."""
        return await self.runtime.store.read(_queue, branch)

    async def value(self, branch: str = "main") -> MergeQueue:
        """The queue's value."""
        return await turn.value(self.runtime, (await self.queue(branch)).id)

    async def entry(self, number: int) -> Entry:
        """The newest submission of a pull request."""
        view = await pull_requests.status(self.runtime, await self.queue(), number)
        return view.entry

    async def state(self, number: int) -> str:
        """Where a pull request stands."""
        return (await self.entry(number)).state.value

    async def merged(self) -> list[int]:
        """Pull requests that the sandbox shows as merged, in the order they landed."""
        repository = self.sandbox.world.repository(REPO)
        assert repository is not None
        pulls = [
            (issue.pull.merged_at, number)
            for number, issue in repository.issues.items()
            if issue.pull is not None and issue.pull.merged_at is not None
        ]
        return [number for _, number in sorted(pulls)]

    @property
    def repository(self) -> Repository:
        """The sandbox's own record of the repository."""
        found = self.sandbox.world.repository(REPO)
        assert found is not None
        return found

    def branches(self) -> list[str]:
        """Names of the repository's branches."""
        return sorted(ref.removeprefix("refs/heads/") for ref in self.repository.git.refs)

    def open_pulls(self) -> list[int]:
        """Numbers of open pull requests."""
        return [number for number, one in self.repository.issues.items() if one.open and one.pull]

    async def reactions(self, number: int) -> list[str]:
        """Reactions of our App on the comments of a pull request, in order."""
        comments = self.repository.issues[number].comments
        return [one.content for comment in comments for one in comment.reactions]

    def comment_on(self, number: int) -> str:
        """The status comment of our App on a pull request; empty when there is none."""
        bot = self.sandbox.app.bot
        own = [one.body for one in self.repository.issues[number].comments if one.author is bot]
        own.sort(key=lambda body: "headgate:status" not in body)
        return own[0] if own else ""

    def check_on(self, number: int) -> str:
        """Title and conclusion of our check on a pull request's head, `Merged (success)`."""
        own = self._own_check(number)
        return "" if own is None else f"{own.title} ({own.conclusion or own.status})"

    def check_summary(self, number: int) -> str:
        """The summary of our check on a pull request's head."""
        own = self._own_check(number)
        return "" if own is None else own.summary or ""

    def _own_check(self, number: int) -> CheckRun | None:
        pull = self.repository.issues[number].pull
        checks = self.repository.check_runs(pull.head_sha) if pull is not None else []
        own = [one for one in checks if one.suite.app is self.sandbox.app]
        return own[-1] if own else None

    async def make_queue(
        self,
        *,
        state: QueueState = QueueState.RUNNING,
        branch: str = "main",
        **settings: ConfigValue,
    ) -> None:
        """Make the queue of a branch, five at a time, with these settings."""
        record = await self.runtime.store.read(
            stored_access.repository_by_ref, None, RepoRef("github.localhost", *REPO.split("/"))
        )
        assert record is not None, "the service does not know the repository"
        wish = QueueRequest({"concurrency": 5, "bisection_concurrency": 5, **settings}, state)
        await queue_operations.create(self.runtime, record, branch, wish, SYSTEM)

    async def landed_trees(self) -> list[str]:
        """Trees of the first-parent history of `main` that the queue made, oldest first."""
        queue = await self.queue()
        rows = await self.runtime.store.read(_landings, queue.id)
        git = self.repository.git
        return [_tree(git, row.landed_sha) for row in rows]

    async def landings_refused(self) -> list[str]:
        """Why landings did not happen, oldest first."""
        queue = await self.queue()
        rows = await self.runtime.store.read(_landings, queue.id, "refused")
        return [row.evidence for row in rows]

    async def tested_trees(self, numbers: list[int]) -> list[str]:
        """Trees with which these pull requests were tested, each on those before it."""
        found: list[str] = []
        queue = await self.queue()
        for number in numbers:
            entry = await self.entry(number)
            run = await self.runtime.store.read(runs.run, queue.id, entry.verified_by or "")
            assert run is not None
            found += [step.tree for step in run.steps if step.pr == number]
        return found


def _tree(git: BareRepository, sha: str) -> str:
    commit = git.objects.commit(sha)
    assert commit is not None, f"{sha} is not in the repository"
    return commit.tree


def _queue(session: Tx, branch: str) -> QueueRef:
    owner, name = REPO.split("/")
    ref = RepoRef("github.localhost", owner, name)
    record = stored_access.repository_by_ref(session, None, ref)
    assert record is not None, "the service does not know the repository"
    found = queues.queue_ref(session, record.org_id, record.id, branch)
    assert found is not None, f"{branch} has no queue"
    return found


def _landings(session: Tx, queue_id: int, state: str = "landed") -> list[Any]:
    table = LandingRow.__table__
    done = select(table).where(table.c.queue_id == queue_id, table.c.state == state)
    return list(session.execute(done.order_by(table.c.id)))


@asynccontextmanager
async def living(folder: Path, options: WorldOptions) -> AsyncIterator[World]:
    """A world with one repository, `octo/widgets`, whose CI follows `options.ci`."""
    async with hosting(options) as host, serving(folder, options, *host) as world:
        yield world


@asynccontextmanager
async def hosting(options: WorldOptions) -> AsyncIterator[tuple[Sandbox, FastClock, str]]:
    """The sandbox with its repository, the clock, and the first commit of `main`."""
    clock, traffic = FastClock(options.speed), Traffic()
    observer = traffic if options.is_compared else None
    face = options.face or faces.of_this_test()
    chosen = SandboxOptions(clock=clock.shared, observer=observer, face=face)
    async with clock.running(), sandbox_app.running(chosen) as sandbox:
        sandbox.world.ahead = timedelta(seconds=options.ahead_s)
        await sandbox.seed(
            repositories=[
                {
                    "full_name": REPO,
                    "files": {"README.md": "# Widgets\n", ".sandbox/ci.yml": options.ci},
                }
            ]
        )
        repository = sandbox.world.repository(REPO)
        assert repository is not None
        older = repository.git.branch("main")
        newer = {"branch": "main", "files": {"newer.txt": "x\n"}, "message": "Move on"}
        await sandbox.act("push", "alice", REPO, **newer)
        rules = {"required_checks": list(options.required)}
        seeds.set_rules(repository, rules)
        if options.permissions:
            granted = {**PERMISSIONS, **options.permissions}
            await sandbox.act("permissions", "alice", REPO, permissions=granted)
        if options.has_limits:
            seeds.set_knobs(sandbox.world, GITHUB_LIMITS)
        yield sandbox, clock, str(older)
    traffic.check()


@asynccontextmanager
async def serving(
    folder: Path, options: WorldOptions, sandbox: Sandbox, clock: FastClock, older: str
) -> AsyncIterator[World]:
    """A service of this sandbox, whose state is in the folder; it may be started again."""
    settings = settings_for(folder, sandbox, options)
    parts = wiring.World(clock, RandomIds(), options.crash_points)
    async with wiring.running(settings, parts) as service:
        sandbox.world.webhook_url = f"{service.url}/webhooks/github"
        sandbox.world.audience = AUDIENCE
        repository = sandbox.world.repository(REPO)
        assert repository is not None
        start = str(repository.git.branch("main"))
        yield World(sandbox, service.runtime, clock, service.url, older, start)


def settings_for(folder: Path, sandbox: Sandbox, options: WorldOptions) -> Settings:
    """The service's settings against this sandbox."""
    address = options.database_url or databases.sqlite_at(folder / "headgate.db")
    given: dict[str, Any] = {
        "github_url": sandbox.url,
        "github_host": "github.localhost",
        "oidc_audience": AUDIENCE,
        "github_app_id": str(sandbox.app_id),
        "github_private_key": str(sandbox.key_path),
        "github_webhook_secret": sandbox.webhook_secret,
        "github_client_id": sandbox.app.client_id,
        "github_client_secret": sandbox.app.client_secret,
        "github_write_spacing_ms": 0,
        "build_method": "rest",
        "database_url": address,
        "data_dir": str(folder),
        "port": 0,
        "admin_listen": "off",
        "secret_key": "c2VjcmV0LWtleS1vZi1hLXRlc3Qtd29ybGQtMDEyMzQ1Njc4OTAx",
        "log_format": "json",
    }
    limited = {"github_limits": True, "github_write_spacing_ms": None}
    if options.has_limits:
        given |= limited
    return all_settings.alone(**{**given, **options.settings})
