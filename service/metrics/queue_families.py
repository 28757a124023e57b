"""The families of queues: docs/reference/metrics.md as a table, and a queue's samples as text.

`mq_…` speak of now and of the last hour; `headgate_…` are what Prometheus expects: counters and
histograms that only grow. Sums of both are made from the same facts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from service.metrics import exposition
from service.metrics.facts import (
    BOUNDS_S,
    ROLLING_BOUNDS_S,
    Cells,
    Histogram,
    Labels,
    Samples,
    Value,
)


class Kind(StrEnum):
    """Kinds of facts, with the labels that each carries."""

    SUBMITTED = "submitted"  # channel
    LEFT = "left"  # queue_type, conclusion, reason; its whole stay
    RESTARTED = "restarted"  # queue_type, reason
    WAITED = "waited"  # queue_type
    TESTED = "tested"  # queue_type
    STAYED_IN = "stayed_in"  # queue_type, state
    RUN = "run"  # queue_type, status, cause
    REUSED = "reused"
    LANDING = "landing"  # result
    MISMATCH = "mismatch"
    EXTERNAL = "external"


ROLLING = frozenset({Kind.LEFT, Kind.RESTARTED, Kind.WAITED, Kind.TESTED, Kind.STAYED_IN})
"""Kinds that are remembered for an hour."""

LASTING = frozenset(Kind) - {Kind.STAYED_IN}
"""Kinds that are added up for ever."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family: its name, type and text, and its labels beside those of the queue.

    `of` is the kind of facts that it sums, None where the queue's present value says it; `by`
    are the places of its labels among the fact's.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    of: Kind | None = None
    by: tuple[int, ...] = ()

    @property
    def is_rolling(self) -> bool:
        """Return whether it is of the page's first table."""
        return self.name.startswith("mq_")

    @property
    def bounds_s(self) -> Sequence[int]:
        """Upper bounds of its buckets."""
        return ROLLING_BOUNDS_S if self.is_rolling else BOUNDS_S


GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
SLIDES = " Of a window that slides: it may fall, and rate() of it means nothing."
_TYPE = ("queue_type",)
_OLDEST = "headgate_queue_oldest_pull_request_age_seconds"

# Name, type, labels, HELP; then what it sums and by which of the fact's labels.
_ROWS: tuple[tuple[str, str, tuple[str, ...], str, Kind | None, tuple[int, ...]], ...] = (
    (
        "mq_depth_current",
        *(GAUGE, _TYPE, "Pull requests in the queue, those not ready excluded.", None, ()),
    ),
    (
        "mq_awaiting_mergeability",
        *(GAUGE, _TYPE, "Pull requests not ready yet.", None, ()),
    ),
    (
        "mq_testing_slots_active",
        *(GAUGE, _TYPE, "Test runs in progress.", None, ()),
    ),
    (
        "mq_pr_conclusions_1h_total",
        *(GAUGE, (*_TYPE, "conclusion"), "Pull requests that left in the last hour."),
        *(Kind.LEFT, (0, 1)),
    ),
    (
        "mq_pr_restarts_1h_total",
        *(GAUGE, _TYPE, "Returns from testing to pending in the last hour."),
        *(Kind.RESTARTED, (0,)),
    ),
    (
        "mq_pr_wait_duration_1h_seconds",
        *(HISTOGRAM, _TYPE, "Time pending before testing, waits ended in the last hour."),
        *(Kind.WAITED, (0,)),
    ),
    (
        "mq_pr_test_duration_1h_seconds",
        *(HISTOGRAM, _TYPE, "Time testing, tests ended in the last hour."),
        *(Kind.TESTED, (0,)),
    ),
    (
        "mq_pr_time_in_queue_1h_seconds",
        *(HISTOGRAM, (*_TYPE, "conclusion")),
        "Whole stay without time not ready, stays ended in the last hour.",
        *(Kind.LEFT, (0, 1)),
    ),
    (
        "mq_pr_state_duration_1h_seconds",
        *(HISTOGRAM, (*_TYPE, "state"), "Time in one state, states left in the last hour."),
        *(Kind.STAYED_IN, (0, 1)),
    ),
    (
        "headgate_queue_state",
        *(GAUGE, ("state",), "1 for the present queue state.", None, ()),
    ),
    (
        "headgate_queue_held",
        *(GAUGE, ("reason",), "1 while such a hold is in force.", None, ()),
    ),
    (
        "headgate_queue_pull_requests",
        *(GAUGE, ("state",), "Pull requests by state.", None, ()),
    ),
    (_OLDEST, *(GAUGE, (), "Age of the oldest ready pull request.", None, ())),
    (
        "headgate_test_slots",
        *(GAUGE, _TYPE, "Test runs allowed at once.", None, ()),
    ),
    (
        "headgate_test_slots_in_use",
        *(GAUGE, _TYPE, "Test runs in progress.", None, ()),
    ),
    (
        "headgate_pull_requests_submitted_total",
        *(COUNTER, ("channel",), "Submissions accepted.", Kind.SUBMITTED, (0,)),
    ),
    (
        "headgate_pull_requests_left_total",
        *(COUNTER, ("conclusion", "reason"), "Pull requests that left the queue."),
        *(Kind.LEFT, (1, 2)),
    ),
    (
        "headgate_pull_request_restarts_total",
        *(COUNTER, ("reason",), "Returns from testing to pending.", Kind.RESTARTED, (1,)),
    ),
    (
        "headgate_test_runs_total",
        *(COUNTER, (*_TYPE, "status", "cause"), "Test runs finished.", Kind.RUN, (0, 1, 2)),
    ),
    (
        "headgate_test_runs_reused_total",
        *(COUNTER, (), "Runs passed by an earlier result of the same tree.", Kind.REUSED, ()),
    ),
    (
        "headgate_landings_total",
        *(COUNTER, ("result",), "Attempts to land.", Kind.LANDING, (0,)),
    ),
    (
        "headgate_landing_proof_mismatches_total",
        *(COUNTER, (), "Landings whose tree was not the tested tree.", Kind.MISMATCH, ()),
    ),
    (
        "headgate_external_merges_total",
        *(COUNTER, (), "Changes of the target branch by others.", Kind.EXTERNAL, ()),
    ),
    (
        "headgate_wait_duration_seconds",
        *(HISTOGRAM, (), "Time pending before testing.", Kind.WAITED, ()),
    ),
    (
        "headgate_test_duration_seconds",
        *(HISTOGRAM, _TYPE, "Time testing.", Kind.TESTED, (0,)),
    ),
    (
        "headgate_time_in_queue_seconds",
        *(HISTOGRAM, ("conclusion",), "Whole stay without time not ready.", Kind.LEFT, (1,)),
    ),
)

FAMILIES: tuple[Family, ...] = tuple(
    Family(name, kind, labels, text + (SLIDES if "_1h_" in name else ""), of, by)
    for name, kind, labels, text, of, by in _ROWS
)
"""Every family of a queue, in the order of the page."""

PLACES_MAX = 1_000
"""Queues whose names in labels are kept."""

OLDEST = next(place for place, family in enumerate(FAMILIES) if family.name == _OLDEST)
"""The one family whose values change with the clock alone, and are written last."""

TOKENS_EXPIRING = Family(
    "headgate_tokens_expiring", GAUGE, (), "Tokens that expire within 14 days."
)

Zeros = Mapping[str, tuple[Labels, ...]]
"""Family → every series that a queue shows from its first day on."""


@dataclass(frozen=True, slots=True)
class QueueLabels:
    """The labels that name a queue: `mq_repo` has the host where the organization has several."""

    mq_repo: str
    host: str
    repo: str
    branch: str

    def labels(self, family: Family) -> str:
        """The labels with which each of the queue's series begins."""
        if family.is_rolling:
            return exposition.labels_text(("repo", "branch"), (self.mq_repo, self.branch))
        values = (self.host, self.repo, self.branch)
        return exposition.labels_text(("host", "repo", "branch"), values)


def samples(present: Samples, hour: Cells, ever: Cells, zeros: Zeros) -> Samples:
    """All that a queue shows: its present, and the sums of its facts with their zeros."""
    found = dict(present)
    for family in FAMILIES:
        if family.of is not None:
            cells = hour if family.is_rolling else ever
            found[family.name] = _sums(family, cells, zeros.get(family.name, ((),)))
    return found


def _sums(family: Family, cells: Cells, zeros: Iterable[Labels]) -> Mapping[Labels, Value]:
    counts: dict[Labels, list[int]] = {labels: _nothing(family) for labels in zeros}
    times = dict.fromkeys(counts, 0)
    for (kind, labels, cell), summed in cells.items():
        if kind == family.of:
            own = tuple(labels[place] for place in family.by)
            buckets = counts.setdefault(own, _nothing(family))
            buckets[min(cell, len(buckets) - 1)] += summed.count
            times[own] = times.get(own, 0) + summed.ms
    if family.kind == HISTOGRAM:
        return {own: Histogram(tuple(each), times[own]) for own, each in counts.items()}
    return {own: sum(each) for own, each in counts.items()}


def _nothing(family: Family) -> list[int]:
    return [0] * (len(family.bounds_s) + 1)


def fragments(place: QueueLabels, shown: Samples) -> tuple[bytes, ...]:
    """A queue's series as text, one piece a family, series in a fixed order."""
    return tuple(_fragment(family, place, shown.get(family.name, {})) for family in FAMILIES)


def _fragment(family: Family, place: QueueLabels, shown: Mapping[Labels, Value]) -> bytes:
    bounds = exposition.bounds_text(family.bounds_s)
    common = place.labels(family)
    return "".join(
        exposition.lines(
            family.name, exposition.joined(common, family.labels, own), shown[own], bounds
        )
        for own in sorted(shown)
    ).encode()


def oldest(place: QueueLabels, age_s: int) -> bytes:
    """A queue's piece of the family `OLDEST`."""
    return b"%b%d\n" % (_before_age(place), age_s)


@lru_cache(PLACES_MAX)
def _before_age(place: QueueLabels) -> bytes:
    """Return what stands before the value, which every page tells anew."""
    return _fragment(FAMILIES[OLDEST], place, {(): 0}).removesuffix(b"0\n")


def page(queues: Sequence[Sequence[bytes]], tokens_expiring: int) -> bytes:
    """The whole text: each family with its header and the pieces of every queue, in order."""
    parts: list[bytes] = []
    for header, pieces in zip(_HEADERS, zip(*queues, strict=True) if queues else (), strict=False):
        parts.append(header)
        parts.extend(pieces)
    family = TOKENS_EXPIRING
    parts.append(_header(family))
    parts.append(exposition.lines(family.name, "", tokens_expiring, ()).encode())
    return b"".join(parts)


def _header(family: Family) -> bytes:
    return exposition.header(family.name, family.kind, family.text).encode()


_HEADERS = tuple(map(_header, FAMILIES))
