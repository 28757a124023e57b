"""The whole world: its repositories, everything by id and by name, and the history of events.

The other values are in records.py. This module decides nothing and sends nothing.
"""

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Protocol

from bot.sandbox.faults import Faults
from bot.sandbox.git import BareRepository
from bot.sandbox.records import (
    Account,
    App,
    CheckRun,
    CheckSuite,
    Classic,
    Installation,
    Issue,
    Json,
    Kind,
    Label,
    Pull,
    Ruleset,
    Settings,
    Stack,
    Status,
    WorkflowRun,
)
from bot.sandbox.timeline import Timeline

CALLS_KEPT = 50_000
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
    payload: Json
    body: bytes
    redelivery: bool
    at: datetime
    headers: dict[str, str] = field(default_factory=dict)
    answer_code: int = 0
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: str = ""
    status: str = "queued"
    duration_s: float = 0.0


class Courier(Protocol):
    """Carries one prepared delivery to its address."""

    async def carry(self, attempt: Attempt) -> None:
        """Send it once and write into it what came back."""
        ...


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
    """Delays and limits of the imitation, all in seconds of world time.

    `base_window_s`: so long after a base moved, the merge call answers "Base branch was
    modified". 0 turns it off. `head_delay_s`: so long after a push a pull request still shows
    its old head, while git has the new one. `content_minute_max` and `content_hour_max`: so many
    things that people see may an App make (github.com: 80 and 500). 0 turns a limit off.
    """

    mergeable_delay_s: float = 1.0
    rename_delay_s: float = 1.0
    base_window_s: float = 0.0
    delivery_delay_s: float = 0.0
    head_delay_s: float = 0.0
    content_minute_max: float = 0.0
    content_hour_max: float = 0.0


@dataclass(slots=True)
class Repository:
    """A repository with everything in it, and its world. Its forks share `lock`.

    `deployed` holds commits with the environment of a successful deployment, `scanned` commits
    with results of code scanning.
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
    parent: int | None = None
    archived: bool = False
    settings: Settings = field(default_factory=Settings)
    collaborators: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    suites: dict[str, list[CheckSuite]] = field(default_factory=dict)
    statuses: dict[str, list[Status]] = field(default_factory=dict)
    workflow_runs: list[WorkflowRun] = field(default_factory=list)
    rulesets: list[Ruleset] = field(default_factory=list)
    protected: dict[str, Classic] = field(default_factory=dict)
    stacks: list[Stack] = field(default_factory=list)
    deployed: set[tuple[str, str]] = field(default_factory=set)
    scanned: set[str] = field(default_factory=set)

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner.login}/{self.name}"

    def pulls(self) -> Iterator[tuple[Issue, Pull]]:
        """All pull requests, oldest first."""
        for issue in self.issues.values():
            if issue.pull is not None:
                yield issue, issue.pull

    def open_pulls(self) -> list[tuple[Issue, Pull]]:
        """The open pull requests, oldest first."""
        return [(issue, pull) for issue, pull in self.pulls() if issue.open]

    def stack_of(self, number: int) -> Stack | None:
        """The native stack of a pull request, None without one."""
        return next((one for one in self.stacks if number in one.members), None)

    def check_runs(self, sha: str) -> list[CheckRun]:
        """Every check run on a commit, oldest first."""
        return [run for suite in self.suites.get(sha, ()) for run in suite.runs]

    def role_of(self, account: Account) -> str:
        """The role of an account; of the owner `admin`, of everybody else `none`."""
        if account.id == self.owner.id:
            return "admin"
        return self.collaborators.get(account.login.lower(), "none")


class World:
    """Everything there is, found by id and by name."""

    def __init__(self, timeline: Timeline, folder: Path, seed: int) -> None:
        self.timeline = timeline
        self.folder = folder
        self.seed = seed
        self.web = "http://127.0.0.1"
        self.is_ghes = False
        self.knobs = Knobs()
        self.chance = random.Random(seed)  # noqa: S311 - chance of a game, not of a key
        self.allow_commands = False
        self.command_places = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self.pass_env: tuple[str, ...] = ()
        self.webhook_url: str | None = None
        self.webhook_secret = ""
        self.accounts: dict[int, Account] = {}
        self.apps: dict[str, App] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        self.attempts: list[Attempt] = []
        self.courier: Courier | None = None
        self.faults = Faults()
        self.reflog: list[RefMoved] = []
        self.calls: deque[Json] = deque(maxlen=CALLS_KEPT)
        self.content: deque[datetime] = deque(maxlen=CONTENT_KEPT)
        self._names: dict[str, int] = {}
        self._logins: dict[str, int] = {}
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

    def now(self) -> datetime:
        """World time to the second, as the provider tells it."""
        return self.timeline.now().replace(microsecond=0)

    def new_id(self, kind: str = "") -> int:
        """A number that no other thing of the kind has."""
        return next(self._ids.get(kind, self._other_ids))

    def account(self, login: str) -> Account | None:
        """The account of a login, in any case."""
        found = self._logins.get(login.lower())
        return self.accounts[found] if found is not None else None

    def add_account(self, login: str, kind: Kind = Kind.USER) -> Account:
        """The account of that login, made when there is none."""
        known = self.account(login)
        if known is None:
            known = Account(self.new_id("account"), login, kind, self.now())
            self.accounts[known.id] = known
            self._logins[login.lower()] = known.id
        return known

    def add_app(self, slug: str, permissions: dict[str, str], events: list[str]) -> App:
        """A new App of the owner `sandbox`, with its bot."""
        number = self.new_id()
        bot = self.add_account(f"{slug}[bot]", Kind.BOT)
        bot.app_id = number
        owner = self.add_account("sandbox", Kind.ORGANIZATION)
        client = f"Iv23li{number:014d}"
        now = self.now()
        made = App(number, slug, slug.capitalize(), client, owner, bot, permissions, events, now)
        self.apps[slug] = made
        return made

    def rename_account(self, account: Account, login: str) -> None:
        """Give an account another login; the old one is free at once."""
        del self._logins[account.login.lower()]
        account.login = login
        self._logins[login.lower()] = account.id
        for repository in self.repositories.values():
            self._names[repository.full_name.lower()] = repository.id

    def repository(self, full_name: str) -> Repository | None:
        """The repository of a name, in any case, or of a name it once had."""
        found = self._names.get(full_name.lower())
        return self.repositories.get(found) if found is not None else None

    def add_repository(self, repository: Repository) -> None:
        """Make a repository known by its name."""
        self.repositories[repository.id] = repository
        self._names[repository.full_name.lower()] = repository.id

    def rename_repository(self, repository: Repository, owner: Account, name: str) -> None:
        """Make it known by another name; the old one leads to it until somebody takes it."""
        repository.owner, repository.name = owner, name
        self._names[repository.full_name.lower()] = repository.id

    def forget_repository(self, repository: Repository) -> None:
        """Make a repository unknown under all its names."""
        del self.repositories[repository.id]
        self._names = {name: one for name, one in self._names.items() if one != repository.id}

    def installation_of(self, app: App, owner: Account) -> Installation | None:
        """The installation of an App on an owner."""
        for one in self.installations.values():
            if one.app is app and one.account is owner:
                return one
        return None

    def repositories_of(self, installation: Installation) -> list[Repository]:
        """Return the repositories that an installation can see, oldest first."""
        return [one for one in self.repositories.values() if self.covers(installation, one)]

    def covers(self, installation: Installation, repository: Repository) -> bool:
        """Return whether an installation can see a repository."""
        chosen = installation.repositories
        return repository.owner is installation.account and (
            chosen is None or repository.id in chosen
        )
