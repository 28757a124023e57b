"""Details, quarantine checks, the list of quarantined tests, settings, and who may ask."""

from typing import Any

from service.provider.values import NotPossible
from service.testhealth.reports.identity import RepositoryKey
from service.testhealth.store import cases
from service.vocabulary import RepoRef
from tests.contract.api.flaky.tested import HOST, stamp
from tests.harness.values import ValuesProvider

KEY = {"parent": "ui", "classname": "TestCart", "file_path": "tests/ui/test_cart.py"}
DEFAULTS = {
    "quarantine_enabled": False,
    "quarantine_forgives": "KNOWN_FAILURES",
    "excuse_proof": "JOB",
    "auto_quarantine_enabled": False,
    "auto_quarantine_statuses": ["flaky", "broken"],
    "sensitivity": "normal",
    "stable_branches": None,
    "ticket_url_template": None,
    "collect_artifacts": True,
    "artifact_patterns": [
        *("*junit*", "*test-result*", "*test_result*", "*test-report*", "*surefire*"),
    ],
    "name_masks": [],
    "ticket_issues": False,
    "test_failure_exit_codes": [],
    "report_issuers": [],
    "flake_cost_alert_minutes": None,
    "repeat_minutes_per_day": None,
}
LISTED = [
    *("test_case_id", "name", "parent", "file", "classname", "variant", "status", "codeowners"),
    *("quarantine_setting", "quarantined_at", "status_last_updated_at", "expires_at", "reason"),
    "html_url",
]
CHECKED = ["test_id", "known", "quarantined", "reason", "expires_at"]


class Tracker(ValuesProvider):
    """A provider at which issues cannot be written until somebody mends that."""

    refusal: NotPossible | None = NotPossible("The App does not have the permission.")

    async def no_tickets(self, repo: RepoRef) -> NotPossible | None:
        return self.refusal


async def test_details_tell_everything_of_a_test(tested):
    await tested.ran(hours_ago=30, a="p")
    await tested.ran(hours_ago=2, a="fp", prs=(3,))
    await tested.judged("a", "flaky", reason="Why.")
    test = (await tested.done("get-test-details", test_id=tested.id_of("a").upper()))["test"]
    assert test["status"]["value"] == "flaky"
    assert test["pull_requests_impacted_last_7d"] == 1
    assert (test["failure_rate_last_7d"], test["failure_rate_last_24h"]) == (0.333333, 0.5)
    assert [each["occurrence_count"] for each in test["most_common_failures"]] == [1]
    assert test["quarantine_override"] == "UNSPECIFIED"
    assert test["quarantine_expires_at"] is None
    assert test["first_seen_at"] == "2026-03-01T08:00:00.000Z"
    assert list(test)[-3:] == ["first_seen_at", "last_run_at", "last_failed_at"]
    assert test["last_failed_at"] == test["last_run_at"] == "2026-03-02T12:00:00.000Z"


async def test_details_of_a_healthy_test_say_so_before_anybody_judged_it(tested):
    for hours in (50, 30, 2):
        await tested.ran(hours_ago=hours, a="p")
    test = (await tested.done("get-test-details", test_id=tested.id_of("a")))["test"]
    assert test["status"] == {
        "value": "healthy",
        "reason": "No failure in 3 runs since 2026-02-28.",
        "timestamp": "2026-02-28T12:00:00.000Z",
    }
    assert test["most_common_failures"] == []


async def test_a_test_is_found_by_its_other_ids_and_shown_under_its_own(tested):
    await tested.ran(a="f")
    other = "aad1f138-09ab-5ea9-9c21-af48a03d6edd"
    store, ledger = tested.runtime.store, tested.ledger
    await store.run(cases.add_aliases, ledger.place, {other: 1})
    test = (await tested.done("get-test-details", test_id=other))["test"]
    assert test["id"] == tested.id_of("a")


async def test_quarantine_is_checked_by_id_and_by_fields_in_order(tested):
    await tested.ran(a="f", b="f", c="f")
    await tested.ran(a="f", variant="unix")
    await tested.judged("b", "flaky", reason="Why.")
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    said = {"override": "ALWAYS_QUARANTINE", "reason": "#991"}
    await tested.done("set-quarantine-override", test_id=tested.id_of("a"), **said)
    asked = [
        {"test_id": tested.id_of("b")},
        {"name": "a", **KEY},
        {"name": "a", **KEY, "file_path": "./tests/x/../ui/test_cart.py"},
        {"name": "a", **KEY, "variant": "unix"},
        {"name": "nobody"},
        {"test_id": tested.id_of("c").upper()},
    ]
    token = tested.client.instance.ci_token
    answer = await tested.done("check-quarantine", token, tests=asked)
    assert answer["quarantining_enabled"] is True
    assert answer["checked_at"] == stamp(tested.now)
    assert [list(each) for each in answer["tests"]] == [CHECKED] * 6
    shown = [(each["known"], each["quarantined"]) for each in answer["tests"]]
    yes, no = (True, True), (True, False)
    assert shown == [yes, yes, yes, no, (False, False), no]
    assert [each["reason"] for each in answer["tests"][:4]] == [
        "AUTO_QUARANTINE: Why.",
        "ALWAYS_QUARANTINE until 2026-04-01: #991",
        "ALWAYS_QUARANTINE until 2026-04-01: #991",
        None,
    ]
    assert answer["tests"][1]["test_id"] == tested.id_of("a")


async def test_nothing_is_quarantined_while_quarantining_is_off(tested):
    await tested.ran(a="f")
    await tested.judged("a", "flaky")
    said = {"override": "ALWAYS_QUARANTINE", "reason": "#991"}
    await tested.done("set-quarantine-override", test_id=tested.id_of("a"), **said)
    answer = await tested.done("check-quarantine", tests=[{"test_id": tested.id_of("a")}])
    assert answer["quarantining_enabled"] is False
    assert answer["tests"][0]["quarantined"] is False
    assert (await tested.quarantined())["quarantined_tests"] == []


async def test_a_test_first_seen_under_a_former_name_is_still_found_by_its_fields(tested):
    present = tested.ledger.key
    tested.ledger = tested.ledger.named(RepositoryKey("octo", "github.test/octo/gadgets"))
    await tested.ran(a="f")
    former = tested.id_of("a")
    tested.ledger = tested.ledger.named(present)
    await tested.ran(b="f")
    asked = [{"name": "a", **KEY}, {"name": "b", **KEY}]
    answer = await tested.done("check-quarantine", tests=asked)
    assert [each["test_id"] for each in answer["tests"]] == [former, tested.id_of("b")]


async def test_masked_names_are_checked_as_they_are_stored(tested):
    await tested.settings(name_masks=["test_total[*]"])
    await tested.ran(**{"test_total[*]": "f"})
    answer = await tested.done("check-quarantine", tests=[{"name": "test_total[7]", **KEY}])
    assert answer["tests"][0]["known"] is True


async def test_five_thousand_tests_are_checked_at_once_not_more(tested):
    many = [{"name": f"test_{n}"} for n in range(5000)]
    answer = await tested.done("check-quarantine", tests=many)
    assert len({each["test_id"] for each in answer["tests"]}) == 5000
    too_many = [*many, {"name": "x"}]
    nobody: list[dict[str, str]] = [{}]
    for tests in (too_many, nobody[1:], nobody, [{"variant": "unix"}], [{"test_id": "x"}]):
        answer = await tested.post("check-quarantine", tests=tests)
        assert answer.is_problem(400, "invalid_field")


async def test_quarantined_tests_show_by_what_and_since_when(tested):
    await tested.ran(hours_ago=9, a="f", b="f")
    await tested.judged("b", "broken", hours_ago=5, reason="Why.")
    said = {"override": "ALWAYS_QUARANTINE", "reason": "#991"}
    await tested.done("set-quarantine-override", test_id=tested.id_of("a"), **said)
    await tested.settings(quarantine_enabled=True, auto_quarantine_enabled=True)
    answer = await tested.quarantined()
    assert list(answer) == ["quarantined_tests", "page"]
    a, b = answer["quarantined_tests"]
    assert list(a) == LISTED
    assert a == {
        "test_case_id": tested.id_of("a"),
        "name": "a",
        "parent": "ui",
        "file": "tests/ui/test_cart.py",
        "classname": "TestCart",
        "variant": "",
        "status": "healthy",
        "codeowners": ["@octo/web"],
        "quarantine_setting": "ALWAYS_QUARANTINE",
        "quarantined_at": "2026-03-02T14:00:00.000Z",
        "status_last_updated_at": "2026-03-02T05:00:00.000Z",
        "expires_at": "2026-04-01T14:00:00.000Z",
        "reason": "#991",
        "html_url": f"https://queue.example.org/octo/widgets/tests/{tested.id_of('a')}",
    }
    assert (b["quarantine_setting"], b["reason"]) == ("AUTO_QUARANTINE", "Why.")
    assert (b["expires_at"], b["status"]) == (None, "broken")
    assert b["quarantined_at"] == "2026-03-02T14:00:00.000Z"
    await tested.settings(auto_quarantine_statuses=["FLAKY"])
    assert (await tested.quarantined())["page"]["total_rows"] == 1


async def test_settings_begin_with_their_defaults_and_keep_what_is_not_sent(tested):
    assert await tested.done("get-settings") == DEFAULTS
    changed = {
        "quarantine_enabled": True,
        "auto_quarantine_statuses": ["flaky"],
        "sensitivity": "STRICT",
        "stable_branches": ["main", "release/*"],
        "ticket_url_template": "https://tickets.example.org/{id}",
        "artifact_patterns": ["*.xml"],
        "name_masks": ["test[*]"],
    }
    shown = DEFAULTS | changed | {"sensitivity": "strict"}
    assert await tested.settings(**changed) == shown
    assert await tested.settings() == shown
    nulled = {"stable_branches": None, "ticket_url_template": None, "sensitivity": None}
    kept = {"sensitivity": "strict"}
    assert await tested.settings(**nulled) == shown | nulled | kept
    assert await tested.done("get-settings") == shown | nulled | kept


WRONG_SETTINGS: list[dict[str, Any]] = [
    {"auto_quarantine_statuses": []},
    {"auto_quarantine_statuses": ["healthy"]},
    {"sensitivity": "lazy"},
    {"stable_branches": ["x"] * 11},
    {"ticket_url_template": "http://tickets.example.org/{id}"},
    {"ticket_url_template": "https://tickets.example.org/"},
    {"artifact_patterns": ["x" * 101]},
    {"artifact_patterns": ["x"] * 21},
    {"name_masks": ["no star"]},
    {"name_masks": ["**"]},
    {"name_masks": ["test_at_*", "*"]},
    {"test_failure_exit_codes": ["unit"]},
    {"test_failure_exit_codes": ["unit=0"]},
    {"test_failure_exit_codes": ["unit=8", "=8"]},
    {"test_failure_exit_codes": ["unit=129"]},
    {"report_issuers": ["circleci https://oidc.circleci.com/org/1 acme/widgets"]},
    {"report_issuers": ["gitlab http://gitlab.example.com acme/widgets"]},
    {"report_issuers": ["gitlab https://gitlab.example.com/ acme/widgets"]},
    {"report_issuers": ["buildkite https://agent.buildkite.com acme"]},
    {"quarantine_enabled": "true"},
]


async def test_settings_that_are_none_or_out_of_bounds_are_refused(tested):
    answer = await tested.post("update-settings", quarantine_enable=True)
    assert answer.is_problem(400, "unknown_field")
    (fault,) = answer.json["errors"]
    assert (fault["field"], fault["did_you_mean"]) == ("/quarantine_enable", "quarantine_enabled")
    for wrong in WRONG_SETTINGS:
        answer = await tested.post("update-settings", **wrong)
        assert answer.is_problem(400, "invalid_field")
        (field,) = wrong
        assert answer.json["errors"][0]["field"].startswith(f"/{field}")
    answer = await tested.post("update-settings", name_masks=["*"])
    assert answer.json["detail"] == (
        "/name_masks/0 must be one line with exactly one `*` and something beside it, as `seed *`."
    )
    assert await tested.settings(name_masks=["seed *"])
    assert await tested.settings(name_masks=["* seed"])
    await tested.settings(name_masks=[])
    assert await tested.done("get-settings") == DEFAULTS


async def test_issues_of_tests_are_refused_where_the_app_may_not_write_any(tested):
    tracker = Tracker(HOST)
    tested.runtime.providers[HOST] = tracker
    answer = await tested.post("update-settings", ticket_issues=True, quarantine_enabled=True)
    assert answer.is_problem(422, "issues_not_writable")
    assert answer.json["settings"] == ["ticket_issues"]
    assert answer.json["detail"].startswith("The App does not have the permission")
    assert await tested.done("get-settings") == DEFAULTS
    assert await tested.settings(ticket_issues=False) == DEFAULTS
    tracker.refusal = None
    assert await tested.settings(ticket_issues=True) == DEFAULTS | {"ticket_issues": True}


async def test_each_endpoint_asks_for_its_role(tested):
    await tested.ran(a="f")
    one = {"test_id": tested.id_of("a")}
    own = tested.client.instance
    page = {"page_query": {"page_size": 1}}
    span = {"start_time": stamp(tested.now), "end_time": stamp(tested.now)}
    said = {"override": "NEVER_QUARANTINE", "reason": "x"}
    reads, checks, queues, admins = {"read"}, {"ci"}, {"queue", "admin"}, {"admin"}
    table: list[tuple[str, dict[str, Any], set[str]]] = [
        ("list-unhealthy-tests", {"status": "FLAKY", **page}, reads | queues),
        ("list-failing-tests", {**span, **page}, reads | queues),
        ("list-quarantined-tests", page, reads | queues),
        ("list-tests", page, reads | queues),
        ("get-test-details", one, reads | queues),
        ("get-test-history", one, reads | queues),
        ("check-quarantine", {"tests": [one]}, checks | queues),
        ("link-ticket-to-test-case", {"test_case_id": one["test_id"], "html_url": ""}, queues),
        ("flag-test", {**one, "flag": "NONE"}, queues),
        ("set-quarantine-override", one | said, admins),
        ("get-settings", {}, reads | queues),
        ("update-settings", {}, admins),
    ]
    tokens = {
        "read": own.read_token,
        "ci": own.ci_token,
        "queue": own.queue_token,
        "admin": own.admin_token,
    }
    for name, body, allowed in table:
        for role, token in tokens.items():
            answer = await tested.post(name, token, **body)
            if role in allowed:
                assert answer.status == 200, (name, role, answer.json)
            else:
                assert answer.is_problem(403, "missing_role"), (name, role)
