"""The first page: all queues that the reader may see, those that stand still first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts import page_addresses
from service.dashboard import marks
from service.dashboard.marks import Mark
from service.mergequeue.engine.reasons import WhoMustAct
from service.mergequeue.engine.state.holds import who_lifts
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations.overview import Overview, QueueInBrief
from service.mergequeue.wording import holds
from service.runtime import Options
from service.text.phrases import Phrase


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue; `why` and `who` are about what stops it, empty while it moves."""

    slug: str
    branch: str
    home: str
    path: str
    mark: Mark
    depth: int
    not_ready: int
    running: int
    oldest: datetime | None
    merged: int
    failed: int
    last_merged: tuple[int, datetime] | None
    why: Phrase
    who: str


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """The rows of one page; `next_after` is the query of the next page, empty: there is none."""

    rows: tuple[QueueRow, ...]
    next_after: str

    @property
    def stopped(self) -> tuple[QueueRow, ...]:
        """The queues that something stops."""
        return tuple(row for row in self.rows if row.why.parts)

    @property
    def depth(self) -> int:
        """The number of pull requests in these queues."""
        return sum(row.depth for row in self.rows)

    @property
    def heading(self) -> str:
        """`6 queues, 1 stopped, 1 paused`."""
        count = len(self.rows)
        if not count:
            return "There are no queues yet"
        first = f"{'The first ' if self.next_after else ''}{count} queue{'s' if count > 1 else ''}"
        words = [row.mark.word.lower() for row in self.rows if row.mark is not marks.RUNNING]
        counted = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
        return ", ".join([first, *(counted or ["all running" if count > 1 else "running"])])


def made_of(overview: Overview, options: Options, now: datetime) -> QueuesPage:
    """Return the page of these queues."""
    rows = sorted(
        (_row(each, options, now) for each in overview.queues), key=lambda row: not row.why.parts
    )
    after = overview.next_after
    return QueuesPage(tuple(rows), "" if after is None else f"{after[0]}/{after[1]}")


def _row(brief: QueueInBrief, options: Options, now: datetime) -> QueueRow:
    home = page_addresses.home(options, brief.ref.repo)
    is_main = options.main_host in (None, brief.ref.repo.host)
    slug = brief.ref.repo.slug
    return QueueRow(
        slug=slug if is_main else f"{brief.ref.repo.host}/{slug}",
        branch=brief.ref.branch,
        home=home,
        path=page_addresses.queue(home, brief.ref.branch),
        mark=marks.of_queue(brief.value),
        depth=brief.depth,
        not_ready=brief.counts[EntryState.NOT_READY],
        running=brief.running,
        oldest=brief.oldest,
        merged=brief.merged,
        failed=brief.failed,
        last_merged=brief.last_merged,
        why=holds.standstill(brief.value, now),
        who=marks.WHO[_who(brief)],
    )


def _who(brief: QueueInBrief) -> WhoMustAct:
    """Return who has to act first so that the queue moves again."""
    lifting: Sequence[WhoMustAct] = [who_lifts(hold.reason) for hold in brief.value.holds]
    acting = [each for each in lifting if each is not WhoMustAct.NOBODY]
    if acting:
        return acting[0]
    is_set = brief.value.state in (QueueState.PAUSED, QueueState.DRAINING)
    return WhoMustAct.MAINTAINER if is_set else WhoMustAct.NOBODY
