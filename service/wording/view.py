"""What a text about one pull request is made of; `service.operations` fills it in."""

from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.explain import Explained
from service.mergequeue.model import Entry, MergeQueue, Run
from service.mergequeue.outputs import Recorded
from service.wording import situation
from service.wording.markdown import Links
from service.wording.situation import Situation
from service.wording.times import TimeLeft


@dataclass(frozen=True, slots=True)
class PullRequestText:
    """One submission with its queue, as it is at `now`.

    `entry` is the live or the final one, `run` its live run, else the last one it had.
    `position` is 1-based, None where it has no place. `history` holds, oldest first, the
    events of this submission and, of its runs, `RunStarted`, `RunRetried`, `RunFinished` and
    `LandingHalted`. `version` is Headgate's own.
    """

    queue: MergeQueue
    entry: Entry
    explained: Explained
    run: Run | None
    position: int | None
    length: int
    left: TimeLeft | None
    history: tuple[Recorded, ...]
    links: Links
    now: datetime
    version: str

    @property
    def situation(self) -> Situation:
        """Where the entry stands and why."""
        return situation.situation_of(self.entry, self.queue, self.history)
