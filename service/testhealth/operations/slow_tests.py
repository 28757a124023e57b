"""The slowest tests of a repository, and shards that take about as long as one another."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid
from service.runtime import Runtime
from service.testhealth import shards
from service.testhealth.detector import figures
from service.testhealth.filters import TimeOrder
from service.testhealth.operations import records
from service.testhealth.shards import ShardPlan
from service.testhealth.store import case_times
from service.testhealth.store.case_times import Timed, TimedFile
from service.testhealth.store.listings import ListedCase
from service.testhealth.times import Times

SHARDS_MAX = 256
FILES_MAX = 50_000


class Period(NamedTuple):
    """Seven days of UTC, both included."""

    first: date
    last: date


class SlowTest(NamedTuple):
    """A test, what it took in a week, and in the week before."""

    case: ListedCase
    now: Times
    before: Times

    @property
    def trend(self) -> float | None:
        """The growth of its median since the week before, as a share; None: unknown."""
        if not (self.before.runs and self.now.runs and self.before.median_ms):
            return None
        return self.now.median_ms / self.before.median_ms - 1


@dataclass(frozen=True, slots=True)
class SlowTests:
    """The slowest tests; `count` tests have times, `now_ms` and `before_ms` are those of all.

    `period` None: no day is counted yet, and no time is known.
    """

    tests: tuple[SlowTest, ...]
    period: Period | None
    count: int = 0
    now_ms: int = 0
    before_ms: int = 0

    @property
    def total(self) -> timedelta:
        """The time of all tests in the week."""
        return timedelta(milliseconds=self.now_ms)


async def slowest(
    runtime: Runtime, repository: RepositoryRecord, order: TimeOrder, owner: str, at_most: int
) -> SlowTests:
    """Return the tests that took longest in the last week that is counted."""
    here = repository.id

    def find(session: Tx) -> SlowTests:
        period = _period(session, here)
        if period is None:
            return SlowTests((), None)
        context = records.context_of(session, runtime, repository, runtime.clock.now())
        found = case_times.slowest(session, here, order, owner, at_most)
        cases = records.described(session, context, [each.no for each in found])
        times: dict[int, Timed] = {each.no: each for each in found}
        tests = (SlowTest(case, times[case.no].now, times[case.no].before) for case in cases)
        return SlowTests(tuple(tests), period, *case_times.totals(session, here))

    return await runtime.store.read(find)


def _period(session: Tx, repository_id: int) -> Period | None:
    through = case_times.through_of(session, repository_id)
    if through is None:
        return None
    last = figures.beginning_of(through).date()
    return Period(last - timedelta(days=case_times.WEEK - 1), last)


@dataclass(frozen=True, slots=True)
class ShardsWanted:
    """A request for a plan: of these files, or of all files with tests if there are none.

    `variant` None: a file takes as long as in its slowest variant.
    """

    count: int
    files: tuple[str, ...] = ()
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedShards:
    """A plan; `note` says what of it rests on too little, empty if nothing does."""

    plan: ShardPlan
    period: Period | None
    note: str


async def plan_shards(
    runtime: Runtime, repository: RepositoryRecord, wanted: ShardsWanted
) -> PlannedShards:
    """Return the plan of shards. Raises Invalid(times_unknown) if it names no files."""

    def find(session: Tx) -> tuple[Period | None, Sequence[TimedFile]]:
        return _period(session, repository.id), case_times.files(session, repository.id)

    period, timed = await runtime.store.read(find)
    known = _seconds(timed, wanted.variant)
    files = tuple(map(_plain, wanted.files)) or tuple(known)
    if not files:
        raise Invalid(
            f"No time of a test{_of(wanted.variant)} in {repository.ref.slug} is known yet, so its "
            "files are not known either. Times are known from the day after the first uploads "
            "whose tests name files; until then name the files yourself.",
            code="times_unknown",
        )
    plan = shards.planned(files, known, wanted.count)
    return PlannedShards(plan, period, _note(plan))


def _of(variant: str | None) -> str:
    return f' of variant "{variant}"' if variant else ""


def _plain(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _seconds(timed: Sequence[TimedFile], variant: str | None) -> dict[str, float]:
    """Return the seconds that each file takes, in a variant or in its slowest one."""
    found: defaultdict[str, float] = defaultdict(float)
    for each in timed:
        if variant is None or each.variant == variant:
            found[each.file] = max(found[each.file], each.median_ms / 1000)
    return dict(found)


def _note(plan: ShardPlan) -> str:
    if not plan.known:
        return (
            "No time of these files is known: each shard gets about as many files as the others. "
            "Times are known from the day after the first uploads whose tests name files."
        )
    if not plan.unknown:
        return ""
    of = f"{plan.unknown:,} of {plan.known + plan.unknown:,} files"
    counts = f"the time of {of} is not known; each counts as {plan.assumed_s:.3g} s, the median"
    if plan.too_little_is_known:
        return f"Too little is known for a good plan: {counts}."
    return f"{counts[0].upper()}{counts[1:]}."
