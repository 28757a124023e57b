"""The test settings of a repository, and their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.vocabulary import Health, QuarantineForgives, Sensitivity

UNHEALTHY = (Health.FLAKY, Health.BROKEN)

ARTIFACT_PATTERNS = (
    "*junit*",
    "*test-result*",
    "*test_result*",
    "*test-report*",
    "*surefire*",
)
"""Names of CI artifacts that are read for reports."""


SettingValue = (
    bool | str | Sensitivity | QuarantineForgives | tuple[str, ...] | tuple[Health, ...] | None
)
"""What a setting can be."""


@dataclass(frozen=True, slots=True)
class TestSettings:
    """One repository's settings; `stable_branches` None: its default branch and queue branches."""

    __test__ = False

    quarantine_enabled: bool = False
    auto_quarantine_enabled: bool = False
    auto_quarantine_statuses: tuple[Health, ...] = UNHEALTHY
    sensitivity: Sensitivity = Sensitivity.NORMAL
    stable_branches: tuple[str, ...] | None = None
    ticket_url_template: str | None = None
    collect_artifacts: bool = True
    artifact_patterns: tuple[str, ...] = ARTIFACT_PATTERNS
    name_masks: tuple[str, ...] = ()
    ticket_issues: bool = False
    quarantine_forgives: QuarantineForgives = QuarantineForgives.ANY_FAILURE


def changed(before: TestSettings, values: Mapping[str, SettingValue]) -> TestSettings:
    """The settings with some of them changed; the types are those of the fields."""
    return replace(before, **values)  # type: ignore[arg-type]
