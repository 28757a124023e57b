"""The records of a world as plain mutable values: people, Apps, reviews, checks, rules.

The records that refer to a repository are in world.py. acts/ changes the values, shapes/ turns
them into JSON.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

Json = dict[str, Any]

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
HOST = "github.localhost"
NOREPLY = f"users.noreply.{HOST}"


class Kind(StrEnum):
    """The kind of an account, in the provider's words."""

    USER = "User"
    BOT = "Bot"
    ORGANIZATION = "Organization"


@dataclass(slots=True)
class Account:
    """A person, an organization, or the bot of the App `app_id`."""

    id: int
    login: str
    kind: Kind
    created_at: datetime
    app_id: int | None = None


@dataclass(slots=True)
class App:
    """A registered App; `bot` acts for it. Reports of one that `is_gone` name no App."""

    id: int
    slug: str
    name: str
    client_id: str
    owner: Account
    bot: Account
    permissions: dict[str, str]
    events: list[str]
    created_at: datetime
    setup_url: str | None = None
    client_secret: str = ""
    callback_urls: list[str] = field(default_factory=list)
    is_public: bool = True
    is_gone: bool = False


@dataclass(slots=True)
class Installation:
    """The App on one owner; `selected` are ids of repositories, None: all of the owner's."""

    id: int
    app: App
    account: Account
    permissions: dict[str, str]
    created_at: datetime
    suspended_at: datetime | None = None
    selected: set[int] | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change: an account and, when it acts through an App, that App.

    `permissions` are what the token grants; None for people, who are judged by their role.
    """

    account: Account
    app: App | None = None
    permissions: dict[str, str] | None = None

    def may(self, permission: str, level: str = "write") -> bool:
        """Return whether the token grants this; people are never asked."""
        if self.permissions is None:
            return True
        granted = self.permissions.get(permission)
        return granted in ("write", "admin") or granted == level == "read"


@dataclass(slots=True)
class Reaction:
    """One reaction of one account."""

    id: int
    account: Account
    content: str
    created_at: datetime


@dataclass(slots=True)
class Label:
    """A label of a repository."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A label was added to an issue or removed, as its timeline shows it."""

    id: int
    label: Label
    added: bool
    account: Account
    at: datetime


@dataclass(slots=True)
class Review:
    """One review; state APPROVED, CHANGES_REQUESTED or DISMISSED."""

    id: int
    author: Account
    body: str
    state: str
    commit: str
    submitted_at: datetime
    edited_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AutoMerge:
    """A request that GitHub merges a pull request once it can be merged."""

    by: Account
    at: datetime


@dataclass(frozen=True, slots=True)
class BaseChange:
    """An event of a pull request's timeline about its base, by its GraphQL type."""

    event: str
    at: datetime


@dataclass(frozen=True, slots=True)
class HeadForcePush:
    """An event of a pull request's timeline: its head was replaced by force."""

    before: str
    after: str
    at: datetime


@dataclass(slots=True)
class Thread:
    """A conversation on a line of code."""

    id: int
    author: Account
    body: str
    path: str
    is_resolved: bool = False


@dataclass(slots=True)
class CheckSuite:
    """All check runs of one App on one commit; Actions makes one per workflow run."""

    id: int
    app: App
    head_sha: str
    head_branch: str | None
    created_at: datetime
    updated_at: datetime
    runs: list["CheckRun"] = field(default_factory=list)
    forced_conclusion: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job: when it begins and ends, and how; the world's time says how far it is."""

    name: str
    begins_at: datetime
    ends_at: datetime
    conclusion: str


@dataclass(slots=True)
class CheckRun:
    """One check run; a re-run is a new one with the same name in the same suite.

    `attempt`, `runner`, `failed_steps` and `steps` are what its job shows; without an attempt it is
    no job.
    """

    id: int
    suite: CheckSuite
    name: str
    status: str
    conclusion: str | None
    started_at: datetime | None
    completed_at: datetime | None = None
    external_id: str = ""
    details_url: str | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: int = 0
    actions: list[Json] = field(default_factory=list)
    runner: str = "sandbox"
    failed_steps: int = 1
    steps: tuple[Step, ...] = ()
    attempt: int | None = None


@dataclass(slots=True)
class Artifact:
    """A zip archive that an attempt of a workflow run left."""

    id: int
    name: str
    packed: bytes
    attempt: int
    created_at: datetime
    expired: bool = False


@dataclass(slots=True)
class Status:
    """One commit status; every update is a new one."""

    id: int
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    creator: Account
    created_at: datetime


@dataclass(slots=True)
class Ruleset:
    """A ruleset of a repository; conditions, rules and bypass actors in the provider's JSON."""

    id: int
    name: str
    enforcement: str
    include: list[str]
    exclude: list[str]
    rules: list[Json]
    bypass_actors: list[Json]
    created_at: datetime


@dataclass(slots=True)
class Classic:
    """Classic protection of one branch; None and False mean that the rule is off."""

    checks: list[tuple[str, int | None]] | None = None
    strict: bool = False
    approvals: int | None = None
    dismiss_stale: bool = False
    conversations: bool = False
    linear: bool = False
    signatures: bool = False
    force_pushes: bool = False
    deletions: bool = False
    enforce_admins: bool = False
    code_owners: bool = False
    last_push_approval: bool = False
    queue: bool = False
    deployments: list[str] | None = None
    pushers: list[str] | None = None
    bypass_apps: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Stack:
    """A native stack: `members` from the bottom up, each based on the head branch below."""

    id: int
    number: int
    members: list[int]
    created_at: datetime


@dataclass(slots=True)
class AsyncMerge:
    """A request to the asynchronous merge API; `sha` is the head that it was made for.

    `status` is pending, merged or failed; `landed` the commit of a merged one.
    """

    uuid: str
    number: int
    sha: str
    method: str
    action: str
    text: str
    updated_at: datetime
    status: str = "pending"
    landed: str | None = None


@dataclass(slots=True)
class Settings:
    """The choices of a repository that the sandbox heeds."""

    merge_commit: bool = True
    squash: bool = True
    rebase: bool = True
    delete_head: bool = False
    issues: bool = True
    drafts: bool = True
    squash_title: str = "COMMIT_OR_PR_TITLE"
    squash_message: str = "COMMIT_MESSAGES"
    merge_title: str = "MERGE_MESSAGE"
    merge_message: str = "PR_TITLE"
