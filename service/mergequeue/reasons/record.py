"""The shape of a record: what Headgate knows and says of a reason, a hold or a verdict cause.

A sentence is a template of `service/text/phrases.py:filled`. The packages above know its places.
"""

from dataclasses import KW_ONLY, dataclass
from enum import Enum, StrEnum, auto

from service.vocabulary import BlockerCode


class WhoMustAct(StrEnum):
    """The party whose move it is."""

    NOBODY = "nobody"
    AUTHOR = "author"
    MAINTAINER = "maintainer"
    OPERATOR = "operator"


NOBODY, AUTHOR = WhoMustAct.NOBODY, WhoMustAct.AUTHOR
MAINTAINER, OPERATOR = WhoMustAct.MAINTAINER, WhoMustAct.OPERATOR


class StepKind(StrEnum):
    """The kinds of what a program does next about a pull request (docs/design/next-steps.md 1)."""

    SUBMIT = "SUBMIT"
    WAIT = "WAIT"
    FIX = "FIX"
    REBASE = "REBASE"
    RESUBMIT = "RESUBMIT"
    SUPERSEDED = "SUPERSEDED"
    DROP = "DROP"
    ASK = "ASK"
    DONE = "DONE"


WAIT, FIX, REBASE, ASK = StepKind.WAIT, StepKind.FIX, StepKind.REBASE, StepKind.ASK
SUBMIT, RESUBMIT, SUPERSEDED = StepKind.SUBMIT, StepKind.RESUBMIT, StepKind.SUPERSEDED
DROP, DONE = StepKind.DROP, StepKind.DONE


class Blame(Enum):
    """The things that a reason blames a pull request for."""

    NOTHING = auto()
    TESTS = auto()
    CONFLICT = auto()


class Listed(Enum):
    """The listing of a condition: while it is open; in answers of the API, always; everywhere."""

    OPEN = auto()
    IN_ANSWERS = auto()
    ALWAYS = auto()


class Grace(Enum):
    """The time for which an unready entry keeps its place (docs/design/engine.md 5).

    NONE: people have decided that it must not land now, so what is behind it does not wait for
    them to decide again. IN_A_RUN: one that is not in a run leaves the line at once.
    """

    USUAL = auto()
    IN_A_RUN = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The need of an entry while the reason is open.

    `goal` is a clause that is true once it is met, `brief` the same in a few words. `step` is what
    brings it about, and `met` the clause when it is met or was never in question; both are the goal
    where they are empty. `blocker` is the provider's word for it, `is_named` if that names a check,
    a rule or the like. `follows_rules`: unknown while the rules of the branch are. Conditions of
    a higher `rank` are shown after the others. `is_patient`: the queue waits for it without limit
    (docs/design/rules.md 2).
    """

    goal: str
    brief: str
    step: str = ""
    met: str = ""
    blocker: BlockerCode | None = None
    is_named: bool = False
    listed: Listed = Listed.IN_ANSWERS
    grace: Grace = Grace.USUAL
    follows_rules: bool = False
    rank: int = 0
    is_patient: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """Why a tested entry is set aside, and what somebody can do about it, in whole sentences.

    `is_for_ci`: it waits until CI may have recovered.
    """

    clause: str
    step: str
    is_for_ci: bool = False


class Ender(Enum):
    """The origin of an end: a command, another act of a person, the provider, the queue, CI."""

    COMMAND = auto()
    PERSON = auto()
    PROVIDER = auto()
    QUEUE = auto()
    CI = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a submission ended, as a clause, as a label of statistics, and what to do next.

    `note` is what the status comment says beside the clause.
    `is_announced`: a comment of its own says it, because it happened without those who follow the
    pull request. `may_return`: the same pull request can be queued again by a button.
    `is_only_seen`: the provider shows it, and no landing of the queue proves it.
    """

    clause: str
    label: str = ""
    next: str = ""
    note: str = ""
    by: Ender = Ender.QUEUE
    is_announced: bool = False
    may_return: bool = True
    is_only_seen: bool = False


class RefusalKind(Enum):
    """The faults of a refused command: its values, the state of things, its object, a budget."""

    INVALID = auto()
    CONFLICT = auto()
    MISSING = auto()
    LIMITED = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused command and what to do, in whole sentences."""

    text: str
    kind: RefusalKind = RefusalKind.INVALID


TESTED_AGAIN = "to be tested again because "


@dataclass(frozen=True, slots=True)
class Record:
    """One reason: its code and all that follows from it.

    `next` is what a program does about a pull request that waits for it, ended by it or was refused
    for it (docs/design/next-steps.md 2); `pause_min`: it submits again no earlier than after so
    many minutes.
    `word` is the word in messages where it is not the code (docs/design/notifications.md 1).
    `retryable`: submitting again unchanged may help. The clauses say why an entry is in a state; a
    reason of several states has several. `pending` follows `pending_lead`; an empty lead means that
    its tests are yet to begin. `undecided` is what failed while the cause is searched. `evidence`
    is the engine's note about an entry that left. `mark`: how the checks in its evidence are
    listed.
    """

    code: str
    _: KW_ONLY
    next: StepKind
    pause_min: int = 0
    who: WhoMustAct = NOBODY
    word: str = ""
    retryable: bool = False
    blame: Blame = Blame.NOTHING
    submitted: str = ""
    need: Need | None = None
    aside: Aside | None = None
    pending: str = ""
    pending_lead: str = TESTED_AGAIN
    testing: str = ""
    passed: str = ""
    undecided: str = ""
    failed: Ending | None = None
    cancelled: Ending | None = None
    merged: Ending | None = None
    refused: Refusal | None = None
    evidence: str = ""
    mark: tuple[str, str] | None = None

    @property
    def wire(self) -> str:
        """The word in messages."""
        return self.word or self.code.upper()

    @property
    def blames(self) -> bool:
        """Return whether it blames the pull request."""
        return self.blame is not Blame.NOTHING


class HoldScope(StrEnum):
    """The parts of a queue that a hold stops."""

    START = "START"
    LAND = "LAND"
    BOTH = "BOTH"


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """One hold: who must act, its default scope, who may lift it, and its sentences.

    `next` is what a program does about a pull request that it keeps from going on.
    `is_breaker`: single pull requests are tested under it. `is_own_stop`: the queue stopped itself,
    other than for a person or a start of Headgate. `quotes_note`: what the queue noted follows the
    sentences.
    """

    code: str
    _: KW_ONLY
    next: StepKind
    text: str
    who: WhoMustAct = OPERATOR
    scope: HoldScope = HoldScope.BOTH
    is_lifted_by_person: bool = False
    is_breaker: bool = False
    is_own_stop: bool = True
    quotes_note: bool = True


@dataclass(frozen=True, slots=True)
class CauseRecord:
    """One verdict cause and the sentence about the pull request.

    `is_outside`: retried, never counted against the pull request. `blames_one`: said of the only
    pull request of a run.
    """

    code: str
    text: str
    _: KW_ONLY
    is_outside: bool = False
    blames_one: bool = False
