"""Answers about tests (docs/design/quarantine.md 1; docs/design/http.md 8)."""

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from service.http.models import settings
from service.http.models.answers.common import (
    Count,
    Id,
    LeftOut,
    SnakeAnswer,
    SnakeWithIgnored,
    Time,
)
from service.testhealth.settings import TestSettings
from service.vocabulary import Health, Override

Address = Annotated[str, Field(json_schema_extra={"format": "uri"})]
"""A URI."""

Rate = Annotated[float, Field(ge=0, le=1)]
"""A share with at most six decimals."""


class LinkShown(SnakeAnswer):
    """An address."""

    html_url: Address
    """The address. For example `https://github.com/octo/widgets/issues/991`."""


class StatusShown(SnakeAnswer):
    """Why a test is as it is, and since when; the list of failing tests leaves the value out."""

    reason: str
    """Why its health is what it is. For example `Passed and failed on the same code in 3 of 212
    commits in 14 days.`
    """
    timestamp: Time
    """Since when."""


class HealthValue(SnakeAnswer):
    """How a test is."""

    value: Health
    """The health of the test."""


class HealthShown(StatusShown, HealthValue):
    """How a test is, why, and since when."""


class CommonFailureShown(SnakeAnswer):
    """One way to fail: its newest headline, and how many attempts failed so."""

    summary: Annotated[str, Field(max_length=200)]
    """The first line of the newest failure of this kind. For example `AssertionError: 10.0 !=
    10.01`.
    """
    occurrence_count: Count
    """How many attempts failed so."""
    last_occurrence: Time
    """When one failed so last."""


class TestShown(SnakeAnswer):
    """What every record of a test says."""

    id: Id
    """The test."""
    repository: LinkShown
    """Address of its repository."""
    html_url: Address
    """Page of the test. For example `https://queue.example.org/octo/widgets/tests/06cb6db5`."""
    name: str
    """Its name. For example `test_total`."""
    variant: str
    """The flavor of the job that runs it; empty without. For example `linux`."""
    file_path: LeftOut[str] = None
    """Its file. For example `ui/test_cart.py`."""
    parent: LeftOut[str] = None
    """The suite that it belongs to. For example `ui`."""
    classname: LeftOut[str] = None
    """Its class. For example `TestCart`."""
    status: StatusShown
    """Why its health is what it is, and since when."""
    codeowners: list[str]
    """Owners of its file. For example `["@octo/web"]`"""
    pull_requests_impacted_last_7d: Count
    """Pull requests that it failed in during the last 7 days."""
    quarantined: bool
    """Whether its failures count as passed."""
    ticket: LeftOut[LinkShown] = None
    """Its ticket, if it has one."""


class TestRecord(TestShown):
    """A test with its health."""

    status: HealthShown
    """Its health, why, and since when."""


class FailingTestRecord(TestShown):
    """A test that failed in the range; its rates are those of the present."""

    most_common_failures: list[CommonFailureShown]
    """The most frequent ways to fail."""
    failure_rate_last_7d: Rate
    """The share of attempts of the last 7 days that failed."""
    failure_rate_last_24h: Rate
    """The share of attempts of the last 24 hours that failed."""


class TestDetailsRecord(TestRecord):
    """Everything about a test; its failures are those of the last 7 days."""

    most_common_failures: list[CommonFailureShown]
    """The most frequent ways to fail."""
    failure_rate_last_7d: Rate
    """The share of attempts of the last 7 days that failed."""
    failure_rate_last_24h: Rate
    """The share of attempts of the last 24 hours that failed."""
    ci_seconds_lost_last_7d: Count
    """Seconds of CI that its failures lost during the last 7 days. For example `5400`."""
    quarantine_override: Override
    """The decision of a person on its quarantine."""
    quarantine_expires_at: Time | None
    """When that ends by itself; null: never."""
    first_seen_at: Time
    """When it was reported first."""
    last_run_at: Time
    """When it was run last."""
    last_failed_at: Time | None
    """When it failed last."""


class ListedTestRecord(TestRecord):
    """A test with its health, its rates and cost of the present, and its last failure."""

    failure_rate_last_7d: Rate
    """The share of attempts of the last 7 days that failed."""
    failure_rate_last_24h: Rate
    """The share of attempts of the last 24 hours that failed."""
    ci_seconds_lost_last_7d: Count
    """Seconds of CI that its failures lost during the last 7 days. For example `5400`."""
    last_failed_at: Time | None
    """When it failed last."""


class TestDay(SnakeAnswer):
    """A UTC day of a test: attempts that passed, that failed, and whose failure was excused."""

    __test__ = False

    day: date
    """The day in UTC."""
    passed: Count
    """Attempts that passed."""
    failed: Count
    """Attempts that failed."""
    excused: Count
    """Attempts whose failure counted as passed."""


class TestRun(SnakeAnswer):
    """A result of a test in one upload; `attempts` above 1: it was retried there."""

    __test__ = False

    upload_id: Id
    """The upload."""
    ran_at: Time
    """When the test command started."""
    outcome: Literal["passed", "failed", "skipped"]
    """How the test ended in this upload."""
    attempts: Count
    """Above 1: it was retried there."""
    quarantined: bool
    """Whether its failures count as passed."""
    branch: str
    """The branch that was tested. For example `main`."""
    pull_requests: list[int]
    """The pull requests that were tested."""
    job: str
    """The job of CI. For example `unit`."""
    sha: str
    """The commit that was tested. For example `a1b2c3d4e5f60718293a4b5c6d7e8f9012345678`."""


class TestHistory(SnakeAnswer):
    """The last 30 days of a test, oldest first, and its newest 60 runs, newest first."""

    __test__ = False

    test_id: Id
    """The test."""
    days: list[TestDay]
    """Days of the last 30, oldest first."""
    runs: list[TestRun]
    """The newest runs, newest first."""


class PageShown(SnakeAnswer):
    """Where a page stands; an empty token says that there is no such page."""

    total_rows: Count
    """How many tests the list has."""
    total_pages: Count
    """How many pages the list has."""
    page_index: Count
    """Number of this page, from 0."""
    next_page_token: str
    """Token of the next page; empty at the end. For example `eyJrIjpbMV19`."""
    prev_page_token: str
    """Token of the page before; empty at the beginning. For example `eyJrIjpbMF19`."""
    last_page_token: str
    """Token of the last page; empty if this is the only one. For example `eyJrIjpbMV19`."""


class TestsListed(SnakeAnswer):
    """Tests that pass the filters, in the order of the request."""

    tests: list[ListedTestRecord]
    """The tests of this page."""
    page: PageShown
    """Which page this is, and tokens of others."""


class UnhealthyTestsListed(SnakeWithIgnored):
    """Tests of one status, most pull requests hit first."""

    tests: list[TestRecord]
    """The tests of this page."""
    page: PageShown
    """Which page this is, and tokens of others."""


class FailingTestsListed(SnakeWithIgnored):
    """Tests that failed in the range, most failed attempts first."""

    tests: list[FailingTestRecord]
    """The tests of this page."""
    page: PageShown
    """Which page this is, and tokens of others."""


class QuarantinedTest(SnakeAnswer):
    """A quarantined test; fields that are unknown are null."""

    test_case_id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    parent: str | None
    """The suite that it belongs to; null if unknown. For example `ui`."""
    file: str | None
    """Its file; null if unknown. For example `ui/test_cart.py`."""
    classname: str | None
    """Its class; null if unknown. For example `TestCart`."""
    variant: str
    """The flavor of the job that runs it; empty without. For example `linux`."""
    status: Health
    """Its health."""
    codeowners: list[str]
    """Owners of its file. For example `["@octo/web"]`"""
    quarantine_setting: Literal["ALWAYS_QUARANTINE", "AUTO_QUARANTINE"]
    """Whether a person or its health quarantined it."""
    quarantined_at: Time
    """Since when it is quarantined."""
    status_last_updated_at: Time
    """Since when it has this health."""
    expires_at: Time | None
    """When the quarantine ends by itself; null: never."""
    reason: str
    """Why it is quarantined. For example `#991`."""
    html_url: Address
    """Page of the test. For example `https://queue.example.org/octo/widgets/tests/06cb6db5`."""


class QuarantinedTestsListed(SnakeAnswer):
    """Quarantined tests, newest first."""

    quarantined_tests: list[QuarantinedTest]
    """The tests of this page."""
    page: PageShown
    """Which page this is, and tokens of others."""


class TestFound(SnakeAnswer):
    """Everything about one test."""

    test: TestDetailsRecord
    """The test."""


class TestFlagged(SnakeAnswer):
    """The test as it is under its flag."""

    test: TestRecord
    """The test."""


class CheckedTestShown(SnakeAnswer):
    """Whether a test is quarantined; `reason` is null when it is not."""

    test_id: Id
    """The test."""
    known: bool
    """Whether it was ever reported."""
    quarantined: bool
    """Whether its failures count as passed."""
    reason: str | None
    """Why it is quarantined; null if it is not. For example `#991`."""
    expires_at: Time | None
    """When the quarantine ends by itself; null: never."""


class QuarantineChecked(SnakeAnswer):
    """Answers in the order of the questions."""

    quarantining_enabled: bool
    """Whether the repository quarantines tests at all."""
    checked_at: Time
    """When it was looked up."""
    tests: list[CheckedTestShown]
    """The tests, in the order of the request."""


class TicketLinked(SnakeAnswer):
    """The test and its ticket; null: none."""

    test_case_id: Id
    """The test."""
    ticket: LinkShown | None
    """Its ticket; null: none."""


class OverrideSet(SnakeAnswer):
    """What stands of the test's quarantine; without effect while quarantining is off."""

    test_id: Id
    """The test."""
    override: Override
    """The decision now."""
    expires_at: Time | None
    """When it ends by itself; null: never."""
    quarantined: bool
    """Whether its failures count as passed."""


@settings.shows(TestSettings)
class TestSettingsShown(SnakeAnswer):
    """The test settings of a repository."""
