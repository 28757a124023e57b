"""What a text about one pull request is made of; `service.mergequeue.operations` fills it in."""

from dataclasses import dataclass
from datetime import datetime

from service.mergequeue.engine.explain import Explained
from service.mergequeue.engine.model import Bisection, Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import Recorded
from service.mergequeue.wording import failed_tests, situation
from service.mergequeue.wording.failed_tests import FailedTests
from service.mergequeue.wording.situation import Situation
from service.text.markdown import Links
from service.text.times import TimeLeft


@dataclass(frozen=True, slots=True)
class PullRequestText:
    """One submission with its queue, as it is at `now`.

    `entry` is the live or the final one, `run` its live run, else the last one it had.
    `position` is 1-based, None where it has no place. `history` holds, oldest first, the
    events of this submission, those of its runs and of the searches among them. `version` is
    Headgate's own. `tests` are those that failed in that run.
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
    tests: FailedTests = failed_tests.NONE

    @property
    def situation(self) -> Situation:
        """Where the entry stands and why."""
        return situation.situation_of(self.entry, self.queue, self.history)

    @property
    def search(self) -> Bisection | None:
        """The search for the cause of its failure, while there is one."""
        return self.queue.bisections.get(self.entry.bisection or "")

    @property
    def unit(self) -> tuple[int, ...]:
        """Whom it is merged together with: verified by the same run, in order of the line."""
        run = self.entry.verified_by
        mates = [one for one in self.queue.entries.values() if run and one.verified_by == run]
        mates.sort(key=lambda one: one.rank or 0)
        return tuple(one.pr for one in mates if one.pr != self.entry.pr)
