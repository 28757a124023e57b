"""Handlers of the endpoints about tests: one operation each, and its answer."""

from dataclasses import replace
from typing import TypeVar

from service.database.paging import CountedPage
from service.http.callers import Call
from service.http.rates import RateClass
from service.http.route import Route, read, write
from service.testhealth.api.models import tests as models
from service.testhealth.api.models.answers import tests as answers
from service.testhealth.api.models.answers.tests import LinkShown
from service.testhealth.operations import (
    all_tests,
    checks,
    flags,
    lists,
    overrides,
    records,
    settings,
    tickets,
)
from service.testhealth.operations.all_tests import TestAmongOthers
from service.testhealth.operations.records import RepositoryAddresses
from service.vocabulary import Role

SUMMARY_MAX = 200
"""Characters of a failure's headline."""

ORG = "organization_not_found"
MISSING = "test_not_found"
PAGED = (ORG, "invalid_page_token", "page_token_expired")

Row = TypeVar("Row")
Shown = TypeVar("Shown", bound=answers.TestShown)


@read(
    "flaky-tests/list-unhealthy-tests",
    models.ListUnhealthyTests,
    answers.UnhealthyTestsListed,
    *PAGED,
)
async def list_unhealthy(
    call: Call, asked: models.ListUnhealthyTests
) -> answers.UnhealthyTestsListed:
    """List tests that are flaky, or tests that are broken."""
    addresses = await _addresses(call, asked)
    page = await lists.unhealthy(call.runtime, addresses.repository, asked.status, asked.page())
    rows = [record(addresses, each) for each in page.rows]
    return answers.UnhealthyTestsListed(tests=rows, page=_page(page))


@read(
    "flaky-tests/list-failing-tests",
    models.ListFailingTests,
    answers.FailingTestsListed,
    *PAGED,
    "invalid_time_range",
)
async def list_failing(call: Call, asked: models.ListFailingTests) -> answers.FailingTestsListed:
    """List tests that failed in a time."""
    addresses = await _addresses(call, asked)
    page = await lists.failing(call.runtime, addresses.repository, asked.request())
    rows = [_failing(addresses, each) for each in page.rows]
    return answers.FailingTestsListed(tests=rows, page=_page(page))


@read(
    "flaky-tests/list-quarantined-tests",
    models.ListQuarantinedTests,
    answers.QuarantinedTestsListed,
    *PAGED,
)
async def list_quarantined(
    call: Call, asked: models.ListQuarantinedTests
) -> answers.QuarantinedTestsListed:
    """List tests whose failures count as passed."""
    addresses = await _addresses(call, asked)
    page = await lists.quarantined(call.runtime, addresses.repository, asked.page())
    rows = [_quarantined(addresses, each) for each in page.rows]
    return answers.QuarantinedTestsListed(quarantined_tests=rows, page=_page(page))


@read("flaky-tests/list-tests", models.ListTests, answers.TestsListed, *PAGED)
async def list_tests(call: Call, asked: models.ListTests) -> answers.TestsListed:
    """List all tests, or those that pass the filters."""
    addresses = await _addresses(call, asked)
    page = await all_tests.listed(call.runtime, addresses.repository, asked.wanted(), asked.page())
    rows = [_listed(addresses, each) for each in page.rows]
    return answers.TestsListed(tests=rows, page=_page(page))


@read("flaky-tests/get-test-history", models.GetTestHistory, answers.TestHistory, ORG, MISSING)
async def get_history(call: Call, asked: models.GetTestHistory) -> answers.TestHistory:
    """Return the last 30 days of a test."""
    addresses = await _addresses(call, asked)
    history = await all_tests.history_of(call.runtime, addresses.repository, asked.test_id.lower())
    runs = [
        answers.TestRun.of(
            each,
            ran_at=each.at,
            outcome=each.outcome.value,
            quarantined=each.is_quarantined,
            pull_requests=each.prs,
        )
        for each in history.runs
    ]
    days = [answers.TestDay.of(each) for each in history.days]
    return answers.TestHistory(test_id=history.test_id, days=days, runs=runs)


@read("flaky-tests/get-test-details", models.GetTestDetails, answers.TestFound, ORG, MISSING)
async def get_details(call: Call, asked: models.GetTestDetails) -> answers.TestFound:
    """Return everything about a test."""
    addresses = await _addresses(call, asked)
    case, last_run_at = await lists.details(
        call.runtime, addresses.repository, asked.test_id.lower()
    )
    test = _record(
        answers.TestDetailsRecord,
        addresses,
        case,
        **_rates(case),
        status=_health(case),
        ci_seconds_lost_last_7d=case.cost_ms // 1000,
        most_common_failures=_common(case),
        quarantine_override=case.override,
        quarantine_expires_at=case.expires_at,
        first_seen_at=case.first_run_at,
        last_run_at=last_run_at,
    )
    return answers.TestFound(test=test)


@read(
    "flaky-tests/check-quarantine",
    models.CheckQuarantine,
    answers.QuarantineChecked,
    ORG,
    role=Role.CI,
)
async def check_quarantine(call: Call, asked: models.CheckQuarantine) -> answers.QuarantineChecked:
    """Say which of some tests are quarantined."""
    addresses = await _addresses(call, asked)
    checked = await checks.check(call.runtime, call.caller, addresses.repository, asked.asked())
    return answers.QuarantineChecked.of(
        checked, quarantining_enabled=checked.is_enabled, checked_at=checked.at
    )


@write(
    "flaky-tests/link-ticket-to-test-case",
    Role.QUEUE,
    models.LinkTicket,
    answers.TicketLinked,
    ORG,
    MISSING,
    "conflicting_fields",
    "ticket_template_missing",
)
async def link_ticket(call: Call, asked: models.LinkTicket) -> answers.TicketLinked:
    """Link a ticket to a test, or take it away."""
    addresses = await _addresses(call, asked)
    linked = await tickets.link(call.runtime, addresses.repository, asked.request(), call.actor)
    return answers.TicketLinked(test_case_id=linked.test_id, ticket=_link(linked.html_url))


@write(
    "flaky-tests/set-quarantine-override",
    Role.ADMIN,
    models.SetQuarantineOverride,
    answers.OverrideSet,
    ORG,
    MISSING,
    "reason_required",
)
async def set_override(call: Call, asked: models.SetQuarantineOverride) -> answers.OverrideSet:
    """Decide on the quarantine of a test."""
    addresses = await _addresses(call, asked)
    return answers.OverrideSet.of(
        await overrides.put(call.runtime, addresses.repository, asked.request(), call.actor)
    )


@write(
    "flaky-tests/flag-test",
    Role.QUEUE,
    models.FlagTest,
    answers.TestFlagged,
    ORG,
    MISSING,
    "reason_required",
)
async def flag(call: Call, asked: models.FlagTest) -> answers.TestFlagged:
    """Say that a test is flaky, broken or healthy, whatever its results say."""
    addresses = await _addresses(call, asked)
    test = await flags.put(call.runtime, addresses.repository, asked.request(), call.actor)
    return answers.TestFlagged(test=record(addresses, test))


@read("flaky-tests/get-settings", models.GetTestSettings, answers.TestSettingsShown, ORG)
async def get_settings(call: Call, asked: models.GetTestSettings) -> answers.TestSettingsShown:
    """Return the test settings of a repository."""
    addresses = await _addresses(call, asked)
    return answers.TestSettingsShown.of(await settings.read(call.runtime, addresses.repository))


@write(
    "flaky-tests/update-settings",
    Role.ADMIN,
    models.UpdateTestSettings,
    answers.TestSettingsShown,
    ORG,
    "issues_not_writable",
)
async def update_settings(
    call: Call, asked: models.UpdateTestSettings
) -> answers.TestSettingsShown:
    """Change test settings of a repository; what is not sent stays."""
    addresses = await _addresses(call, asked)
    return answers.TestSettingsShown.of(
        await settings.update(call.runtime, addresses.repository, asked.changes(), call.actor)
    )


async def _addresses(
    call: Call, asked: models.AboutTests | models.LinkTicket
) -> RepositoryAddresses:
    ref, slug = asked.repo.ref, asked.org_url_slug
    return await records.find_addresses(call.runtime, call.caller, ref, slug)


def record(addresses: RepositoryAddresses, case: TestAmongOthers) -> answers.TestRecord:
    """Return a test with its health."""
    return _record(answers.TestRecord, addresses, case, status=_health(case))


def _health(case: TestAmongOthers) -> answers.HealthShown:
    return answers.HealthShown(value=case.status, reason=case.reason, timestamp=case.since)


def _listed(addresses: RepositoryAddresses, case: TestAmongOthers) -> answers.ListedTestRecord:
    return _record(
        answers.ListedTestRecord,
        addresses,
        case,
        **_rates(case),
        status=_health(case),
        ci_seconds_lost_last_7d=case.cost_ms // 1000,
    )


def _failing(addresses: RepositoryAddresses, case: TestAmongOthers) -> answers.FailingTestRecord:
    status = answers.StatusShown(reason=case.reason, timestamp=case.since)
    return _record(
        answers.FailingTestRecord,
        addresses,
        case,
        **_rates(case),
        status=status,
        most_common_failures=_common(case),
    )


def _record(
    kind: type[Shown], addresses: RepositoryAddresses, case: TestAmongOthers, **more: object
) -> Shown:
    """Return a record of this kind; empty texts are left out."""
    return kind.of(
        case,
        repository=LinkShown(html_url=addresses.html_url),
        html_url=addresses.address_of(case.id),
        file_path=case.file or None,
        parent=case.parent or None,
        classname=case.classname or None,
        codeowners=case.owners,
        pull_requests_impacted_last_7d=case.impact,
        ticket=_link(case.ticket or None),
        **more,
    )


def _rates(case: TestAmongOthers) -> dict[str, object]:
    week, day = case.rates or (0.0, 0.0)
    return {"failure_rate_last_7d": week, "failure_rate_last_24h": day}


def _common(case: TestAmongOthers) -> list[answers.CommonFailureShown]:
    return [
        answers.CommonFailureShown(
            summary=each.headline[:SUMMARY_MAX],
            occurrence_count=each.count,
            last_occurrence=each.last_at,
        )
        for each in case.failures
    ]


def _quarantined(addresses: RepositoryAddresses, case: TestAmongOthers) -> answers.QuarantinedTest:
    is_by_override = case.setting == case.override.value
    return answers.QuarantinedTest.of(
        case,
        test_case_id=case.id,
        parent=case.parent or None,
        file=case.file or None,
        classname=case.classname or None,
        codeowners=case.owners,
        quarantine_setting=case.setting,
        quarantined_at=case.quarantined_since,
        status_last_updated_at=case.since,
        expires_at=case.expires_at if is_by_override else None,
        reason=case.override_reason if is_by_override else case.reason,
        html_url=addresses.address_of(case.id),
    )


def _link(html_url: str | None) -> LinkShown | None:
    return None if html_url is None else LinkShown(html_url=html_url)


def _page(page: CountedPage[Row]) -> answers.PageShown:
    return answers.PageShown(
        total_rows=page.total_rows,
        total_pages=page.total_pages,
        page_index=page.index,
        next_page_token=page.next_cursor or "",
        prev_page_token=page.prev_cursor or "",
        last_page_token=page.last_cursor or "",
    )


TEST_ROUTES: tuple[Route, ...] = (
    list_unhealthy,
    list_failing,
    list_quarantined,
    list_tests,
    get_details,
    get_history,
    replace(check_quarantine, rate=RateClass.UPLOAD),
    link_ticket,
    set_override,
    flag,
    get_settings,
    update_settings,
)
"""The endpoints about tests, in the order of the document."""
