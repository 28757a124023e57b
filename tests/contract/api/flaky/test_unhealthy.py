"""`/flaky-tests/list-unhealthy-tests` to the letter.

See docs/design/http.md 8; docs/design/detector.md 12.
"""

from service.http import callers
from tests.contract.api.flaky.tested import names_of

RECORD = [
    *("id", "repository", "html_url", "name", "variant", "file_path", "parent", "classname"),
    *("status", "codeowners", "pull_requests_impacted_last_7d", "quarantined"),
]
PAGE = [
    *("total_rows", "total_pages", "page_index"),
    *("next_page_token", "prev_page_token", "last_page_token"),
]


async def test_a_record_has_every_field_of_the_specification(tested):
    await tested.ran(test_total="f", prs=(3, 4))
    await tested.judged("test_total", "flaky", reason="Passed and failed on the same code.")
    answer = await tested.unhealthy()
    assert list(answer) == ["tests", "page"]
    (record,) = answer["tests"]
    assert list(record) == RECORD
    test_id = tested.id_of("test_total")
    assert record == {
        "id": test_id,
        "repository": {"html_url": "https://github.test/octo/widgets"},
        "html_url": f"https://queue.example.org/octo/widgets/tests/{test_id}",
        "name": "test_total",
        "variant": "",
        "file_path": "tests/ui/test_cart.py",
        "parent": "ui",
        "classname": "TestCart",
        "status": {
            "value": "flaky",
            "reason": "Passed and failed on the same code.",
            "timestamp": "2026-03-02T13:00:00.000Z",
        },
        "codeowners": ["@octo/web"],
        "pull_requests_impacted_last_7d": 2,
        "quarantined": False,
    }
    assert list(answer["page"]) == PAGE
    assert answer["page"] == {
        "total_rows": 1,
        "total_pages": 1,
        "page_index": 0,
        "next_page_token": "",
        "prev_page_token": "",
        "last_page_token": "",
    }


async def test_an_empty_list_is_an_answer(tested):
    answer = await tested.unhealthy("BROKEN")
    assert answer["tests"] == []
    assert answer["page"] == dict.fromkeys(PAGE, 0) | dict.fromkeys(PAGE[3:], "")


async def test_only_the_asked_for_health_is_listed_quarantined_or_not(tested):
    await tested.ran(a="f", b="f", c="p")
    await tested.judged("a", "flaky")
    await tested.judged("b", "broken")
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    for status in ("FLAKY", "flaky", "Flaky"):
        assert names_of(await tested.unhealthy(status)) == ["a"]
    broken = await tested.unhealthy("BROKEN")
    assert [(each["name"], each["quarantined"]) for each in broken["tests"]] == [("b", True)]
    await tested.judged("a", "healthy")
    assert names_of(await tested.unhealthy()) == []


async def test_no_other_status_can_be_asked_for(tested):
    for status in ("HEALTHY", "healthy", "", "FLAKYY", 1, None):
        asked = {"status": status, "page_query": {"page_size": 1}}
        answer = await tested.post("list-unhealthy-tests", **asked)
        assert answer.is_problem(400, "invalid_field")
        assert [each["field"] for each in answer.json["errors"]] == ["/status"]


PAGES = [
    ({"page_size": 0}, "/page_query/page_size", "range"),
    ({"page_size": 101}, "/page_query/page_size", "range"),
    ({"page_size": "5"}, "/page_query/page_size", "type"),
    ({}, "/page_query/page_size", "missing"),
    (None, "/page_query", "type"),
    ({"page_size": 5, "page_token": 5}, "/page_query/page_token", "type"),
]


async def test_what_a_page_may_be(tested):
    for query, field, code in PAGES:
        answer = await tested.post("list-unhealthy-tests", status="FLAKY", page_query=query)
        assert answer.is_problem(400, "invalid_field")
        assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [(field, code)]


async def test_no_token_is_the_first_page(tested):
    for token in ("", None):
        query = {"page_size": 1, "page_token": token}
        answer = await tested.done("list-unhealthy-tests", status="FLAKY", page_query=query)
        assert answer["page"]["page_index"] == 0


async def test_no_token_and_a_wrong_one_are_401_in_plain_text(tested):
    body = tested.about(status="FLAKY", page_query={"page_size": 1})
    for token in ("", "hgt_wrong"):
        answer = await tested.client.post("flaky-tests/list-unhealthy-tests", body, token)
        assert answer.status == 401
        assert answer.headers["Content-Type"] == "application/plain-text"
        text = callers.NO_TOKEN.encode()
        assert answer.body == text


async def test_the_organization_is_the_tokens_own_in_any_case(tested):
    query = {"page_size": 1}
    body = tested.about(status="FLAKY", page_query=query) | {"org_url_slug": "OcTo"}
    await tested.client.done("flaky-tests/list-unhealthy-tests", body)
    body["org_url_slug"] = "initech"
    answer = await tested.client.post("flaky-tests/list-unhealthy-tests", body)
    assert answer.is_problem(404, "organization_not_found")


async def test_a_repository_outside_of_the_token_is_missing(tested):
    own = tested.client.instance
    await tested.ran(a="f")
    body = tested.about(status="FLAKY", page_query={"page_size": 1})
    answers = [
        await tested.client.post("flaky-tests/list-unhealthy-tests", body, own.narrow_token),
        await tested.client.post(
            "flaky-tests/list-unhealthy-tests",
            body | {"org_url_slug": "initech"},
            own.foreign_token,
        ),
    ]
    for answer in answers:
        assert answer.is_problem(404, "repository_not_found")


async def test_most_pull_requests_hit_come_first_then_the_id(tested):
    names = ["a", "b", "c", "d"]
    await tested.ran(a="f", b="f", c="f", d="f", prs=(1,))
    await tested.ran(b="f", prs=(2, 3))
    await tested.ran(d="f", prs=(2,))
    for name in names:
        await tested.judged(name, "flaky")
    same = sorted(["a", "c"], key=tested.id_of)
    assert names_of(await tested.unhealthy()) == ["b", "d", *same]


async def test_tests_of_untrusted_uploads_alone_are_in_no_list(tested):
    await tested.ran(stranger="f", is_trusted=False)
    assert names_of(await tested.failing()) == []
    assert names_of(await tested.unhealthy()) == []


async def test_a_variant_is_a_test_of_its_own(tested):
    await tested.ran(a="f")
    await tested.ran(a="f", variant="unix")
    found = (await tested.failing())["tests"]
    shown = sorted((each["name"], each["variant"], each["id"]) for each in found)
    assert shown == [
        ("a", "", tested.id_of("a")),
        ("a", "unix", tested.id_of("a", "unix")),
    ]
