"""Words that every floor of the service shares.

Repositories, commits, people and reports of checks, as neutral values: nothing here
knows a provider, a queue or a database.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from typing import NewType

Sha = NewType("Sha", str)
"""A commit or tree id: 40 or 64 lower-case hex digits."""

Network = IPv4Network | IPv6Network
"""Addresses with a common beginning."""


@dataclass(frozen=True, slots=True)
class RepoRef:
    """The present spelling of a repository; owner and name may change, and match in any case."""

    host: str
    owner: str
    name: str

    @property
    def slug(self) -> str:
        """`owner/name`, as people write it."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class RepoId:
    """The identity of a repository: the provider's own id, the same through every rename."""

    host: str
    id: str


class ActorKind(StrEnum):
    """The kinds of actors. SELF is our own App at the provider; SYSTEM is Headgate deciding."""

    PERSON = "person"
    BOT = "bot"
    SELF = "self"
    TOKEN = "token"
    SYSTEM = "system"


class Channel(StrEnum):
    """The channel of a request."""

    COMMENT = "comment"
    CHECKBOX = "checkbox"
    LABEL = "label"
    RULE = "rule"
    BUTTON = "button"
    DASHBOARD = "dashboard"
    API = "api"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who did or asked something.

    `id` is the provider's numeric id as text for people and bots, the token's public id
    for tokens, empty for the system; `login` is a token's name for tokens, and the name of the
    rule (channel RULE) by which the system did it.
    """

    kind: ActorKind
    login: str
    id: str = ""
    channel: Channel = Channel.SYSTEM


SYSTEM = Actor(ActorKind.SYSTEM, login="", channel=Channel.SYSTEM)


class CheckKind(StrEnum):
    """The origins of a report: a run inside a check suite, or a commit status.

    SUITE is an unfinished check suite itself. It has no name, and only says that its App may
    report more.
    """

    SUITE_RUN = "suite_run"
    STATUS = "status"
    SUITE = "suite"


class CheckOutcome(StrEnum):
    """The meanings of one report (docs/design/provider.md 8.1).

    SKIPPED: CI did not run the check, or says that its result does not matter.
    """

    RUNNING = "running"
    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One report about one commit.

    `source_id` is the App that reported it, `group` its suite (empty for statuses), `id` the
    provider's id, which orders reports of one series; `raw` the provider's own word
    (its conclusion once completed, else its waiting word); `url` is never empty. `account` is the
    id of the account that set a commit status, `author` its login, or the name of the App.
    `attempt` is that of the CI job, read where a suite has several reports of one name; None: it is
    no job, or has the only report of its name.
    """

    kind: CheckKind
    name: str
    source_id: str | None
    group: str
    id: str
    outcome: CheckOutcome
    raw: str
    url: str
    started_at: datetime | None = None
    completed_at: datetime | None = None
    account: str | None = None
    author: str = ""
    attempt: int | None = None


ELSEWHERE = "elsewhere"
"""The place of a check of which only that is known: its condition excludes test branches."""


class Explanation(StrEnum):
    """The statements of test evidence about one failed check (docs/design/testing.md 4)."""

    QUARANTINED = "quarantined"
    FLAKY = "flaky"
    BASE_RED = "base_red"
    INFRA = "infra"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Approval:
    """A review that approves a pull request: whose, of which head, when by the provider's clock.

    `id` is the account's number. What the provider does not show is None.
    """

    login: str
    id: str | None
    head: Sha | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Binding:
    """The way a required name got its reporter, where the rules of the branch do not name it.

    `by` is the reporter in words. `on` says where it was seen: the target branch, the head of a
    pull request or a test branch; BY_SETTING: a setting names it; empty: it was not seen yet.
    `is_pinned`: the rules of the branch bind the name to an App.
    """

    by: str
    on: str
    at: datetime | None = None
    is_pinned: bool = False


BY_SETTING = "setting"


@dataclass(frozen=True, slots=True)
class RequiredName:
    """A status that must pass, and whose reports count for it (docs/design/provider.md 8.3).

    With `source_id` only those of that App, with `kind` only those of that kind, with `account`
    only commit statuses that this account set. `binding` None: the branch's rules say all of it.
    """

    name: str
    source_id: str | None = None
    kind: CheckKind | None = None
    account: str | None = None
    binding: Binding | None = field(default=None, compare=False)

    def admits(self, check: Check) -> bool:
        """Return whether a report of this name counts: its kind and who made it are right."""
        return (
            check.name == self.name
            and check.kind is not CheckKind.SUITE
            and self.kind in (None, check.kind)
            and self.source_id in (None, check.source_id)
            and self.account in (None, check.account)
        )

    def counted(self, reports: Iterable[Check]) -> tuple[Check, ...]:
        """Return those of these reports that count for this name.

        Beside one that it admits also reports of others that are not passes, where the reporter was
        learned: as at GitHub, a check and a status of one name must both pass.
        """
        named = [one for one in reports if one.name == self.name]
        own = tuple(one for one in named if self.admits(one))
        found = self.binding
        if not own or found is None or found.on == BY_SETTING or found.is_pinned:
            return own
        passes = (CheckOutcome.PASSED, CheckOutcome.SKIPPED)
        others = (one for one in named if one.kind is not CheckKind.SUITE and one not in own)
        return (*own, *(one for one in others if one.outcome not in passes))


@dataclass(frozen=True, slots=True)
class Foreign:
    """A report that does not count for a required name, by kind and author, and whose would."""

    kind: CheckKind
    app_id: str | None
    author: str
    wanted: RequiredName


class RequiredSource(StrEnum):
    """The sources of required statuses."""

    MERGE_INSTANCE = "merge_instance"
    VENDOR_CONFIG = "vendor_config"
    BRANCH_PROTECTION = "repo_provider_branch_protection"


class MergeMethod(StrEnum):
    """The ways to bring a pull request's commits onto the target branch."""

    MERGE_COMMIT = "MERGE_COMMIT"
    SQUASH = "SQUASH"
    REBASE = "REBASE"


class Resolution(StrEnum):
    """The rules that resolve a conflict (docs/design/conflicts.md 5).

    UNION: the lines that both sides added. CHANGELOG: the same, each under its own headings.
    """

    UNION = "UNION"
    CHANGELOG = "CHANGELOG"


@dataclass(frozen=True, slots=True)
class ConflictRule:
    """The rule for conflicts in files that one of these globs fits."""

    paths: tuple[str, ...]
    rule: Resolution


@dataclass(frozen=True, slots=True)
class Resolved:
    """The files in which a merge had a conflict that a rule resolved."""

    rule: Resolution
    paths: tuple[str, ...]


class PullRequestState(StrEnum):
    """A pull request as the provider has it."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class Mergeability(StrEnum):
    """The provider's answers to whether it can merge a pull request cleanly into its base."""

    UNSPECIFIED = "unspecified"
    IN_PROGRESS = "in_progress"
    MERGEABLE = "mergeable"
    NOT_MERGEABLE = "not_mergeable"


class BlockerCode(StrEnum):
    """Why the provider would refuse to merge a pull request (docs/design/provider.md 10).

    DEPENDS_ON and those after it come from lines of its description.
    """

    CLOSED = "closed"
    DRAFT = "draft"
    CONFLICT = "conflict"
    REVIEW_REQUIRED = "review_required"
    CHANGES_REQUESTED = "changes_requested"
    CONVERSATIONS_UNRESOLVED = "conversations_unresolved"
    CHECK_PENDING = "check_pending"
    CHECK_FAILING = "check_failing"
    CHECK_MISSING = "check_missing"
    STACKED = "stacked"
    PROVIDER_QUEUED = "provider_queued"
    UNSIGNED = "unsigned"
    DEPENDS_ON = "depends_on"
    DEPENDENCY_LOST = "dependency_lost"
    NOT_BEFORE_UNREADABLE = "not_before_unreadable"
    OTHER = "other"


CODE_OWNERS = "code_owners"
LAST_PUSH = "last_push"
"""Names of a required review that not just anybody can give."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """One such reason; `name` is the check or rule it is about.

    `workflows` with code OTHER: it changes workflow files that we may not write. CODE_OWNERS and
    LAST_PUSH with code REVIEW_REQUIRED: who has to review it.
    """

    code: BlockerCode
    name: str | None = None


class Role(StrEnum):
    """The rights of a token (docs/design/security.md 1)."""

    READ = "read"
    CI = "ci"
    QUEUE = "queue"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class QueueRef:
    """One queue: its ids and how its repository and branch are spelled now."""

    id: int
    org_id: int
    repository_id: int
    repo: RepoRef
    branch: str


class EndpointState(StrEnum):
    """The states of an endpoint: whether it receives webhooks (docs/design/notifications.md 3)."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class EndpointFormat(StrEnum):
    """The formats in which an endpoint receives messages (docs/design/notifications.md 4)."""

    JSON = "json"
    SLACK = "slack"


class DeliveryState(StrEnum):
    """The state of a delivery to an endpoint (docs/design/notifications.md 3)."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Health(StrEnum):
    """The states of a test (docs/design/detector.md 9)."""

    HEALTHY = "healthy"
    FLAKY = "flaky"
    BROKEN = "broken"


UNHEALTHY = (Health.FLAKY, Health.BROKEN)


class Flag(StrEnum):
    """A person's statement about a test's health; it stands over what the detector finds."""

    NONE = "NONE"
    FLAKY = "FLAKY"
    BROKEN = "BROKEN"


class Override(StrEnum):
    """A person's statement about a test's quarantine (docs/design/quarantine.md 3)."""

    UNSPECIFIED = "UNSPECIFIED"
    ALWAYS_QUARANTINE = "ALWAYS_QUARANTINE"
    NEVER_QUARANTINE = "NEVER_QUARANTINE"


class QuarantineForgives(StrEnum):
    """The failures of a quarantined test that count as passed.

    KNOWN_FAILURES: only those with a failure text that the test had before.
    """

    ANY_FAILURE = "ANY_FAILURE"
    KNOWN_FAILURES = "KNOWN_FAILURES"


class ExcuseProof(StrEnum):
    """The least proof of a report that excuses a failed check (docs/design/evidence.md 5).

    JOB: the check's own CI job. RUN: its CI run, of which any job may have sent it. TOKEN: one of
    our tokens, which every job that has it can send for every other.
    """

    JOB = "JOB"
    RUN = "RUN"
    TOKEN = "TOKEN"


class Sensitivity(StrEnum):
    """The degrees of how soon a test is called flaky (docs/design/detector.md 5)."""

    STRICT = "strict"
    NORMAL = "normal"
    EAGER = "eager"
