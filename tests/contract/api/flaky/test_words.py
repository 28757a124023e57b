"""What people say of tests: overrides, flags, tickets; and what endpoints and the log hear."""

from datetime import timedelta

import pytest

from service.notifications import endpoints
from service.notifications.endpoints import EndpointChange
from tests.contract.api.flaky.tested import HOUR, names_of, stamp

DAY = timedelta(days=1)
UNKNOWN = "06cb6db5-f807-5198-b072-af67a0636f8a"
ALWAYS = {"override": "ALWAYS_QUARANTINE", "reason": "#991"}


@pytest.fixture
async def one(tested):
    """A test that has failed, of which nobody has said anything."""
    await tested.ran(a="f", prs=(3,))
    return {"test_id": tested.id_of("a")}


async def said_of(tested, one):
    """The override in the test's details."""
    test = (await tested.done("get-test-details", **one))["test"]
    return test["quarantine_override"], test["quarantine_expires_at"], test["quarantined"]


async def test_an_override_quarantines_once_quarantining_is_on(tested, one):
    answer = await tested.done("set-quarantine-override", **one, **ALWAYS)
    until = stamp(tested.now + 30 * DAY)
    said = {"override": "ALWAYS_QUARANTINE", "expires_at": until}
    assert answer == {**one, **said, "quarantined": False}
    await tested.settings(quarantine_enabled=True)
    assert await said_of(tested, one) == ("ALWAYS_QUARANTINE", until, True)
    back = await tested.done("set-quarantine-override", **one, override="unspecified")
    assert back == {**one, "override": "UNSPECIFIED", "expires_at": None, "quarantined": False}


async def test_never_wins_over_automatic_quarantine_and_has_no_end(tested, one):
    await tested.judged("a", "broken")
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    assert names_of(await tested.quarantined(), "quarantined_tests") == ["a"]
    said = {"override": "NEVER_QUARANTINE", "reason": "it guards the money"}
    answer = await tested.done("set-quarantine-override", **one, **said)
    assert (answer["expires_at"], answer["quarantined"]) == (None, False)
    assert names_of(await tested.quarantined(), "quarantined_tests") == []


async def test_an_override_needs_a_reason_and_an_end_ahead_within_a_year(tested, one):
    name = "set-quarantine-override"
    for override in ("ALWAYS_QUARANTINE", "NEVER_QUARANTINE"):
        for said in ({}, {"reason": " \t\n\u00a0"}):
            answer = await tested.post(name, **one, override=override, **said)
            assert answer.is_problem(422, "reason_required")
            assert answer.json["detail"] == (
                f"Say in `reason` why the test is {override}; blanks say nothing."
            )
    for at, is_fine in [
        (tested.now, False),
        (tested.now + HOUR, True),
        (tested.now + 366 * DAY, True),
        (tested.now + 367 * DAY, False),
    ]:
        answer = await tested.post(name, **one, **ALWAYS, expires_at=stamp(at))
        if is_fine:
            assert answer.json["expires_at"] == stamp(at)
        else:
            assert answer.is_problem(400, "invalid_field")
            (fault,) = answer.json["errors"]
            assert (fault["field"], fault["code"]) == ("/expires_at", "range")
    answer = await tested.post(name, **one, **ALWAYS | {"reason": "x" * 501})
    assert answer.is_problem(400, "invalid_field")
    answer = await tested.post(name, **one, override="SOMETIMES", reason="x")
    assert answer.json["errors"][0]["code"] == "enum"


async def test_an_override_that_has_expired_counts_no_more_and_is_taken_back(tested, one):
    await tested.settings(quarantine_enabled=True)
    await tested.done("set-quarantine-override", **one, **ALWAYS)
    tested.clock.present += 30 * DAY
    assert await said_of(tested, one) == ("UNSPECIFIED", None, False)
    assert names_of(await tested.quarantined(), "quarantined_tests") == []
    await tested.swept()
    await tested.swept()
    assert await said_of(tested, one) == ("UNSPECIFIED", None, False)
    row = (await tested.audited())[0]
    assert (row["action"], row["reason"]) == ("test.expire_override", "expired")
    assert row["subject"] == f"test/{one['test_id']}"


async def test_a_flag_stands_until_it_is_taken_back(tested, one):
    await tested.judged("a", "broken", hours_ago=3, reason="Failed on the last 5 runs.")
    asked = {**one, "flag": "FLAKY", "reason": "waits on the real clock"}
    answer = await tested.done("flag-test", **asked, token=tested.client.instance.queue_token)
    now = stamp(tested.now)
    login = "queue of octo"
    assert answer["test"]["status"] == {
        "value": "flaky",
        "reason": f"Flagged flaky by {login}: waits on the real clock",
        "timestamp": now,
    }
    assert names_of(await tested.unhealthy("FLAKY")) == ["a"]
    assert names_of(await tested.unhealthy("BROKEN")) == []
    tested.clock.present += HOUR
    again = await tested.done("flag-test", **asked | {"reason": "still"})
    assert again["test"]["status"]["timestamp"] == now
    back = await tested.done("flag-test", **one, flag="none")
    # What was found before the flag was of results that are not there any more.
    assert back["test"]["status"] == {
        "value": "healthy",
        "reason": "Flag removed by admin of octo.",
        "timestamp": stamp(tested.now),
    }


async def test_a_flag_removed_from_a_test_that_never_failed_leaves_it_healthy(tested):
    await tested.ran(b="p")
    one = {"test_id": tested.id_of("b")}
    await tested.done("flag-test", **one, flag="broken", reason="it is")
    answer = await tested.done("flag-test", **one, flag="NONE")
    assert answer["test"]["status"]["value"] == "healthy"
    assert answer["test"]["status"]["reason"] == "Flag removed by admin of octo."
    for said in ({}, {"reason": "  "}):
        answer = await tested.post("flag-test", **one, flag="FLAKY", **said)
        assert answer.is_problem(422, "reason_required")


async def test_the_newest_ticket_is_shown_and_an_empty_one_unlinks(tested, one):
    test_id = one["test_id"]
    ticket = {"html_url": "https://tickets.example.org/KAN-1"}
    about = {"test_case_id": test_id}
    answer = await tested.done("link-ticket-to-test-case", **about, **ticket)
    assert answer == {"test_case_id": test_id, "ticket": ticket}
    assert (await tested.done("get-test-details", **one))["test"]["ticket"] == ticket
    answer = await tested.post("link-ticket-to-test-case", **about, external_ticket_id="KAN-7")
    assert answer.is_problem(422, "ticket_template_missing")
    await tested.settings(ticket_url_template="https://tickets.example.org/browse/{id}")
    answer = await tested.done("link-ticket-to-test-case", **about, external_ticket_id="KAN-7")
    assert answer["ticket"] == {"html_url": "https://tickets.example.org/browse/KAN-7"}
    for empty in ({"html_url": ""}, {"external_ticket_id": ""}):
        answer = await tested.done("link-ticket-to-test-case", **about, **empty)
        assert answer == {"test_case_id": test_id, "ticket": None}
    assert "ticket" not in (await tested.done("get-test-details", **one))["test"]


async def test_a_ticket_is_named_in_one_way_and_by_an_address_of_the_web(tested, one):
    about = {"test_case_id": one["test_id"]}
    both = {"html_url": "https://x.example/1", "external_ticket_id": "KAN-1"}
    for sent in ({}, both):
        answer = await tested.post("link-ticket-to-test-case", **about, **sent)
        assert answer.is_problem(422, "conflicting_fields")
    for url in ("javascript:alert(1)", "ftp://x.example/1", "https://x .example", "x" * 2001):
        answer = await tested.post("link-ticket-to-test-case", **about, html_url=url)
        assert answer.is_problem(400, "invalid_field")
    without_slug = {"repo": tested.about()["repo"], **about, "html_url": ""}
    await tested.client.done("flaky-tests/link-ticket-to-test-case", without_slug)


def words_on(test_id):
    """A request to each endpoint that takes the id of a test."""
    one = {"test_id": test_id}
    return [
        ("get-test-details", one),
        ("set-quarantine-override", one | ALWAYS),
        ("flag-test", one | {"flag": "NONE"}),
        ("link-ticket-to-test-case", {"test_case_id": test_id, "html_url": ""}),
    ]


async def test_words_on_a_test_that_is_not_known_are_404(tested):
    await tested.ran(stranger="f", is_trusted=False)
    for test_id in (UNKNOWN, tested.id_of("stranger")):
        for name, body in words_on(test_id):
            assert (await tested.post(name, **body)).is_problem(404, "test_not_found")
    answer = await tested.post("get-test-details", test_id="no-uuid")
    assert answer.is_problem(400, "invalid_field")


async def test_a_test_of_another_repository_is_not_known_here(tested, one):
    for name, body in words_on(one["test_id"]):
        assert (await tested.asked_elsewhere(name, **body)).is_problem(404, "test_not_found")
    answer = await tested.asked_elsewhere("check-quarantine", tests=[one])
    assert [each["known"] for each in answer.json["tests"]] == [False]


async def test_each_word_is_in_the_audit_log_with_what_stood_before(tested, one):
    await tested.done("set-quarantine-override", **one, **ALWAYS)
    await tested.done("flag-test", **one, flag="FLAKY", reason="it is")
    await tested.done("link-ticket-to-test-case", test_case_id=one["test_id"], html_url="")
    await tested.settings(sensitivity="eager")
    settings, ticket, flag, override = (await tested.audited())[:4]
    assert (settings["action"], settings["data"]) == (
        "test.update_settings",
        {"before": {"sensitivity": "normal"}, "after": {"sensitivity": "eager"}},
    )
    assert (ticket["action"], ticket["data"]) == (
        "test.link_ticket",
        {"before": None, "after": None},
    )
    assert (flag["action"], flag["reason"], flag["data"]) == (
        "test.flag",
        "it is",
        {"before": "NONE", "after": "FLAKY"},
    )
    assert (override["action"], override["reason"]) == ("test.set_override", "#991")
    assert override["data"]["after"]["override"] == "ALWAYS_QUARANTINE"
    for row in (ticket, flag, override):
        assert row["subject"] == f"test/{one['test_id']}"
        assert row["request_id"]


async def test_endpoints_are_told_of_what_changed_and_of_nothing_else(tested, one):
    caller = await tested.caller()
    wish = EndpointChange("http://127.0.0.1:9000/x", ("test_case.*",))
    await endpoints.create(tested.runtime, caller, wish)
    await tested.done("set-quarantine-override", **one, override="UNSPECIFIED")
    await tested.done("set-quarantine-override", **one, **ALWAYS)
    await tested.done("flag-test", **one, flag="FLAKY", reason="it is")
    await tested.done("flag-test", **one, flag="FLAKY", reason="it still is")
    url = {"html_url": "https://tickets.example.org/1"}
    for _ in range(2):
        await tested.done("link-ticket-to-test-case", test_case_id=one["test_id"], **url)
    tested.clock.present += 30 * DAY
    await tested.swept()
    set_, flagged, linked, expired = await tested.messages()
    assert set_["type"] == expired["type"] == "test_case.quarantining_setting_changed"
    assert set_["quarantine_setting_changed"] == {
        "actor": {"kind": "token", "login": "admin of octo"},
        "reason": "#991",
        "timestamp": "2026-03-02T14:00:00.000Z",
        "previous_quarantining_setting": "UNSPECIFIED",
        "updated_quarantining_setting": "ALWAYS_QUARANTINE",
        "expires_at": "2026-04-01T14:00:00.000Z",
    }
    assert set_["test_case"] == {
        "id": one["test_id"],
        "name": "a",
        "parent": "ui",
        "classname": "TestCart",
        "file_path": "tests/ui/test_cart.py",
        "variant": "",
        "codeowners": ["@octo/web"],
        "quarantined": False,
        "html_url": f"https://queue.example.org/octo/widgets/tests/{one['test_id']}",
    }
    assert flagged["type"] == "test_case.status_changed"
    assert flagged["status_change"] == {
        "previous_status": "healthy",
        "current_status": {
            "value": "flaky",
            "reason": "Flagged flaky by admin of octo: it is",
            "timestamp": "2026-03-02T14:00:00.000Z",
        },
    }
    assert (linked["type"], linked["ticket"]) == ("test_case.ticket_linked", url)
    change = expired["quarantine_setting_changed"]
    assert change["reason"] == "expired"
    assert change["updated_quarantining_setting"] == "UNSPECIFIED"
    assert change["actor"] == {"kind": "system", "login": None}
