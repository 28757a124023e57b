"""The first page: all queues that the reader may see, those that stand still first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.accounts import page_addresses
from service.dashboard import charts, marks
from service.dashboard.marks import Mark
from service.dashboard.queue_actions import PAUSES
from service.dashboard.visitors import Rights
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.state.holds import who_lifts
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.landing_records import LandingRecord
from service.mergequeue.operations import overview
from service.mergequeue.operations.overview import LastDay, Overview, QueueInBrief, UsualDay
from service.mergequeue.operations.page_of_queue import LeftEntry
from service.mergequeue.reasons.record import WhoMustAct
from service.mergequeue.wording import holds
from service.runtime import Options, Runtime
from service.testhealth.operations.all_tests import TestAmongOthers, WorstTest
from service.text.phrases import Phrase
from service.vocabulary import QueueRef, RepoRef

TESTS_MAX = 5
"""Tests that hurt most, on the first page."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue; `why` and `who` are about what stops it, empty while it moves.

    `merged`: how many pull requests merged on each of 14 days, the newest last. `failed` and
    `left` are of the last of them. `may_pause`: whether the visitor may pause and resume it.
    """

    slug: str
    branch: str
    home: str
    path: str
    mark: Mark
    depth: int
    not_ready: int
    running: int
    oldest: datetime | None
    merged: tuple[int, ...]
    failed: int
    left: int
    why: Phrase
    who: str
    may_pause: bool
    is_paused: bool


@dataclass(frozen=True, slots=True)
class MergedRow:
    """A pull request that merged; `name` is `widgets#441`."""

    name: str
    path: str
    entry: Entry
    proof: LandingRecord | None


@dataclass(frozen=True, slots=True)
class TestRow:
    """An unhealthy test; `runs` are its newest as letters."""

    __test__ = False

    slug: str
    path: str
    case: TestAmongOthers
    runs: str


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """The rows of one page; `next_cursor` is the token of the next page, None: there is none.

    `merged`: what merged last in these queues. `tests`: those of their repositories that hit most
    pull requests. `repositories_max`: only the visitor's access to this many repositories was read,
    since there are more; None: it was read everywhere. `usual`: what merges on such a day.
    """

    rows: tuple[QueueRow, ...]
    next_cursor: str | None
    merged: tuple[MergedRow, ...]
    tests: tuple[TestRow, ...]
    day: LastDay
    usual: str
    repositories_max: int | None = None

    @property
    def stopped(self) -> tuple[QueueRow, ...]:
        """The queues that something stops."""
        return tuple(row for row in self.rows if row.why.parts)

    @property
    def depth(self) -> int:
        """The number of pull requests in these queues."""
        return sum(row.depth for row in self.rows)

    @property
    def merged_count(self) -> tuple[int, int]:
        """The number that merged in the last 24 hours, and in the 24 hours before."""
        return sum(row.merged[-1] for row in self.rows), sum(row.merged[-2] for row in self.rows)

    @property
    def failed_count(self) -> tuple[int, int]:
        """The number that failed in the last 24 hours, and that left the queues in that time."""
        return sum(row.failed for row in self.rows), sum(row.left for row in self.rows)

    @property
    def may_pause(self) -> bool | None:
        """Return whether the visitor may pause a queue that is not paused; None: all are paused."""
        may = [row.may_pause for row in self.rows if not row.is_paused]
        return any(may) if may else None

    @property
    def heading(self) -> str:
        """`6 queues, 1 stopped, 1 paused`."""
        count = len(self.rows)
        if not count:
            return "There are no queues yet"
        first = f"{'The first ' if self.next_cursor else ''}{count} queue{'s' if count > 1 else ''}"
        words = [row.mark.word.lower() for row in self.rows if row.mark is not marks.RUNNING]
        counted = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
        return ", ".join([first, *(counted or ["all running" if count > 1 else "running"])])


def made_of(
    runtime: Runtime, rights: Rights, found: Overview, worst: Sequence[WorstTest]
) -> QueuesPage:
    """Return the page of these queues and of the worst tests of their repositories."""
    options, now = runtime.options, runtime.clock.now()
    may_pause = {each.ref.id: rights.may(each.ref.repository_id, PAUSES) for each in found.queues}
    rows = sorted(
        (_row(each, may_pause[each.ref.id], options, now) for each in found.queues),
        key=lambda row: not row.why.parts,
    )
    refs = {each.ref.repository_id: each.ref.repo for each in found.queues}
    return QueuesPage(
        rows=tuple(rows),
        next_cursor=found.next_cursor,
        merged=tuple(_merged(*each, options) for each in found.merged),
        tests=tuple(_test(each, refs[each.repository_id], options) for each in worst),
        day=found.day,
        usual=usual_words(found.usual, now),
        repositories_max=overview.REPOSITORIES_MAX if rights.is_partial else None,
    )


def usual_words(usual: UsualDay | None, now: datetime) -> str:
    """Return `usually 68 on a Thursday, the median of 4 weeks`; empty: no week is known."""
    if usual is None:
        return ""
    if usual.weeks == 1:
        return f"{charts.plain(usual.merged)} on {now:%A} last week"
    return f"usually {charts.plain(usual.merged)} on a {now:%A}, the median of {usual.weeks} weeks"


def _merged(ref: QueueRef, left: LeftEntry, options: Options) -> MergedRow:
    home, number = page_addresses.home(options, ref.repo), left.entry.pr
    path = page_addresses.pull_request(home, ref.branch, number)
    return MergedRow(f"{ref.repo.name}#{number}", path, left.entry, left.landing)


def _test(worst: WorstTest, repo: RepoRef, options: Options) -> TestRow:
    path = f"{page_addresses.home(options, repo)}/tests/{worst.case.id}"
    return TestRow(repo.slug, path, worst.case, worst.runs)


def _row(brief: QueueInBrief, may_pause: bool, options: Options, now: datetime) -> QueueRow:
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
        merged=brief.ended[EntryState.MERGED],
        failed=brief.ended[EntryState.FAILED][-1],
        left=sum(days[-1] for days in brief.ended.values()),
        why=holds.standstill(brief.value, now),
        who=marks.WHO[_who(brief)],
        may_pause=may_pause,
        is_paused=brief.value.state is QueueState.PAUSED,
    )


def _who(brief: QueueInBrief) -> WhoMustAct:
    """Return who has to act first so that the queue moves again."""
    lifting: Sequence[WhoMustAct] = [who_lifts(hold.reason) for hold in brief.value.holds]
    acting = [each for each in lifting if each is not WhoMustAct.NOBODY]
    if acting:
        return acting[0]
    is_set = brief.value.state in (QueueState.PAUSED, QueueState.DRAINING)
    return WhoMustAct.MAINTAINER if is_set else WhoMustAct.NOBODY
