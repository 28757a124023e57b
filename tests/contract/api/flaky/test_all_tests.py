"""`/flaky-tests/list-tests` and `/flaky-tests/get-test-history` (docs/design/http.md 8)."""

from datetime import timedelta

import pytest

from service.testhealth.store import all_tests
from tests.contract.api.flaky.tested import names_of


@pytest.fixture(autouse=True, params=[0, 1000])
def found_max(request, monkeypatch):
    """So many tests that filters leave are listed by their numbers."""
    monkeypatch.setattr(all_tests, "FOUND_MAX", request.param)


async def listed(tested, **wanted):
    """Return the names of the tests that pass a filter, in order."""
    query = {"page_size": 100, "page_token": ""}
    return names_of(await tested.done("list-tests", page_query=query, **wanted))


async def test_each_filter_keeps_the_tests_that_pass_it(tested):
    await tested.ran(test_total="f", test_mail="p", prs=(3, 4))
    await tested.ran(hours_ago=2, test_send="f", prs=(5,))
    await tested.ran(hours_ago=3, test_mail="p", variant="windows")
    await tested.judged("test_total", "flaky")
    await tested.judged("test_send", "broken")
    assert await listed(tested) == ["test_total", "test_send", "test_mail", "test_mail"]
    assert await listed(tested, status="FLAKY") == ["test_total"]
    assert await listed(tested, status="HEALTHY") == ["test_mail", "test_mail"]
    assert await listed(tested, search="TOTAL") == ["test_total"]
    assert await listed(tested, search="tests/ui/test_cart.py", status="BROKEN") == ["test_send"]
    assert await listed(tested, search="100%_") == []
    assert await listed(tested, variant="windows") == ["test_mail"]
    assert await listed(tested, owner="@octo/web", status="FLAKY") == ["test_total"]
    assert await listed(tested, owner="@octo/we") == []
    assert await listed(tested, owner="none") == []
    await tested.done(
        "link-ticket-to-test-case",
        test_case_id=tested.id_of("test_send"),
        html_url="https://tickets.example.org/1",
    )
    assert await listed(tested, has_ticket=True) == ["test_send"]
    assert "test_send" not in await listed(tested, has_ticket=False)


async def test_the_filter_by_quarantine_says_what_each_record_says(tested):
    await tested.ran(test_total="f", test_send="f", test_mail="p", test_pay="p")
    await tested.judged("test_total", "flaky")
    await tested.judged("test_send", "broken")
    assert await listed(tested, quarantined=True) == []
    await tested.settings(
        quarantine_enabled=True, auto_quarantine_enabled=True, auto_quarantine_statuses=["flaky"]
    )
    override = "set-quarantine-override"
    said = {"override": "ALWAYS_QUARANTINE", "reason": "because"}
    await tested.done(override, test_id=tested.id_of("test_mail"), **said)
    never = {"override": "NEVER_QUARANTINE", "reason": "because"}
    await tested.done(override, test_id=tested.id_of("test_send"), **never)
    everything = (await tested.done("list-tests", page_query={"page_size": 100}))["tests"]
    by_record = {each["name"] for each in everything if each["quarantined"]}
    assert by_record == {"test_total", "test_mail"}
    assert set(await listed(tested, quarantined=True)) == by_record
    assert set(await listed(tested, quarantined=False)) == {"test_send", "test_pay"}
    # The override of `test_mail` ends by itself.
    tested.clock.present += timedelta(days=31)
    assert await listed(tested, quarantined=True) == ["test_total"]


async def test_pages_of_a_filtered_list_join_and_keep_to_their_filter(tested):
    await tested.ran(**{f"case_{nth}": "f" for nth in range(5)}, other="f")
    first = await tested.done("list-tests", search="case_", page_query={"page_size": 3})
    assert (first["page"]["total_rows"], first["page"]["total_pages"]) == (5, 2)
    token = first["page"]["next_page_token"]
    query = {"page_size": 3, "page_token": token}
    second = await tested.done("list-tests", search="case_", page_query=query)
    assert names_of(first) + names_of(second) == [f"case_{nth}" for nth in range(5)]
    back = {"page_size": 3, "page_token": second["page"]["prev_page_token"]}
    assert await tested.done("list-tests", search="case_", page_query=back) == first
    refused = await tested.post("list-tests", search="other", page_query=query)
    assert refused.is_problem(400, "invalid_page_token")
    unknown = await tested.post("list-tests", status="SICK", page_query={"page_size": 3})
    assert unknown.status == 400


async def test_a_history_has_thirty_days_and_the_newest_runs(tested):
    await tested.ran(hours_ago=1, test_total="fp", prs=(3,))
    await tested.ran(hours_ago=2, test_total="p")
    await tested.ran(hours_ago=30, test_total="f")
    await tested.ran(hours_ago=31, test_mail="p")
    test_id = tested.id_of("test_total")
    answer = await tested.done("get-test-history", test_id=test_id)
    assert answer["test_id"] == test_id
    assert len(answer["days"]) == 30
    assert answer["days"][-1] == {"day": "2026-03-02", "passed": 2, "failed": 1, "excused": 0}
    assert answer["days"][-2] == {"day": "2026-03-01", "passed": 0, "failed": 1, "excused": 0}
    assert answer["days"][0] == {"day": "2026-02-01", "passed": 0, "failed": 0, "excused": 0}
    runs = [(each["outcome"], each["attempts"]) for each in answer["runs"]]
    assert runs == [("passed", 2), ("passed", 1), ("failed", 1)]
    assert answer["runs"][0]["pull_requests"] == [3]
    missing = await tested.post("get-test-history", test_id="0" * 8 + "-0000-4000-8000-" + "0" * 12)
    assert missing.is_problem(404, "test_not_found")
