"""The inward half of the seam: what a provider can tell us.

A signal knows a repository, never a queue, and each one also means "look again": a fresh read is
the truth. Members and their origins: docs/design/provider.md 3.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from service.provenance import ProviderTime
from service.vocabulary import Actor, RepoId, RepoRef, Sha


@dataclass(frozen=True, slots=True)
class Where:
    """The repository a signal is about, by identity and by its spelling at that time."""

    id: RepoId
    ref: RepoRef


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call of a provider to us as it came in: `body` is raw, its signature was checked.

    `id` is the provider's, the same when it is sent again; `repository_id` orders deliveries
    of one repository, None for those about none or several.
    """

    host: str
    id: str
    event: str
    action: str | None
    repository_id: str | None
    body: bytes
    received_at: datetime


@dataclass(frozen=True, slots=True)
class AskSubmit:
    """Put it into the queue, or change the given options of a queued one; None: not given.

    `sha` is a prefix of the head that the person means. `undoes` names merged work that it takes
    back on purpose: by `#` and number, or by the beginning of a commit. `again`: test a head that
    has failed again.
    """

    priority: int | None = None
    no_batch: bool | None = None
    sha: str | None = None
    undoes: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True, slots=True)
class AskCancel:
    """Take it out of the queue."""


@dataclass(frozen=True, slots=True)
class AskRetry:
    """Begin the running tests anew."""


@dataclass(frozen=True, slots=True)
class AskStatus:
    """Explain where it stands."""


@dataclass(frozen=True, slots=True)
class AskHelp:
    """List the commands."""


@dataclass(frozen=True, slots=True)
class AskPause:
    """Pause the queue of this pull request's base branch."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskDrain:
    """Drain that queue."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskResume:
    """Let that queue run again."""


class Unclear(StrEnum):
    """Why a command line was not understood (docs/design/comments.md 4)."""

    UNKNOWN_WORD = "unknown_word"
    UNKNOWN_OPTION = "unknown_option"
    BAD_PRIORITY = "bad_priority"
    BAD_SHA = "bad_sha"
    BAD_LANDING = "bad_landing"
    NO_REASON = "no_reason"
    TOO_LONG = "too_long"
    SEVERAL = "several"


@dataclass(frozen=True, slots=True)
class AskUnclear:
    """A command line that cannot be run.

    `given` is the faulty part, `suggestion` what was probably meant (empty when nothing is
    near), `count` the number of commands found.
    """

    why: Unclear
    given: str
    suggestion: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class AskForeign:
    """A command of another merge queue; `meant` is the command that does the same here, if any."""

    queue: str
    given: str
    meant: AskSubmit | AskCancel | AskRetry | AskStatus | None = None


Ask = (
    AskSubmit
    | AskCancel
    | AskRetry
    | AskStatus
    | AskHelp
    | AskPause
    | AskDrain
    | AskResume
    | AskUnclear
    | AskForeign
)


class AskSource(StrEnum):
    """The places where a command is written; reviews take no reactions.

    PROVIDER_QUEUE: the provider's own merge queue took or dropped the pull request.
    """

    COMMENT = "comment"
    REVIEW = "review"
    LABEL = "label"
    CHECKBOX = "checkbox"
    BUTTON = "button"
    PROVIDER_QUEUE = "provider_queue"


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody asks something about a pull request; `source_id` is the comment's id.

    `at` is the provider's time of it; of a button only a time before which it was not pressed.
    """

    where: Where
    number: int
    actor: Actor
    ask: Ask
    source: AskSource
    source_id: str
    at: ProviderTime | None


@dataclass(frozen=True, slots=True)
class ButtonPressed:
    """Somebody pressed a button of our check run of a submission.

    `id` is the same if the provider reports it again.
    """

    where: Where
    submission: str
    actor: Actor
    ask: Ask
    id: str
    at: ProviderTime | None


@dataclass(frozen=True, slots=True)
class NoticeEdited:
    """A person changed a comment of ours."""

    where: Where
    comment_id: str


@dataclass(frozen=True, slots=True)
class LabelChanged:
    """A label of a pull request was added or removed: read whether it is there, and by whom.

    Deliveries may be lost, late, repeated or in another order, so this says neither.
    """

    where: Where
    number: int
    label: str


@dataclass(frozen=True, slots=True)
class PullRequestChanged:
    """Facts of a pull request may differ: title, base, draft, reviews, labels, state.

    `pushed_onto`: the base, if a head of the repository itself was opened or pushed to; None:
    it was not, or the head is a fork's.
    """

    where: Where
    number: int
    head: Sha | None = None
    pushed_onto: str | None = None
    shown: "ShownPullRequest | None" = None


@dataclass(frozen=True, slots=True)
class ShownPullRequest:
    """A pull request as a delivery showed it, and the provider's time of its last change.

    `is_closed`: it was closed without a merge.
    """

    base: str
    is_fork: bool
    is_closed: bool
    at: ProviderTime | None


class News(StrEnum):
    """The changes that a report about a commit can cause: nothing when it only began."""

    BEGAN = "began"
    PASSED = "passed"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class CheckReported:
    """Reports on a commit may differ: read them; `news` only says whether that can matter."""

    where: Where
    sha: Sha
    news: News = News.OTHER


@dataclass(frozen=True, slots=True)
class CiRunEnded:
    """An attempt of a run of the provider's CI is over; it may have left reports.

    `branch` is the repository's own branch that it ran for; empty where it ran for a branch of
    another repository, or the provider names none.
    """

    where: Where
    run_id: str
    attempt: int
    branch: str


@dataclass(frozen=True, slots=True)
class BranchMoved:
    """A branch points elsewhere now; `paths` are what the commits that came touch.

    None: nobody knows all of them.
    """

    where: Where
    branch: str
    new: Sha
    actor: Actor
    forced: bool
    paths: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class BranchGone:
    """A branch was deleted."""

    where: Where
    branch: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class DefaultBranchRenamed:
    """Another branch is the default one now: the old one was renamed, or it lost its place."""

    where: Where
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Protection or rulesets of a repository may differ."""

    where: Where


@dataclass(frozen=True, slots=True)
class RepositoryAdded:
    """Our App can see this repository now."""

    where: Where


class RemovedWhy(StrEnum):
    """The ways in which a repository was lost."""

    UNINSTALLED = "uninstalled"
    DELETED = "deleted"
    TRANSFERRED = "transferred"


@dataclass(frozen=True, slots=True)
class RepositoryRemoved:
    """Our App cannot see this repository any more, as far as the provider says."""

    where: Where
    why: RemovedWhy


@dataclass(frozen=True, slots=True)
class RepositoryChanged:
    """Renamed, archived, unarchived: read it again."""

    where: Where


@dataclass(frozen=True, slots=True)
class AccessChanged:
    """An owner removed, suspended, restored or re-permitted our App, or has another name.

    Read everything of it again.
    """

    host: str
    owner_id: str
    suspended: bool


OfRepository = (
    Asked
    | ButtonPressed
    | NoticeEdited
    | LabelChanged
    | PullRequestChanged
    | CheckReported
    | CiRunEnded
    | BranchMoved
    | BranchGone
    | DefaultBranchRenamed
    | RulesChanged
    | RepositoryChanged
)
"""Signals about a repository that we should know."""

Signal = OfRepository | RepositoryAdded | RepositoryRemoved | AccessChanged


class Lost(StrEnum):
    """The losses with a delivery that never arrived.

    COMMAND: a person's words, which wait for an answer. FACT: what only slow sweeps read.
    SWEPT: what sweeps read anyway, or nothing that matters to us.
    """

    COMMAND = "command"
    FACT = "fact"
    SWEPT = "swept"


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """A delivery that did not reach us at `at`; `id` as in `Delivery`, `attempt` names the try."""

    id: str
    attempt: str
    at: datetime
    lost: Lost = Lost.FACT
