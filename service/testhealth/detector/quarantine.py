"""Decide whether a failing run of a test counts as passed (docs/design/quarantine.md 1)."""

from datetime import datetime
from enum import StrEnum

from service.testhealth.settings import TestSettings
from service.vocabulary import Health, Override


class QuarantineSetting(StrEnum):
    """The rule by which a test is quarantined."""

    ALWAYS_QUARANTINE = "ALWAYS_QUARANTINE"
    AUTO_QUARANTINE = "AUTO_QUARANTINE"


def setting_of(
    settings: TestSettings, override: Override, status: Health
) -> QuarantineSetting | None:
    """By what the test is quarantined now, None when it is not.

    docs/design/quarantine.md 1. NEVER_QUARANTINE wins over everything; nothing is quarantined while
    quarantining is off for the repository.
    """
    if not settings.quarantine_enabled or override is Override.NEVER_QUARANTINE:
        return None
    if override is Override.ALWAYS_QUARANTINE:
        return QuarantineSetting.ALWAYS_QUARANTINE
    if settings.auto_quarantine_enabled and status in settings.auto_quarantine_statuses:
        # Settings may narrow the statuses, never widen them to the healthy.
        return None if status is Health.HEALTHY else QuarantineSetting.AUTO_QUARANTINE
    return None


def in_force(override: Override, expires_at: datetime | None, now: datetime) -> Override:
    """The override as it counts at `now`: one that has expired says nothing any more."""
    if expires_at is not None and expires_at <= now:
        return Override.UNSPECIFIED
    return override


def passes(*, failed: bool, quarantined: bool) -> bool:
    """Return whether a run of the test is marked as passed (docs/design/quarantine.md 1).

    The run keeps its own outcome all the same, or no quarantined test would ever heal.
    """
    return quarantined or not failed


def sentence(setting: QuarantineSetting, reason: str, expires_at: datetime | None) -> str:
    """Why it is quarantined: `ALWAYS_QUARANTINE until 2026-04-01: #991`.

    `reason` is that of the override, or of the status where that quarantines.
    """
    until = "" if expires_at is None else f" until {expires_at:%Y-%m-%d}"
    return f"{setting.value}{until}: {reason}"
