"""The state of a sandbox: the world, its repositories, and their issues and pull requests.

Plain mutable values that decide and send nothing; acts/ changes them. Values that refer to no
repository are in records.py.
"""

import asyncio
import hashlib
import random
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

from bot.sandbox.faces import PLAIN
from bot.sandbox.faults import Faults
from bot.sandbox.git import BareRepository
from bot.sandbox.records import (
    Account,
    App,
    Artifact,
    AsyncMerge,
    AutoMerge,
    BaseChange,
    CheckRun,
    CheckSuite,
    Classic,
    HeadForcePush,
    Installation,
    Json,
    Kind,
    Label,
    LabelChange,
    Reaction,
    Review,
    Ruleset,
    Settings,
    Stack,
    Status,
    Thread,
)
from bot.sandbox.timeline import Timeline

CALLS_KEPT = 50_000
CALL_BODIES_KEPT = 16 * 2**20  # bytes; an older call is kept without its body
MOVES_KEPT = 100_000
CONTENT_KEPT = 10_000
COMMANDS_AT_ONCE = 4


@dataclass(slots=True)
class Attempt:
    """One attempt to deliver a webhook."""

    id: int
    guid: str
    event: str
    action: str | None
    installation: int | None
    repository: int | None
    packed: bytes
    redelivery: bool
    at: datetime
    answer_code: int = 0
    status: str = "queued"
    duration_s: float = 0.0

    @property
    def body(self) -> bytes:
        """The bytes that are sent; `packed` is their zlib form, a tenth as long."""
        return zlib.decompress(self.packed)


Courier = Callable[[Attempt], Awaitable[None]]
"""Carries one attempt to the App."""


@dataclass(frozen=True, slots=True)
class RefMoved:
    """One line of the sandbox's reflog."""

    at: datetime
    repository: str
    ref: str
    before: str
    after: str
    actor: str
    app: str | None
    how: str


@dataclass(frozen=True, slots=True)
class Knobs:
    """Delays and limits of the sandbox, delays in seconds of world time; 0 turns one off.

    `base_window_s`: how long the merge call answers "Base branch was modified" after a base moved.
    `head_delay_s`: how long a pull request shows its old head after a push.
    `async_merge_delay_s`: how long a request of the asynchronous merge API is pending.
    `content_minute_max` and `content_hour_max`: how much content an App may create.
    `pushes_minute_max`: how many pushes by git a repository takes.
    `push_refs_max`: how many refs one push may change, an admin's push policy.
    `calls_of_others`: calls of the present hour that the App made elsewhere.
    """

    mergeable_delay_s: float = 1.0
    rename_delay_s: float = 1.0
    base_window_s: float = 0.0
    head_delay_s: float = 0.0
    async_merge_delay_s: float = 1.0
    content_minute_max: float = 0.0
    content_hour_max: float = 0.0
    pushes_minute_max: float = 0.0
    push_refs_max: float = 0.0
    calls_of_others: float = 0.0


GITHUB_LIMITS: Mapping[str, float] = {
    "content_minute_max": 80,
    "content_hour_max": 500,
    "pushes_minute_max": 6,
}
"""Knobs with github.com's limits (docs/design/limits.md 8); the one of pushes is recommended."""

PUSHES_KEPT = 1_000
"""Pushes by git of which a repository knows the time."""


@dataclass(slots=True)
class Repository:
    """A repository with everything in it. Its forks share `lock`.

    `deployed` contains commits with the environment of a successful deployment, `scanned` commits
    with results of code scanning. `size_kib` is what the repository's facts show as its size.
    `renamed` contains the new name of each renamed branch, by the old one.
    """

    world: "World" = field(repr=False, compare=False)
    id: int
    owner: Account
    name: str
    private: bool
    default_branch: str
    git: BareRepository
    created_at: datetime
    pushed_at: datetime
    lock: asyncio.Lock
    parent: "Repository | None" = None
    archived: bool = False
    settings: Settings = field(default_factory=Settings)
    collaborators: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, "Issue"] = field(default_factory=dict)
    suites: dict[str, list[CheckSuite]] = field(default_factory=dict)
    statuses: dict[str, list[Status]] = field(default_factory=dict)
    workflow_runs: list["WorkflowRun"] = field(default_factory=list)
    rulesets: list[Ruleset] = field(default_factory=list)
    protected: dict[str, Classic] = field(default_factory=dict)
    stacks: list[Stack] = field(default_factory=list)
    async_merges: dict[str, AsyncMerge] = field(default_factory=dict)
    deployed: set[tuple[str, str]] = field(default_factory=set)
    scanned: set[str] = field(default_factory=set)
    size_kib: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    pushes: deque[datetime] = field(default_factory=lambda: deque(maxlen=PUSHES_KEPT))

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner.login}/{self.name}"

    @property
    def url(self) -> str:
        """The address of the REST API for the repository."""
        return f"{self.world.api}/repos/{self.full_name}"

    @property
    def page(self) -> str:
        """The address of the repository's page."""
        return f"{self.world.web}/{self.full_name}"

    def pulls(self) -> Iterator["PullRequest"]:
        """All pull requests, oldest first."""
        return (issue.pull for issue in self.issues.values() if issue.pull is not None)

    def open_pulls(self) -> list["PullRequest"]:
        """The open pull requests, oldest first."""
        return [pull for pull in self.pulls() if pull.open]

    def next_number(self) -> int:
        """Return the number of the next issue or pull request."""
        return max(self.issues, default=0) + 1

    def stack_of(self, number: int) -> Stack | None:
        """The native stack of a pull request, None without one."""
        return next((stack for stack in self.stacks if number in stack.members), None)

    def trunk_of(self, stack: Stack) -> str:
        """The branch that a native stack lands on: the base of its bottom member."""
        bottom = self.issues[stack.members[0]].pull
        return self.default_branch if bottom is None else bottom.base_ref

    def check_runs(self, sha: str) -> list[CheckRun]:
        """Every check run on a commit, oldest first."""
        return [run for suite in self.suites.get(sha, ()) for run in suite.runs]

    def role_of(self, account: Account) -> str:
        """The role of an account; `admin` for the owner, `none` for strangers."""
        if account.id == self.owner.id:
            return "admin"
        return self.collaborators.get(account.login.lower(), "none")


@dataclass(slots=True)
class Comment:
    """One comment in a conversation; `via` is the App that wrote it."""

    issue: "Issue" = field(repr=False, compare=False)
    id: int
    author: Account
    body: str
    created_at: datetime
    updated_at: datetime
    via: App | None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True)
class Issue:
    """An issue; a pull request is one too."""

    repository: Repository = field(repr=False, compare=False)
    id: int
    number: int
    title: str
    body: str | None
    author: Account
    created_at: datetime
    updated_at: datetime
    via: App | None = None
    open: bool = True
    closed_at: datetime | None = None
    closed_by: Account | None = None
    labels: list[str] = field(default_factory=list)
    label_changes: list[LabelChange] = field(default_factory=list)
    locked: bool = False
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def pull(self) -> "PullRequest | None":
        """This as a pull request; None for a plain issue."""
        return self if isinstance(self, PullRequest) else None

    @property
    def page(self) -> str:
        """The address of the page that a person opens."""
        kind = "issues" if self.pull is None else "pull"
        return f"{self.repository.page}/{kind}/{self.number}"

    def touch(self) -> None:
        """Set the time of the last update to now."""
        self.updated_at = self.repository.world.now()


@dataclass(slots=True, kw_only=True)
class PullRequest(Issue):
    """A pull request.

    `base_sha` is the base as of the last push or retarget, not its present tip. `mergeable` is
    None until GitHub has computed it; `computations` counts the computations begun, so that only
    the newest one counts; `ci_due`: CI starts after it. `pusher` pushed the head last; `queued`:
    it is in GitHub's own merge queue. `auto_merge` is shown, and merges nothing here.
    `base_changes` are the events of its timeline about its base, `force_pushes` those about its
    head.
    """

    head_repo: Repository = field(repr=False, compare=False)
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool
    pusher: Account | None = None
    queued: bool = False
    auto_merge: AutoMerge | None = None
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_commit: str | None = None
    mergeable: bool | None = None
    base_moved_at: datetime | None = None
    computations: int = 0
    ci_due: bool = False
    test_merge: str | None = None
    base_changes: list[BaseChange] = field(default_factory=list)
    force_pushes: list[HeadForcePush] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    @property
    def merged(self) -> bool:
        """Return whether it was merged."""
        return self.merged_at is not None

    @property
    def base_tip(self) -> str | None:
        """The present tip of the base branch; None without the branch."""
        return self.repository.git.branch(self.base_ref)

    @property
    def head_tip(self) -> str | None:
        """The present tip of the head branch; None without the branch."""
        return self.head_repo.git.branch(self.head_ref)


@dataclass(slots=True)
class WorkflowRun:
    """One run of the CI file; `jobs` contains the check runs of each attempt.

    `path` is the file that it shows. `waiting` names the checks whose jobs wait for others,
    `forgiven` the ids of jobs whose failure counts for nothing.

    `begun` and `ended` contain the start and the conclusion of each attempt. `is_draft`: an event
    of a draft pull request started it.
    """

    id: int
    number: int
    suite: CheckSuite
    event: str
    head_sha: str
    tested_sha: str
    head_branch: str
    head_repo: Repository = field(repr=False, compare=False)
    pulls: list[int]
    actor: Account
    created_at: datetime
    updated_at: datetime
    is_draft: bool = False
    status: str = "queued"
    conclusion: str | None = None
    attempt: int = 1
    jobs: dict[int, list[CheckRun]] = field(default_factory=dict)
    begun: dict[int, datetime] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    path: str = ""
    waiting: list[str] = field(default_factory=list)
    forgiven: set[int] = field(default_factory=set)


class World:
    """Everything in a sandbox, by id and by name."""

    def __init__(self, timeline: Timeline, folder: Path, seed: int) -> None:
        self.timeline = timeline
        self.ahead = timedelta(0)
        """The time by which its times are ahead of the clock that it shares with its callers."""
        self.folder = folder
        self.seed = seed
        self.web = "http://127.0.0.1"
        self.is_ghes = False
        self.knobs = Knobs()
        self.chance = random.Random(seed)  # noqa: S311 - chance of a game, not of a key
        self.face = PLAIN
        self.orders = random.Random(seed)  # noqa: S311 - chance of a game, not of a key
        """Chance of the order of deliveries alone; what CI draws does not depend on it."""
        self.allow_commands = False
        self.command_places = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self.pass_env: tuple[str, ...] = ()
        self.installs_itself = True
        self.manifest_codes: dict[str, datetime] = {}
        self.webhook_url: str | None = None
        self.audience: str | None = None  # of job tokens; None: the service's address
        self.webhook_secret = ""
        self.accounts: dict[int, Account] = {}
        self.app: App | None = None
        """The App that Headgate is; None before it is registered."""
        self.apps: dict[str, App] = {}
        """Every App by its slug, those that report CI results too."""
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        self.attempts: deque[Attempt] = deque()
        self.attempts_bytes = 0
        self.courier: Courier | None = None
        self.faults = Faults()
        self.reflog: deque[RefMoved] = deque(maxlen=MOVES_KEPT)
        self.calls: deque[Json] = deque(maxlen=CALLS_KEPT)
        self.bodies: deque[tuple[Json, int]] = deque()
        self.bodies_bytes = 0
        self.content: deque[datetime] = deque(maxlen=CONTENT_KEPT)
        self._names: dict[str, int] = {}
        # Small ids would hide a 32-bit field, so some kinds start beyond it.
        self._ids = {
            "account": count(9001),
            "repository": count(700_000_001),
            "comment": count(3_000_000_001),
            "check": count(50_000_000_001),
            "suite": count(40_000_000_001),
            "run": count(16_000_000_001),
        }
        self._other_ids = count(2_000_001)

    @property
    def api(self) -> str:
        """The root of all REST addresses."""
        return f"{self.web}/api/v3"

    def note_call(self, call: Json, size: int) -> None:
        """Log a call, whose body has `size` bytes; drop bodies of old calls above the bound."""
        self.calls.append(call)
        self.bodies.append((call, size))
        self.bodies_bytes += size
        while self.bodies_bytes > CALL_BODIES_KEPT or len(self.bodies) > CALLS_KEPT:
            old, freed = self.bodies.popleft()
            old["body"] = None
            self.bodies_bytes -= freed

    def now(self) -> datetime:
        """World time to the second, as in GitHub's answers."""
        return (self.timeline.now() + self.ahead).replace(microsecond=0)

    def new_id(self, kind: str = "") -> int:
        """Return a number that nothing else of the kind has."""
        return next(self._ids.get(kind, self._other_ids))

    def account(self, login: str) -> Account | None:
        """The account of a login, in any case."""
        wanted = login.lower()
        return next((one for one in self.accounts.values() if one.login.lower() == wanted), None)

    def add_account(self, login: str, kind: Kind = Kind.USER) -> Account:
        """The account of that login, made when there is none."""
        account = self.account(login)
        if account is None:
            account = Account(self.new_id("account"), login, kind, self.now())
            self.accounts[account.id] = account
        return account

    def add_app(self, slug: str, permissions: dict[str, str], events: list[str]) -> App:
        """A new App of the owner `sandbox`, with its bot."""
        number, now = self.new_id(), self.now()
        bot = self.add_account(f"{slug}[bot]", Kind.BOT)
        bot.app_id = number
        owner = self.add_account("sandbox", Kind.ORGANIZATION)
        client = f"Iv23li{number:014d}"
        app = App(number, slug, slug.capitalize(), client, owner, bot, permissions, events, now)
        app.client_secret = hashlib.sha256(f"{self.seed}:client:{number}".encode()).hexdigest()[:40]
        self.apps[slug] = app
        return app

    def repository(self, full_name: str) -> Repository | None:
        """The repository of a name, in any case, or of a name it once had."""
        number = self._names.get(full_name.lower())
        return None if number is None else self.repositories[number]

    def add_repository(self, repository: Repository) -> None:
        """Add a repository, or the new name of one; an old name leads to it until it is taken."""
        self.repositories[repository.id] = repository
        self._names[repository.full_name.lower()] = repository.id

    def remove_repository(self, repository: Repository) -> None:
        """Forget a repository, and every name that leads to it."""
        del self.repositories[repository.id]
        self._names = {
            name: number for name, number in self._names.items() if number != repository.id
        }

    def installation_of(self, app: App, owner: Account) -> Installation | None:
        """The installation of an App on an owner."""
        for installation in self.installations.values():
            if installation.app is app and installation.account is owner:
                return installation
        return None

    def repositories_of(self, installation: Installation) -> list[Repository]:
        """Return the repositories that an installation can see, oldest first."""
        return [one for one in self.repositories.values() if self.covers(installation, one)]

    def covers(self, installation: Installation, repository: Repository) -> bool:
        """Return whether an installation can see a repository."""
        if repository.owner is not installation.account:
            return False
        return installation.selected is None or repository.id in installation.selected
