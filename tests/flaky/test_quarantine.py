"""The rule of quarantine, every input of it (docs/design/quarantine.md 1)."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from service.testhealth.detector import quarantine
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.settings import TestSettings
from service.vocabulary import Health, Override

NOW = datetime(2026, 3, 2, 14, tzinfo=UTC)
BOTH = (Health.FLAKY, Health.BROKEN)
STATUSES = ((Health.FLAKY,), (Health.BROKEN,), BOTH)
SWITCHES = (False, True)


@pytest.mark.parametrize("enabled", SWITCHES)
@pytest.mark.parametrize("automatic", SWITCHES)
@pytest.mark.parametrize("statuses", STATUSES)
def test_the_rule_of_the_specification_holds_for_every_input(enabled, automatic, statuses):
    settings = TestSettings(
        quarantine_enabled=enabled,
        auto_quarantine_enabled=automatic,
        auto_quarantine_statuses=statuses,
    )
    for override, status in product(Override, Health):
        quarantined = (
            enabled
            and override != Override.NEVER_QUARANTINE
            and (override == Override.ALWAYS_QUARANTINE or (automatic and status in statuses))
        )
        found = quarantine.setting_of(settings, override, status)
        assert (found is not None) is quarantined


ALL_ON = TestSettings(quarantine_enabled=True, auto_quarantine_enabled=True)
TABLE = [
    (TestSettings(), Override.ALWAYS_QUARANTINE, Health.BROKEN, None),
    (
        TestSettings(quarantine_enabled=True),
        Override.ALWAYS_QUARANTINE,
        Health.HEALTHY,
        QuarantineSetting.ALWAYS_QUARANTINE,
    ),
    (TestSettings(quarantine_enabled=True), Override.UNSPECIFIED, Health.BROKEN, None),
    (TestSettings(auto_quarantine_enabled=True), Override.UNSPECIFIED, Health.FLAKY, None),
    (ALL_ON, Override.UNSPECIFIED, Health.HEALTHY, None),
    (ALL_ON, Override.UNSPECIFIED, Health.FLAKY, QuarantineSetting.AUTO_QUARANTINE),
    (ALL_ON, Override.UNSPECIFIED, Health.BROKEN, QuarantineSetting.AUTO_QUARANTINE),
    (ALL_ON, Override.ALWAYS_QUARANTINE, Health.FLAKY, QuarantineSetting.ALWAYS_QUARANTINE),
    (ALL_ON, Override.NEVER_QUARANTINE, Health.BROKEN, None),
]


@pytest.mark.parametrize(("settings", "override", "status", "setting"), TABLE)
def test_by_what_a_test_is_quarantined(settings, override, status, setting):
    assert quarantine.setting_of(settings, override, status) is setting


def test_settings_quarantine_nothing_at_first():
    assert (TestSettings().quarantine_enabled, TestSettings().auto_quarantine_enabled) == (
        False,
        False,
    )
    assert TestSettings().auto_quarantine_statuses == BOTH


def test_no_setting_can_quarantine_the_healthy():
    settings = TestSettings(
        quarantine_enabled=True,
        auto_quarantine_enabled=True,
        auto_quarantine_statuses=tuple(Health),
    )
    assert quarantine.setting_of(settings, Override.UNSPECIFIED, Health.HEALTHY) is None


def test_an_override_ends_the_moment_it_expires():
    always = Override.ALWAYS_QUARANTINE
    before, after = NOW - timedelta(microseconds=1), NOW + timedelta(microseconds=1)
    assert quarantine.in_force(always, None, NOW) is always
    assert quarantine.in_force(always, NOW, before) is always
    assert quarantine.in_force(always, NOW, NOW) is Override.UNSPECIFIED
    assert quarantine.in_force(always, NOW, after) is Override.UNSPECIFIED


def test_a_quarantined_failure_is_marked_as_passed():
    marked = [
        quarantine.passes(failed=failed, quarantined=quarantined)
        for failed, quarantined in product(SWITCHES, SWITCHES)
    ]
    assert marked == [True, True, False, True]


def test_why_a_test_is_quarantined_is_said_in_one_line():
    always, auto = QuarantineSetting.ALWAYS_QUARANTINE, QuarantineSetting.AUTO_QUARANTINE
    until = datetime(2026, 4, 1, 9, tzinfo=UTC)
    said = [
        quarantine.sentence(always, "#991", until),
        quarantine.sentence(always, "#991", None),
        quarantine.sentence(auto, "Flagged flaky by bob: x", None),
    ]
    assert said == [
        "ALWAYS_QUARANTINE until 2026-04-01: #991",
        "ALWAYS_QUARANTINE: #991",
        "AUTO_QUARANTINE: Flagged flaky by bob: x",
    ]
