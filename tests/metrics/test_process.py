"""The figures of one process, as Prometheus reads them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from service.metrics.process_families import BOUNDS_S, FAMILIES, ProcessMeter


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


def test_what_never_happened_is_shown_where_no_label_is_needed(meter: ProcessMeter):
    shown = told(meter)
    assert shown["headgate_build_info python=3.11.9 version=0.0.7"] == 1
    assert shown["headgate_invariant_breaches_total"] == 0
    assert shown["headgate_turn_duration_seconds_count"] == 0
    assert shown["process_resident_memory_bytes"] > 0
    assert not [name for name in shown if name.startswith("headgate_actions_total")]


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
