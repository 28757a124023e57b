"""The health of a queue: where time goes, what merges, what leaves and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from service.accounts import page_addresses
from service.accounts.tenants import RepositoryRecord
from service.dashboard import page_of_lists, page_of_queues
from service.dashboard.charts import Chart, Series, day_label, duration
from service.errors import Malformed
from service.mergequeue.engine.explaining.rates import ASSUMED, MINUTE_S
from service.mergequeue.operations import overview, queue_access, statistics
from service.mergequeue.operations.statistics import Bucket, Part, Statistics
from service.mergequeue.wording import endings
from service.runtime import Runtime

SPANS: Mapping[str, int] = {"24h": 1, "7d": 7, "30d": 30, "90d": 90}
DEFAULT = "7d"

PARTS: Mapping[Part, tuple[str, str]] = {
    Part.TO_ENTER: ("to enter the queue", "wait"),
    Part.FOR_A_SLOT: ("for a test slot", "odd"),
    Part.TESTING: ("testing", "test"),
    Part.FOR_OTHERS_AHEAD: ("for pull requests ahead", "good"),
    Part.AGAIN: ("testing again", "bad"),
    Part.PAUSED: ("paused", "shield"),
}
"""The name and color of each part, in the order of the stack."""


class Cause(NamedTuple):
    """Why pull requests left without merging, how many, and the width of its bar in percent.

    `link` is the address of their list.
    """

    label: str
    total: int
    width: int
    link: str


@dataclass(frozen=True, slots=True)
class HealthPage:
    """The statistics of a queue over a span, as figures and charts.

    `usual`: what merges on such a day, in words; empty for other spans than a day, and if no week
    is known.
    """

    branch: str
    span: str
    numbers: Statistics
    usual: str

    @property
    def heading(self) -> str:
        """`Half of the pull requests merge within 21 min`."""
        median = self.numbers.time_to_merge_p50_s
        if median is None:
            return "Nothing merged in this time"
        return f"Half of the pull requests merge within {duration(median)}"

    @property
    def rates(self) -> str:
        """`1.9 % of test runs flake, 3.0 % of pull requests conflict, unit takes 12 min`."""
        rates = self.numbers.rates
        words = [f"{_percent(rates.flake)} of test runs flake"]
        words.append(f"{_percent(rates.conflict)} of pull requests conflict")
        words.append(f"{_percent(rates.foreseen)} of failures are foreseen")
        if rates.minutes:
            slowest = max(rates.minutes, key=rates.minutes.__getitem__)
            words.append(f"{slowest} takes {duration(rates.minutes[slowest] * MINUTE_S)}")
        return ", ".join(words)

    @property
    def rates_are_assumed(self) -> bool:
        """Return whether its own runs have moved none of them."""
        return replace(self.numbers.rates, minutes={}) == ASSUMED

    @property
    def ejections(self) -> tuple[Cause, ...]:
        """Why pull requests left without merging, the most frequent first."""
        counts = self.numbers.ejections
        most = max(counts.values(), default=1)
        return tuple(
            Cause(
                endings.label(reason),
                count,
                max(1, count * 100 // most),
                self.pulls(reason=reason.value),
            )
            for reason, count in counts.items()
        )

    def pulls(self, **given: str) -> str:
        """Return the address of the pull requests that left in the time shown."""
        return page_of_lists.address("pulls", **given, **self._whole)

    @property
    def test_runs(self) -> str:
        """The address of the test runs that finished in the time shown."""
        return page_of_lists.address("runs", **self._whole)

    @property
    def _whole(self) -> Mapping[str, str]:
        buckets = self.numbers.buckets
        return page_of_lists.in_span(buckets[0].start, buckets[-1].end)

    def _links(self, page: str, **given: str) -> list[str]:
        """Return the addresses of what ended in each bucket."""
        spans = (page_of_lists.in_span(each.start, each.end) for each in self.numbers.buckets)
        return [page_of_lists.address(page, **given, **span) for span in spans]

    def _links_at_end(self, page: str) -> list[str]:
        """Return the addresses of what was there at the end of each bucket."""
        ends = (page_of_lists.at_time(each.end) for each in self.numbers.buckets)
        return [page_of_lists.address(page, **end) for end in ends]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in the order of the page."""
        buckets = self.numbers.buckets
        labels = [self._label(each) for each in buckets]
        per = "hour" if self.span == "24h" else "day"
        return (*self._charts_of_time(labels, per), *self._charts_of_counts(labels, per))

    def _charts_of_time(self, labels: Sequence[str], per: str) -> tuple[Chart, ...]:
        buckets, merged = self.numbers.buckets, self._links("pulls", state="merged")
        p50 = [each.time_to_merge_p50_s for each in buckets]
        p95 = [each.time_to_merge_p95_s for each in buckets]
        return (
            Chart(
                f"Time to merge by the {per} of the merge",
                "From the submission to the merge. A growing gap between both lines means that "
                "some pull requests are tested several times.",
                labels,
                [
                    Series("half within", "test", p50, merged),
                    Series("95 % within", "odd", p95, merged),
                ],
                is_lines=True,
                is_time=True,
            ),
            Chart(
                "Where the time goes, mean of what merged",
                "Much waiting for a slot: more slots or batches help. Much testing again: "
                "failures and restarts cost most.",
                labels,
                [
                    Series(name, color, [each.parts_s.get(part, 0.0) for each in buckets], merged)
                    for part, (name, color) in PARTS.items()
                ],
                is_time=True,
            ),
        )

    def _charts_of_counts(self, labels: Sequence[str], per: str) -> tuple[Chart, ...]:
        buckets, links = self.numbers.buckets, self._links
        depth = [each.depth for each in buckets]
        running = [each.runs_in_progress for each in buckets]
        per_merge = [round(one.runs / one.merged, 2) if one.merged else None for one in buckets]
        return (
            Chart(
                f"Pull requests that left the queue per {per}",
                "Red growing with violet is normal. Red growing alone is a broken test or branch.",
                labels,
                [
                    Series(state, color, values, links("pulls", state=state))
                    for state, color, values in (
                        ("merged", "done", [each.merged for each in buckets]),
                        ("failed", "bad", [each.failed for each in buckets]),
                        ("removed", "wait", [each.removed for each in buckets]),
                    )
                ],
            ),
            Chart(
                "Test runs per merge",
                "Batches lower it, failures and restarts raise it. 1 is one run for each merge.",
                labels,
                [Series("runs per merge", "test", per_merge, links("runs"))],
                is_lines=True,
            ),
            Chart(
                f"Depth against slots at the end of each {per}",
                "If more pull requests wait than there are slots all day, add slots.",
                labels,
                [
                    Series("in the queue", "wait", depth, self._links_at_end("pulls")),
                    Series("test runs", "test", running, self._links_at_end("runs")),
                    Series("slots now", "done", [self.numbers.concurrency] * len(buckets)),
                ],
                is_lines=True,
            ),
        )

    def _label(self, bucket: Bucket) -> str:
        if self.span == "24h":
            return f"{bucket.start:%H}:00 UTC"
        return day_label(bucket.start.date())


async def read(
    runtime: Runtime, repository: RepositoryRecord, segment: str, query: Mapping[str, str]
) -> HealthPage:
    """Return the page. Raises NotFound(queue_not_found), Malformed for an unknown span."""
    span = query.get("span", DEFAULT)
    if span not in SPANS:
        raise Malformed(f"`span` takes one of {', '.join(SPANS)}.")
    branch = page_addresses.branch_of(segment)
    queue = await queue_access.queue_in(runtime, repository, branch)
    numbers = await statistics.load_statistics(runtime, queue, SPANS[span])
    usual = await overview.usual_day_of(runtime, queue) if SPANS[span] == 1 else None
    words = page_of_queues.usual_words(usual, runtime.clock.now())
    return HealthPage(branch, span, numbers, words)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
