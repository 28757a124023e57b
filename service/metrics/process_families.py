"""The figures of one process, kept in memory and written by prometheus-client.

What is told is kept in plain dictionaries, because it is told on the way of every request; only
a page makes objects of it.

See docs/reference/metrics.md.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from service.metrics.facts import Labels

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BOUNDS = (*(str(bound) for bound in BOUNDS_S), "+Inf")

FAMILIES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "headgate_build_info": ("gauge", ("version", "python"), "What runs here; always 1."),
    "headgate_instances": ("gauge", (), "Processes that serve the same database now."),
    "headgate_config_mismatch": (
        "gauge",
        (),
        "1 while they run with settings that should be the same and are not.",
    ),
    "headgate_deliveries_received_total": (
        "counter",
        ("event", "outcome"),
        "Webhooks received: accepted, duplicate, refused, unavailable.",
    ),
    "headgate_delivery_last_received_timestamp_seconds": (
        "gauge",
        (),
        "When the newest webhook was accepted here, in Unix time.",
    ),
    "headgate_delivery_lag_seconds": ("gauge", (), "Age of the oldest webhook not worked on yet."),
    "headgate_provider_requests_total": (
        "counter",
        ("status",),
        "Requests to the provider by status; none without an answer.",
    ),
    "headgate_provider_rate_limit_remaining": (
        "gauge",
        (),
        "Requests left, of the installation that has the fewest.",
    ),
    "headgate_provider_content_remaining": (
        "gauge",
        (),
        "Comments, pull requests and merges left this hour, of the fullest installation.",
    ),
    "headgate_provider_calls_total": (
        "counter",
        ("kind",),
        "Calls by what they count as: read, free_read, query, write, content, push.",
    ),
    "headgate_provider_landed_total": ("counter", (), "Pull requests that this process landed."),
    "headgate_test_branches_built_total": (
        "counter",
        ("method", "reason"),
        "Test branches by what built them, git or rest, and why.",
    ),
    "headgate_build_disagreements_total": (
        "counter",
        (),
        "Conflicts that git found and the provider did not.",
    ),
    "headgate_credentials_rejected_total": (
        "counter",
        ("kind",),
        "Credentials that were rejected: app, installation, webhook_signature.",
    ),
    "headgate_actions_total": (
        "counter",
        ("kind", "outcome"),
        "Actions of the outbox tried: done, retried, unknown, failed.",
    ),
    "headgate_notices_left_out_total": (
        "counter",
        ("surface",),
        "Texts left to the next state near the provider's limits: comment, check, label, reaction.",
    ),
    "headgate_stalled": (
        "gauge",
        ("kind",),
        "Things that could move and have not for minutes; 0 when all is well.",
    ),
    "headgate_trouble": ("gauge", ("name",), "1 while this process has such a trouble."),
    "headgate_trouble_since_timestamp_seconds": (
        "gauge",
        ("name",),
        "Since when it has it, in Unix time; 0 while it does not.",
    ),
    "headgate_oldest_effect_seconds": (
        "gauge",
        (),
        "How long the oldest action of a queue has been under way or due.",
    ),
    "headgate_throttled_effects": (
        "gauge",
        (),
        "Actions of queues that wait for the provider's own limit.",
    ),
    "headgate_outbox_pending": ("gauge", ("lane",), "Actions that wait in the outbox."),
    "headgate_notifications_total": (
        "counter",
        ("outcome",),
        "Attempts to tell webhook endpoints: delivered, retried, failed.",
    ),
    "headgate_failures_foreseen_total": (
        "counter",
        ("outcome",),
        "Failures of required checks before their end: foreseen, withdrawn; and what the ends of "
        "such checks taught: held, refuted.",
    ),
    "headgate_ci_polls_total": ("counter", (), "Reads of the steps of a CI run that goes on."),
    "headgate_turn_duration_seconds": ("histogram", (), "Time of a turn, its commit included."),
    "headgate_invariant_breaches_total": ("counter", (), "Turns undone by a broken invariant."),
    "headgate_api_requests_total": (
        "counter",
        ("endpoint", "status"),
        "Requests answered by status; none where they were broken off.",
    ),
    "headgate_api_request_duration_seconds": (
        "histogram",
        ("endpoint",),
        "Time until a request is answered.",
    ),
}
"""Name → type, labels, HELP. Telling another name raises KeyError."""

_CREDENTIALS = ("app", "installation", "webhook_signature")
_CALLS = ("read", "free_read", "query", "write", "content", "push")
_FORESEEN = ("foreseen", "withdrawn", "held", "refuted")
_SURFACES = ("comment", "check", "label", "reaction")
_EFFECTS = (
    *("build", "change_base", "check_file", "collect", "delete_head", "evidence"),
    *("follow_green", "label", "land", "mend", "mind_break"),
    *("reaction", "reply", "rerun", "retire", "tell", "ticket"),
)
_NOT_BY_GIT = (
    *("setting", "no_git", "too_big", "signatures_required", "repository_unreadable"),
    *("mirror_not_ready", "mirror_failed", "mirror_busy", "disk_full", "failed_before"),
    *("disagreements", "fetch_failed", "merge_failed", "push_refused", "push_rule", "push_hook"),
    *("push_denied", "push_busy", "push_workflows", "head_missing", "conflict"),
)

ZEROS: dict[str, tuple[Labels, ...]] = {
    "headgate_deliveries_received_total": (("unknown", "refused"),),
    "headgate_provider_requests_total": (("none",),),
    "headgate_provider_calls_total": tuple((kind,) for kind in _CALLS),
    "headgate_test_branches_built_total": (
        ("git", "default"),
        *(("rest", reason) for reason in _NOT_BY_GIT),
    ),
    "headgate_credentials_rejected_total": tuple((kind,) for kind in _CREDENTIALS),
    "headgate_actions_total": tuple(product(_EFFECTS, ("done", "retried", "unknown", "failed"))),
    "headgate_failures_foreseen_total": tuple((word,) for word in _FORESEEN),
    "headgate_notices_left_out_total": tuple((surface,) for surface in _SURFACES),
    "headgate_notifications_total": (("delivered",), ("retried",), ("failed",)),
}
"""Counter → its series that a process shows from its start on, so that the first event is a growth.

Events, paths and HTTP statuses are open sets: their series begin with what happens.
"""


@dataclass(slots=True)
class _Times:
    buckets: list[int]
    seconds: float = 0.0


class ProcessMeter:
    """A `telemetry.Meter` that remembers."""

    def __init__(self, version: str, python: str) -> None:
        self._values: dict[str, dict[Labels, float]] = {}
        self._times: dict[str, dict[Labels, _Times]] = {}
        for name, (kind, labels, _) in FAMILIES.items():
            if kind == "histogram":
                self._times[name] = {} if labels else {(): _nothing()}
            else:
                zeros = ZEROS.get(name, () if labels or kind != "counter" else ((),))
                self._values[name] = dict.fromkeys(zeros, 0.0)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self.level("headgate_build_info", 1, version, python)

    def count(self, name: str, *labels: str) -> None:
        """See `Meter.count`."""
        own = self._values[name]
        own[labels] = own.get(labels, 0) + 1

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """See `Meter.observe`."""
        own = self._times[name]
        times = own.get(labels)
        if times is None:
            times = own[labels] = _nothing()
        times.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        times.seconds += seconds

    def level(self, name: str, value: float, *labels: str) -> None:
        """See `Meter.level`."""
        self._values[name][labels] = value

    def text(self) -> bytes:
        """See `Meter.text`; with the client library's `process_*`."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that prometheus-client asks of a collector."""
        for name, (kind, labels, text) in FAMILIES.items():
            if kind == "histogram":
                yield self._histogram(name, labels, text)
                continue
            made = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            family = made(name.removesuffix("_total"), text, labels=labels)
            for own, value in self._values[name].items():
                family.add_metric(own, value)
            yield family

    def _histogram(self, name: str, labels: tuple[str, ...], text: str) -> Metric:
        family = HistogramMetricFamily(name, text, labels=labels)
        for own, times in self._times[name].items():
            total = 0
            buckets = []
            for bound, count in zip(_BOUNDS, times.buckets, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric(own, buckets, times.seconds)
        return family


def _nothing() -> _Times:
    return _Times([0] * len(_BOUNDS))
