"""What a failed test was when its run began, in the words of comments."""

from dataclasses import replace

import pytest

from service.evidence import run_failures
from service.mergequeue.wording.failed_tests import Standing
from service.testhealth.reports.results import Outcome
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.listings import ListedCase
from service.vocabulary import Health, Override
from tests.operations.upload_stage import NOW

TOTAL = ListedCase(
    no=1,
    id="06cb6db5-f807-5198-b072-af67a0636f8a",
    name="test_total",
    classname="TestCart",
    parent="ui",
    file="tests/ui/test_cart.py",
    variant="",
    owners=(),
    status=Health.HEALTHY,
    since=NOW,
    impact=0,
    cost_ms=0,
    first_run_at=NOW,
    last_failed_at=NOW,
    reason="",
    override=Override.UNSPECIFIED,
    override_reason="",
    override_at=None,
    expires_at=None,
    ticket=None,
)


def failures(*quarantined: bool) -> list[StoredAttempt]:
    """Failures of one test in as many uploads."""
    failed = StoredAttempt("", 1, 1, NOW, Outcome.FAILED, "key")
    return [
        replace(failed, upload=f"upload {n}", is_quarantined=each)
        for n, each in enumerate(quarantined)
    ]


@pytest.mark.parametrize(
    ("found", "health", "known_keys", "standing"),
    [
        (failures(False), Health.HEALTHY, (), Standing.NEW),
        (failures(False), Health.HEALTHY, ("key",), Standing.SEEN),
        (failures(False), Health.HEALTHY, ("other",), Standing.SEEN),
        (failures(False), Health.FLAKY, (), Standing.FLAKY),
        (failures(False), Health.BROKEN, ("key",), Standing.BROKEN),
        (failures(True), Health.BROKEN, ("key",), Standing.EXCUSED),
        (failures(True, True), Health.HEALTHY, (), Standing.EXCUSED),
        (failures(True, False), Health.FLAKY, (), Standing.FLAKY),
    ],
)
def test_a_failed_test_is_what_it_was_before_unless_all_of_it_is_excused(
    found, health, known_keys, standing
):
    assert run_failures.latest_result(found, health, known_keys) is standing


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "tests/ui/test_cart.py::test_total"),
        ({"file": ""}, "TestCart::test_total"),
        ({"file": "", "classname": ""}, "ui::test_total"),
        ({"file": "", "classname": "", "parent": ""}, "test_total"),
        ({"variant": "arm64"}, "tests/ui/test_cart.py::test_total (arm64)"),
    ],
)
def test_a_test_is_named_by_where_it_stands(changes, name):
    assert run_failures.name_of(TOTAL._replace(**changes)) == name
