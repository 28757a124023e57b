"""The records of a world: people, pull requests, checks, rules, as plain values.

Nothing here decides, sends or draws JSON. The acts (acts/) change these values, shapes/ shows
them. They are mutable on purpose: a record of the outside world, not of the product.
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
    teams: dict[str, set[str]] = field(default_factory=dict)


@dataclass(slots=True)
class App:
    """A registered App; `bot` acts for it."""

    id: int
    slug: str
    name: str
    client_id: str
    owner: Account
    bot: Account
    permissions: dict[str, str]
    events: list[str]
    created_at: datetime


@dataclass(slots=True)
class Installation:
    """The App on one owner; `repositories` is None for all of them."""

    id: int
    app: App
    account: Account
    permissions: dict[str, str]
    created_at: datetime
    repositories: set[int] | None = None
    suspended_at: datetime | None = None


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
class Comment:
    """One comment in a conversation; `via` is the App that wrote it."""

    id: int
    author: Account
    body: str
    created_at: datetime
    updated_at: datetime
    via: App | None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True)
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str
    description: str | None


@dataclass(slots=True)
class Review:
    """One review; state APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED."""

    id: int
    author: Account
    body: str
    state: str
    commit: str
    submitted_at: datetime


@dataclass(slots=True)
class Thread:
    """A conversation on a line of code."""

    id: int
    author: Account
    body: str
    path: str
    is_resolved: bool = False


@dataclass(slots=True)
class Pull:
    """The part of a pull request that its issue lacks.

    `base_sha` is the base as of the last push or retarget, not its present tip. `mergeable` is
    None while the provider has not looked yet; `looked` counts the looks begun, so that only
    the newest one is believed; `ci_due` waits for that look. `pusher` pushed the head last;
    `queued`: somebody put it into the provider's own merge queue.
    """

    head_repo: int | None
    head_owner: Account
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool
    pusher: Account | None = None
    queued: bool = False
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_commit: str | None = None
    mergeable: bool | None = None
    base_moved_at: datetime | None = None
    looked: int = 0
    ci_due: bool = False
    test_merge: str | None = None
    reviews: list[Review] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)


@dataclass(slots=True)
class Issue:
    """An issue or, with `pull`, a pull request."""

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
    locked: bool = False
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull: Pull | None = None

    @property
    def merged(self) -> bool:
        """Whether it is a pull request that was merged."""
        return self.pull is not None and self.pull.merged_at is not None


@dataclass(slots=True)
class CheckSuite:
    """All check runs of one App on one commit; Actions makes one per workflow run."""

    id: int
    app: App
    head_sha: str
    head_branch: str | None
    before: str | None
    created_at: datetime
    updated_at: datetime
    runs: list["CheckRun"] = field(default_factory=list)
    forced_conclusion: str | None = None


@dataclass(slots=True)
class CheckRun:
    """One check run; a re-run is a new one with the same name in the same suite.

    `runner` and `failed_steps` are what its job shows.
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
    annotations: list[Json] = field(default_factory=list)
    actions: list[Json] = field(default_factory=list)
    runner: str = "sandbox"
    failed_steps: int = 1


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
class WorkflowRun:
    """One run of the CI configuration; `jobs` holds the check runs of each attempt.

    `begun` and `ended` hold the start and the conclusion of each attempt. `is_draft`: it was
    started by an event of a draft pull request.
    """

    id: int
    number: int
    suite: CheckSuite
    name: str
    event: str
    head_sha: str
    tested_sha: str
    head_branch: str
    head_repo: int | None
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
