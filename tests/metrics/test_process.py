"""The figures of one process, as Prometheus reads them."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from bot.github.gitbuild.mirror import Reason
from bot.github.options import BuildMethod
from bot.github.pacing import CallKind
from service.mergequeue.operations.notices import SURFACES
from service.metrics.process_families import BOUNDS_S, FAMILIES, ZEROS, ProcessMeter
from tests.tidy.tree import ROOT


def told(meter: ProcessMeter) -> dict[str, float]:
    """Series by name and labels."""
    return {
        sample.name
        + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): sample.value
        for family in parsed(meter.text().decode())
        for sample in family.samples
    }


@pytest.fixture
def meter() -> ProcessMeter:
    return ProcessMeter("0.0.7", "3.11.9")


OPEN = frozenset({"headgate_api_requests_total"})
"""Counters whose labels are of open sets only."""
_KIND = re.compile(r'OutboxItem\(.*?"(\w+)",|kind="(\w+)",', re.DOTALL)


def kinds_of_effects() -> set[str]:
    """The kinds of outbox items in the source."""
    files = [path for path in (ROOT / "service").rglob("*.py") if "OutboxItem(" in path.read_text()]
    found = {kind for path in files for pair in _KIND.findall(path.read_text()) for kind in pair}
    return found - {""}


def test_every_counter_with_a_closed_set_of_labels_starts_at_0(meter: ProcessMeter) -> None:
    shown = told(meter)
    counters = {name for name, (kind, _, _) in FAMILIES.items() if kind == "counter"}
    assert {name.partition(" ")[0] for name in shown} >= counters - OPEN
    assert shown["headgate_credentials_rejected_total kind=app"] == 0
    assert shown["headgate_actions_total kind=land outcome=failed"] == 0


def test_the_series_that_start_at_0_have_the_words_of_the_code() -> None:
    def firsts(name: str) -> set[str]:
        return {labels[0] for labels in ZEROS[name]}

    assert firsts("headgate_provider_calls_total") == set(CallKind)
    assert firsts("headgate_actions_total") == kinds_of_effects()
    surfaces = {surface.value for surface in SURFACES.values()}
    assert firsts("headgate_notices_left_out_total") == {*surfaces, "reaction"}
    reasons = {labels[1] for labels in ZEROS["headgate_test_branches_built_total"]}
    assert reasons == set(Reason)
    assert firsts("headgate_test_branches_built_total") <= set(BuildMethod)


def test_what_never_happened_is_shown_where_no_label_is_needed(meter: ProcessMeter):
    shown = told(meter)
    assert shown["headgate_build_info python=3.11.9 version=0.0.7"] == 1
    assert shown["headgate_invariant_breaches_total"] == 0
    assert shown["headgate_turn_duration_seconds_count"] == 0
    assert shown["process_resident_memory_bytes"] > 0
    assert not [name for name in shown if name.startswith("headgate_api_requests_total")]


def test_every_family_is_declared_under_its_own_name(meter: ProcessMeter):
    types = {
        line.split()[2]: line.split()[3]
        for line in meter.text().decode().splitlines()
        if line.startswith("# TYPE headgate_")
    }
    assert types == {name: kind for name, (kind, _, _) in FAMILIES.items()}


def test_counts_levels_and_times(meter: ProcessMeter):
    for outcome in ("done", "done", "failed"):
        meter.count("headgate_actions_total", "build", outcome)
    meter.level("headgate_outbox_pending", 7, "control")
    meter.level("headgate_outbox_pending", 3, "control")
    for seconds in (0.005, 0.006, 11):
        meter.observe("headgate_api_request_duration_seconds", seconds, "/v1/getQueue")
    shown = told(meter)
    assert shown["headgate_actions_total kind=build outcome=done"] == 2
    assert shown["headgate_outbox_pending lane=control"] == 3
    name = "headgate_api_request_duration_seconds"
    buckets = [
        shown[f"{name}_bucket endpoint=/v1/getQueue le={bound}"] for bound in (*BOUNDS_S, "+Inf")
    ]
    assert buckets == [1, *[2] * 10, 3]
    assert shown[f"{name}_sum endpoint=/v1/getQueue"] == pytest.approx(11.011)


def test_a_name_that_is_none_is_our_mistake(meter: ProcessMeter):
    with pytest.raises(KeyError):
        meter.count("headgate_nothing_total")
