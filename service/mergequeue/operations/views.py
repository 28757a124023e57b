"""The values that operations return; no rows.

`api/responses.py` turns them into the API's JSON, `wording` into sentences, the command line into
tables.
"""

from dataclasses import dataclass, field
from datetime import datetime

from service.mergequeue.conflict_pairs import Foreseen
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.culprits.failing import Failing
from service.mergequeue.engine.explaining.acting import Acting
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Entry, Hold, MergeQueue, RequiredSet, Run
from service.mergequeue.engine.outputs import Recorded
from service.mergequeue.engine.states import RunStatus
from service.mergequeue.wording.failed_tests import KilledRunner
from service.mergequeue.wording.next_steps import DescribedStep
from service.mergequeue.wording.situation import PullRequestText, Tables
from service.text.times import TimeLeft
from service.troubles import Trouble
from service.vocabulary import Health, QueueRef


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a submission."""

    at: datetime
    cause: str | None
    merged_sha: str | None
    run: str | None
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event of a submission; `sequence` runs 1, 2, 3 … without gaps."""

    sequence: int
    recorded: Recorded


@dataclass(frozen=True, slots=True)
class PullRequestView:
    """The record of a pull request.

    `position` is 1-based, None in NOT_READY and final states. `run` is the present or last
    run once its test branch is built. `has_targets`: impacted targets of this head are known.
    `acting` is None once it has ended; `stop` says in plain sentences what of the queue stops it,
    `failing` which required statuses failed in its run, which is not decided yet. The checks of
    the run `judged_by` count for one that has passed or has ended;
    `tables` are the checks of each run in its timeline.
    While nothing of it changes the same object is answered again.
    """

    queue: QueueRef
    entry: Entry
    config: QueueConfig
    position: int | None
    length: int
    eta: TimeLeft | None
    conclusion: Conclusion | None
    run: str | None
    has_targets: bool
    pull_request_url: str
    acting: Acting | None = None
    stop: str = ""
    failing: Failing | None = None
    judged_by: Run | None = None
    timeline: tuple[TimelineEvent, ...] | None = None
    tables: Tables = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue with its effective requirements and every entry that is not final, in order.

    `if_submitted` is when a pull request would merge that is submitted now; None: unknown.
    """

    queue: QueueRef
    value: MergeQueue
    required: RequiredSet
    entries: tuple[PullRequestView, ...]
    if_submitted: TimeLeft | None = None

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Holds in force."""
        return self.value.holds


@dataclass(frozen=True, slots=True)
class TestedPullRequest:
    """One pull request under test."""

    __test__ = False
    number: int
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that failed in a run; `excused`: only quarantined ones did, and the run passed.

    `is_new_text`: it is quarantined and failed in a way that was not seen before.
    """

    id: str
    name: str
    status: Health
    excused: bool
    is_new_text: bool = False


@dataclass(frozen=True, slots=True)
class TestingView:
    """One test run for `/getMergeQueueTestingDetails`; targets None: none were uploaded.

    `status` is failed as soon as a required status has failed, before the run is decided. `checked`
    is the evidence for each required status.
    """

    __test__ = False
    run: Run
    status: RunStatus
    tested: tuple[TestedPullRequest, ...]
    suites: tuple[str, ...]
    vehicle_number: int | None
    commit_url: str
    impacted: tuple[str, ...] | None
    impacted_tested: tuple[str, ...] | None
    waiting_on: tuple[int, ...]
    missing: tuple[str, ...]
    failed: tuple[str, ...]
    failed_tests: tuple[FailedTest, ...]
    checked: tuple[CheckedName, ...] = ()
    killed: tuple[KilledRunner, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainView:
    """The explanation of why a pull request is not merged yet (`/explainPullRequest`).

    `text` is what its comment is made from: the checks and tests of its run, and its history.
    `step` is what a program does next. `troubles` keep the process from working for it; of an ended
    one there are none.
    """

    pull_request: PullRequestView
    explained: Explained
    ahead: tuple[int, ...]
    behind: tuple[int, ...]
    depends_on: tuple[int, ...]
    required: RequiredSet
    text: PullRequestText
    step: DescribedStep
    conflicts: Foreseen | None = None
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A submission after a command, and what the command did.

    `result`: created, updated or unchanged; of a restart: restarted or not_needed.
    """

    view: PullRequestView
    result: str
