"""Handlers of the endpoints about tests (API.md 8): one operation each, its answer spelled."""

from dataclasses import asdict
from functools import partial
from typing import TypeVar

import orjson

from service.http import rendering
from service.http.call import Call
from service.http.rendering import Json
from service.mergequeue.api.fragments import Fragments
from service.testhealth.api.models import tests as models
from service.testhealth.operations import (
    checks,
    flags,
    lists,
    overrides,
    records,
    settings,
    tickets,
)
from service.testhealth.operations import (
    details as test_details,
)
from service.testhealth.operations.checks import CheckedTest
from service.testhealth.operations.lists import FailingTest, Quarantined
from service.testhealth.operations.pages import Page
from service.testhealth.operations.records import CommonFailures, FoundHome, ShownTest

SUMMARY_MAX = 200
"""Characters of a failure's headline (API.md 8.2)."""

Row = TypeVar("Row")


async def list_unhealthy(call: Call, asked: models.ListUnhealthyTests) -> bytes:
    """`/flaky-tests/list-unhealthy-tests`."""
    home = await _home(call, asked)
    page = await lists.unhealthy(call.runtime, home.repository, asked.status, asked.page())
    rows = call.fragments.tests(page.rows, partial(call.fragments.part, record, home))
    return b'{"tests":%b,"page":%b}' % (rows, _page(page))


async def list_failing(call: Call, asked: models.ListFailingTests) -> bytes:
    """`/flaky-tests/list-failing-tests`."""
    home = await _home(call, asked)
    page = await lists.failing(call.runtime, home.repository, asked.wish())
    around = call.fragments, home
    rows = call.fragments.tests(page.rows, partial(call.fragments.part, _failing, around))
    return b'{"tests":%b,"page":%b}' % (rows, _page(page))


async def list_quarantined(call: Call, asked: models.ListQuarantinedTests) -> bytes:
    """`/flaky-tests/list-quarantined-tests`."""
    home = await _home(call, asked)
    page = await lists.quarantined(call.runtime, home.repository, asked.page())
    rows = call.fragments.tests(page.rows, partial(call.fragments.part, _quarantined, home))
    return b'{"quarantined_tests":%b,"page":%b}' % (rows, _page(page))


async def get_details(call: Call, asked: models.GetTestDetails) -> Json:
    """`/flaky-tests/get-test-details`."""
    home = await _home(call, asked)
    details = await test_details.read(call.runtime, home.repository, asked.test_id.lower())
    shown = {
        **record(home, details.test),
        "most_common_failures": _common(home, details.test.failures),
        **_rates(*(details.test.rates or (0.0, 0.0))),
        "quarantine_override": details.override.value,
        "quarantine_expires_at": rendering.time_or_null(details.expires_at),
        "first_seen_at": rendering.time(details.first_seen_at),
        "last_run_at": rendering.time(details.last_run_at),
    }
    return {"test": shown}


async def check_quarantine(call: Call, asked: models.CheckQuarantine) -> Json:
    """`/flaky-tests/check-quarantine`."""
    home = await _home(call, asked)
    checked = await checks.check(call.runtime, call.caller, home.repository, asked.asked())
    return {
        "quarantining_enabled": checked.is_enabled,
        "checked_at": rendering.time(checked.at),
        "tests": [_checked(each) for each in checked.tests],
    }


async def link_ticket(call: Call, asked: models.LinkTicket) -> Json:
    """`/flaky-tests/link-ticket-to-test-case`."""
    home = await _home(call, asked)
    linked = await tickets.link(call.runtime, home.repository, asked.wish(), call.actor)
    return {"test_case_id": linked.test_id, "ticket": _link(linked.html_url)}


async def set_override(call: Call, asked: models.SetQuarantineOverride) -> Json:
    """`/flaky-tests/set-quarantine-override`."""
    home = await _home(call, asked)
    said = await overrides.put(call.runtime, home.repository, asked.wish(), call.actor)
    return {
        "test_id": said.test_id,
        "override": said.override.value,
        "expires_at": rendering.time_or_null(said.expires_at),
        "quarantined": said.quarantined,
    }


async def flag(call: Call, asked: models.FlagTest) -> Json:
    """`/flaky-tests/flag-test`."""
    home = await _home(call, asked)
    test = await flags.put(call.runtime, home.repository, asked.wish(), call.actor)
    return {"test": record(home, test)}


async def get_settings(call: Call, asked: models.GetSettings) -> Json:
    """`/flaky-tests/get-settings`."""
    home = await _home(call, asked)
    return asdict(await settings.read(call.runtime, home.repository))


async def update_settings(call: Call, asked: models.UpdateSettings) -> Json:
    """`/flaky-tests/update-settings`."""
    home = await _home(call, asked)
    return asdict(await settings.update(call.runtime, home.repository, asked.wish(), call.actor))


async def _home(call: Call, asked: models.AboutTests | models.LinkTicket) -> FoundHome:
    ref, slug = asked.repo.ref, asked.org_url_slug
    return await records.find_home(call.runtime, call.caller, ref, slug)


def record(home: FoundHome, test: ShownTest) -> dict[str, object]:
    """A test with its health (API.md 8.2)."""
    case = test.case
    status = {
        "value": case.status.value,
        "reason": test.reason,
        "timestamp": rendering.time(case.since),
    }
    return _of_case(home, test, status)


def _failing(around: tuple[Fragments, FoundHome], row: FailingTest) -> orjson.Fragment:
    """The rates of many tests are others after each upload, and hardly anything else of them is."""
    fragments, home = around
    return orjson.Fragment(
        b'{%b,"most_common_failures":%b,%b}'
        % (
            fragments.part(_without_value, home, row.test)[1:-1],
            fragments.part(_common, home, row.failures),
            orjson.dumps(_rates(*row.rates))[1:-1],
        )
    )


def _without_value(home: FoundHome, test: ShownTest) -> Json:
    status = {"reason": test.reason, "timestamp": rendering.time(test.case.since)}
    return _of_case(home, test, status)


def _of_case(home: FoundHome, test: ShownTest, status: Json) -> dict[str, object]:
    """What every record says; fields that are unknown are left out."""
    case = test.case
    shown: dict[str, object] = {
        "id": case.id,
        "repository": {"html_url": home.html_url},
        "html_url": home.address_of(case.id),
        "name": case.name,
        "variant": case.variant,
    }
    if case.file:
        shown["file_path"] = case.file
    if case.parent:
        shown["parent"] = case.parent
    if case.classname:
        shown["classname"] = case.classname
    shown["status"] = status
    shown["codeowners"] = case.owners
    shown["pull_requests_impacted_last_7d"] = case.impact
    shown["quarantined"] = test.quarantined
    if case.ticket:
        shown["ticket"] = _link(case.ticket)
    return shown


def _common(_home: FoundHome, failures: CommonFailures) -> list[Json]:
    return [
        {
            "summary": each.headline[:SUMMARY_MAX],
            "occurrence_count": each.count,
            "last_occurrence": rendering.time(each.last_at),
        }
        for each in failures
    ]


def _rates(week: float, day: float) -> Json:
    return {"failure_rate_last_7d": week, "failure_rate_last_24h": day}


def _quarantined(home: FoundHome, row: Quarantined) -> Json:
    case = row.test.case
    is_said = row.setting.value == case.override.value
    return {
        "test_case_id": case.id,
        "name": case.name,
        "parent": case.parent or None,
        "file": case.file or None,
        "classname": case.classname or None,
        "variant": case.variant,
        "status": case.status.value,
        "codeowners": case.owners,
        "quarantine_setting": row.setting.value,
        "quarantined_at": rendering.time(row.since),
        "status_last_updated_at": rendering.time(case.since),
        "expires_at": rendering.time_or_null(case.expires_at) if is_said else None,
        "reason": case.override_reason if is_said else row.test.reason,
        "html_url": home.address_of(case.id),
    }


def _checked(test: CheckedTest) -> Json:
    return {
        "test_id": test.test_id,
        "known": test.known,
        "quarantined": test.quarantined,
        "reason": test.reason,
        "expires_at": rendering.time_or_null(test.expires_at),
    }


def _link(html_url: str | None) -> Json | None:
    return None if html_url is None else {"html_url": html_url}


def _page(page: Page[Row]) -> bytes:
    """Where a page stands (SPECIFICATION.md 2.7)."""
    return orjson.dumps(
        {
            "total_rows": page.total_rows,
            "total_pages": page.total_pages,
            "page_index": page.index,
            "next_page_token": page.next_token,
            "prev_page_token": page.prev_token,
            "last_page_token": page.last_token,
        }
    )
