"""Answers about tests (docs/design/quarantine.md 1; docs/design/http.md 8)."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from service.http.models import settings
from service.http.models.answers.common import Count, Id, LeftOut, SnakeAnswer, Time
from service.testhealth.settings import TestSettings
from service.vocabulary import Health, Override

Address = Annotated[str, Field(json_schema_extra={"format": "uri"})]
"""A URI."""

Rate = Annotated[float, Field(ge=0, le=1)]
"""A share with at most six decimals."""


class LinkShown(SnakeAnswer):
    """An address."""

    html_url: Address


class StatusShown(SnakeAnswer):
    """Why a test is as it is, and since when; the list of failing tests leaves the value out."""

    reason: str
    timestamp: Time


class HealthValue(SnakeAnswer):
    """How a test is."""

    value: Health


class HealthShown(StatusShown, HealthValue):
    """How a test is, why, and since when."""


class CommonFailureShown(SnakeAnswer):
    """One way to fail: its newest headline, and how many attempts failed so."""

    summary: Annotated[str, Field(max_length=200)]
    occurrence_count: Count
    last_occurrence: Time


class TestShown(SnakeAnswer):
    """What every record of a test says."""

    id: Id
    repository: LinkShown
    html_url: Address
    name: str
    variant: str
    file_path: LeftOut[str] = None
    parent: LeftOut[str] = None
    classname: LeftOut[str] = None
    status: StatusShown
    codeowners: list[str]
    pull_requests_impacted_last_7d: Count
    quarantined: bool
    ticket: LeftOut[LinkShown] = None


class TestRecord(TestShown):
    """A test with its health."""

    status: HealthShown


class FailingTestRecord(TestShown):
    """A test that failed in the range; its rates are those of the present."""

    most_common_failures: list[CommonFailureShown]
    failure_rate_last_7d: Rate
    failure_rate_last_24h: Rate


class TestDetailsRecord(TestRecord):
    """Everything about a test; its failures are those of the last 7 days."""

    most_common_failures: list[CommonFailureShown]
    failure_rate_last_7d: Rate
    failure_rate_last_24h: Rate
    quarantine_override: Override
    quarantine_expires_at: Time | None
    first_seen_at: Time
    last_run_at: Time
    last_failed_at: Time | None


class ListedTestRecord(TestRecord):
    """A test with its health, its rates of the present and its last failure."""

    failure_rate_last_7d: Rate
    failure_rate_last_24h: Rate
    last_failed_at: Time | None


class TestDay(SnakeAnswer):
    """A UTC day of a test: attempts that passed, that failed, and whose failure was excused."""

    __test__ = False

    day: date
    passed: Count
    failed: Count
    excused: Count


class TestRun(SnakeAnswer):
    """A result of a test in one upload; `attempts` above 1: it was retried there."""

    __test__ = False

    upload_id: Id
    ran_at: Time
    outcome: Literal["passed", "failed", "skipped"]
    attempts: Count
    quarantined: bool
    branch: str
    pull_requests: list[int]
    job: str
    sha: str


class TestHistory(SnakeAnswer):
    """The last 30 days of a test, oldest first, and its newest 60 runs, newest first."""

    __test__ = False

    test_id: Id
    days: list[TestDay]
    runs: list[TestRun]


class PageShown(SnakeAnswer):
    """Where a page stands; an empty token says that there is no such page."""

    total_rows: Count
    total_pages: Count
    page_index: Count
    next_page_token: str
    prev_page_token: str
    last_page_token: str


class TestsListed(SnakeAnswer):
    """Tests that pass the filters, most pull requests hit first."""

    tests: list[ListedTestRecord]
    page: PageShown


class UnhealthyTestsListed(SnakeAnswer):
    """Tests of one status, most pull requests hit first."""

    tests: list[TestRecord]
    page: PageShown


class FailingTestsListed(SnakeAnswer):
    """Tests that failed in the range, most failed attempts first."""

    tests: list[FailingTestRecord]
    page: PageShown


class QuarantinedTest(SnakeAnswer):
    """A quarantined test; fields that are unknown are null."""

    test_case_id: Id
    name: str
    parent: str | None
    file: str | None
    classname: str | None
    variant: str
    status: Health
    codeowners: list[str]
    quarantine_setting: Literal["ALWAYS_QUARANTINE", "AUTO_QUARANTINE"]
    quarantined_at: Time
    status_last_updated_at: Time
    expires_at: Time | None
    reason: str
    html_url: Address


class QuarantinedTestsListed(SnakeAnswer):
    """Quarantined tests, newest first."""

    quarantined_tests: list[QuarantinedTest]
    page: PageShown


class TestFound(SnakeAnswer):
    """Everything about one test."""

    test: TestDetailsRecord


class TestFlagged(SnakeAnswer):
    """The test as it is under its flag."""

    test: TestRecord


class CheckedTestShown(SnakeAnswer):
    """Whether a test is quarantined; `reason` is null when it is not."""

    test_id: Id
    known: bool
    quarantined: bool
    reason: str | None
    expires_at: Time | None


class QuarantineChecked(SnakeAnswer):
    """Answers in the order of the questions."""

    quarantining_enabled: bool
    checked_at: Time
    tests: list[CheckedTestShown]


class TicketLinked(SnakeAnswer):
    """The test and its ticket; null: none."""

    test_case_id: Id
    ticket: LinkShown | None


class OverrideSet(SnakeAnswer):
    """What stands of the test's quarantine; without effect while quarantining is off."""

    test_id: Id
    override: Override
    expires_at: Time | None
    quarantined: bool


@settings.shows(TestSettings)
class TestSettingsShown(SnakeAnswer):
    """The test settings of a repository."""
