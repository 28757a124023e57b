"""The rules of an audit, and what it finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum


class Weight(IntEnum):
    """The weights of findings."""

    NOTE = 0
    UNKNOWN = 1
    FAULT = 2


class Rule(Enum):
    """The rules of an audit: the weight of a finding, and the sentence that it breaks."""

    weight: Weight
    sentence: str

    def __new__(cls, weight: Weight, sentence: str) -> "Rule":
        """Take the weight and the sentence; the member's name in small letters is the rule's."""
        made = object.__new__(cls)
        made._value_ = (weight, sentence)
        made.weight = weight
        made.sentence = sentence
        return made

    @property
    def title(self) -> str:
        """The name by which output and pages speak of the rule."""
        return self.name.lower()

    # Landings and the branch.
    LANDING_WITHOUT_COMMIT = Weight.FAULT, "A landing that is recorded as landed names its commit."
    LANDING_NOT_ON_BRANCH = (
        Weight.FAULT,
        "The commit of a landing is in the first-parent history of the target.",
    )
    TREE_DIFFERS = Weight.FAULT, "The landed commit has the tree that was tested."
    CHANGE_DIFFERS = (
        Weight.FAULT,
        "A landing beside other lanes brings exactly the change that was tested.",
    )
    PARENT_DIFFERS = Weight.FAULT, "A landing stands on the commit that its permit named."
    HEAD_DIFFERS = Weight.FAULT, "A merge commit merges the head that was tested."
    ORDER_DIFFERS = Weight.FAULT, "Landings follow each other on the branch as they were recorded."
    LANDED_TWICE = Weight.FAULT, "A pull request lands once with one head."
    COMMIT_LANDED_TWICE = Weight.FAULT, "A commit lands one pull request."
    COMMIT_WITHOUT_LANDING = (
        Weight.FAULT,
        "A commit that says it is of Headgate, or that its App made, has a landing.",
    )
    PUSHED_PAST_THE_QUEUE = Weight.NOTE, "Other commits came onto the target past the queue."
    MERGED_BY_HAND = Weight.NOTE, "A queued pull request was merged past the queue."
    LANDED_UNRECORDED = (
        Weight.NOTE,
        "A landing by Headgate that it has no record of, as after a restored backup.",
    )
    LANDED_UNPROVED = Weight.NOTE, "A landing without a proof held the queue for a person."
    CLONE_IS_BEHIND = Weight.UNKNOWN, "The repository that was read has the landed commit."
    CHANGE_UNKNOWN = (
        Weight.UNKNOWN,
        "The trees of a landing beside other lanes are in the repository that was read.",
    )
    NO_GIT = Weight.UNKNOWN, "There is a repository to compare the landings with."
    # Landings and rows.
    MERGED_WITHOUT_LANDING = Weight.FAULT, "A submission that Headgate merged has a landing."
    LANDED_WITHOUT_MERGED = Weight.FAULT, "The submission of a landing is MERGED."
    LANDED_COMMIT_DIFFERS = Weight.FAULT, "A submission and its landing name the same commit."
    PERMIT_OF_ENDED_RUN = Weight.FAULT, "An open permit belongs to a run that is under way."
    TWO_OPEN_PERMITS = Weight.FAULT, "A queue has one landing in flight."
    PERMIT_WITHOUT_LANDING = Weight.FAULT, "An open permit belongs to the landing in flight."
    LANDING_WITHOUT_ROWS = Weight.FAULT, "The landing in flight has rows."
    # Evidence.
    EVIDENCE_MISSING = Weight.FAULT, "A landing has signed evidence, once a landing before it has."
    EVIDENCE_REFUTED = (
        Weight.FAULT,
        "Signed evidence is as it was signed, by a key of this service.",
    )
    EVIDENCE_DIFFERS = Weight.FAULT, "Signed evidence says what the rows and git say."
    EVIDENCE_WITHOUT_LANDING = Weight.FAULT, "Signed evidence belongs to a landing."
    EVIDENCE_WAITS = Weight.NOTE, "Evidence waits for the key that signs it."
    # Rows.
    ENDED_BUT_LIVE = Weight.FAULT, "A submission is in the queue exactly while its state is no end."
    ENDED_IN_LIVE_RUN = Weight.FAULT, "A submission that has ended has no run under way."
    RUN_MISSING = Weight.FAULT, "A submission under test has the run that it names."
    RUN_DISAGREES = Weight.FAULT, "A submission has passed exactly if its run has."
    TWO_LIVE_ENTRIES = Weight.FAULT, "A pull request is in a queue once."
    TWO_OF_ONE_RANK = Weight.FAULT, "A place in the line belongs to one submission."
    MEMBER_WITHOUT_ENTRY = Weight.FAULT, "A run under way tests submissions that are there."
    DELETED_BUT_LIVE = Weight.FAULT, "A deleted queue has neither submissions nor runs."
    SENT_WITHOUT_INSTANCE = Weight.FAULT, "An effect that is being sent belongs to an instance."
    EFFECT_OPEN_OR_ENDED = Weight.FAULT, "An effect is open exactly until it has an end."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, about a pull request, a commit or a run where there is one."""

    rule: Rule
    text: str
    pr: int | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """The result for one queue: how many landings were recomputed, what was found, worst first."""

    queue: str
    place: str
    landings: int
    commits: int
    findings: tuple[Finding, ...]

    @property
    def weight(self) -> Weight:
        """The weight of the worst finding; NOTE without any."""
        return worst(self.findings)


def worst(findings: Iterable[Finding]) -> Weight:
    """Return the weight of the worst finding; NOTE without any."""
    return max((each.rule.weight for each in findings), default=Weight.NOTE)
