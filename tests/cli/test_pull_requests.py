"""`submit`, `cancel`, `restart`, `status`, `explain`, `land`: what is sent, said, returned."""

import json

import pytest

from bot.cli import app, pull_requests
from bot.cli.client import Client
from bot.cli.destination import Queue
from bot.cli.exits import STEP_EXITS, Exit, Failed
from bot.cli.pull_requests import Submission
from bot.uploader.transport import Clock
from service.mergequeue.reasons.record import StepKind
from service.vocabulary import RepoRef
from tests.cli import service
from tests.cli.service import (
    ENDED,
    FAILURES,
    HISTORY,
    LOG,
    PAGE,
    SKIPPED,
    a_condition,
    a_record,
    a_step,
    an_explanation,
)

TARGET = {
    "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
    "targetBranch": "main",
}


def headgate(*arguments):
    return app.run([*arguments, "--branch", "main"])


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (["submit", "3"], "/submitPullRequest", {"pr": {"number": 3}}),
        (
            ["submit", "3", "--priority", "urgent", "--no-batch", "--sha", "a1b2c3d"],
            "/submitPullRequest",
            {"pr": {"number": 3, "sha": "a1b2c3d"}, "priority": "urgent", "noBatch": True},
        ),
        (["cancel", "3"], "/cancelPullRequest", {"pr": {"number": 3}}),
        (
            ["cancel", "3", "--reason", "not now"],
            "/cancelPullRequest",
            {"pr": {"number": 3}, "reason": "not now"},
        ),
        (["restart", "3"], "/restartTestsOnPullRequest", {"pr": {"number": 3}}),
        (["status", "3"], "/getSubmittedPullRequest", {"pr": {"number": 3}}),
    ],
)
def test_a_command_is_one_request(api, capsys, arguments, path, body):
    api.says(path, a_record())
    assert headgate(*arguments) == 0
    assert [(each[0], each[1]) for each in api.asked] == [(path, TARGET | body)]
    assert "#3 Cart totals" in capsys.readouterr().out


@pytest.mark.parametrize(("given", "sent"), [("Urgent", "urgent"), ("17", "17")])
def test_a_priority_is_a_word_of_chat_or_a_number(api, given, sent):
    api.says("/submitPullRequest", a_record())
    assert headgate("submit", "3", "-p", given) == 0
    assert api.asked[0][1]["priority"] == sent


@pytest.mark.parametrize("given", ["asap", "256", "-1", "", "\uff11\uff12", "9" * 5000])
def test_another_word_is_no_priority(api, capsys, given):
    assert headgate("submit", "3", f"--priority={given}") == 2
    assert capsys.readouterr().err == (
        f"headgate: {given!r} is not a priority. "
        "Give urgent, high, medium, low, lowest or 0 to 255.\n"
    )
    assert api.asked == []


def test_a_record_is_shown_with_state_place_and_reason(api, capsys):
    api.says("/getSubmittedPullRequest", a_record())
    headgate("status", "3")
    assert capsys.readouterr().out.splitlines() == [
        "octo/widgets #3 Cart totals",
        "State     🕒 PENDING",
        "Because   It waits for a slot.",
        "Place     3rd of 7",
        "Head      a1b2c3d4e5f6",
        "Priority  medium (100)",
    ]


def test_json_is_the_record_as_the_api_answers_it(api, capsys):
    api.says("/getSubmittedPullRequest", a_record())
    headgate("status", "3", "--json")
    assert json.loads(capsys.readouterr().out) == a_record()


def test_a_title_cannot_paint_the_terminal(api, capsys):
    api.says("/getSubmittedPullRequest", a_record(prTitle="a\x1b[31m[bold]b\u202e\n#9 MERGED"))
    headgate("status", "3")
    assert capsys.readouterr().out.splitlines()[0] == "octo/widgets #3 a [31m[bold]b  #9 MERGED"


@pytest.mark.parametrize(("state", "code"), [("MERGED", 0), ("FAILED", 1), ("CANCELLED", 1)])
@pytest.mark.parametrize("command", ["submit", "status"])
def test_who_waits_learns_the_end_by_the_exit_code(api, command, state, code):
    api.says("/submitPullRequest", a_record(state))
    api.says("/getSubmittedPullRequest", a_record(state))
    assert headgate(command, "3", "--wait") == code


def test_a_status_is_a_success_whatever_it_says(api):
    api.says("/getSubmittedPullRequest", a_record("FAILED"))
    assert headgate("status", "3") == 0


@pytest.mark.parametrize(("state", "code"), [("merged", 0), ("failed", 1)])
def test_a_service_that_answers_in_lower_case_is_understood(api, capsys, state, code):
    api.says("/getSubmittedPullRequest", a_record(state))
    assert headgate("status", "3", "--wait") == code
    assert state.upper() in capsys.readouterr().out


def test_a_wait_that_is_over_ends_with_7_and_says_that_it_stays_queued(api, capsys):
    api.says("/getSubmittedPullRequest", a_record())
    assert headgate("status", "3", "--wait", "--timeout", "0s") == 7
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == (
        "headgate: the wait is over and #3 is still queued "
        "(PENDING, 3rd of 7: It waits for a slot). "
        "It stays in the queue; wait again with `headgate status 3 --watch`."
    )


def test_explain_says_what_is_met_and_what_is_open(api, capsys):
    api.says("/explainPullRequest", an_explanation())
    assert headgate("explain", "3") == 0
    assert capsys.readouterr().out.splitlines() == [
        "#3 🕒 PENDING  In the queue, 3rd of 7.",
        "  ✓ The queue is running.",
        "  ○ 2 of 2 test slots are in use.",
        "Next      A test run ends.",
        "To do     WAIT: Wait until a slot is free.",
        "Then      headgate next 3 --wait",
        "Ahead     #1, #2",
        "Required  lint, test",
    ]


def test_explain_ticks_off_no_condition_that_counts_without_being_so(api, capsys):
    conditions = [
        a_condition("status_passed", "skipped", "Check `e2e` was skipped."),
        a_condition("status_passed", "excused", "Check `unit` failed, excused."),
        a_condition("undoes_landed_work", "unknown", "Whether it takes back work was not judged."),
    ]
    api.says("/explainPullRequest", an_explanation(conditions=conditions))
    assert headgate("explain", "3") == 0
    said = capsys.readouterr().out
    assert "  ⊘ Check `e2e` was skipped.\n" in said
    assert "  ! Check `unit` failed, excused.\n" in said
    assert "  ? Whether it takes back work was not judged.\n" in said
    assert "✓" not in said


def test_explain_names_those_it_is_tested_on_the_search_and_what_is_believed(api, capsys):
    search = "The cause is found (among #3 and #4; #1 and #2 passed; 1 test run under way)."
    conditions = [
        {"code": "ahead_decided", "met": True, "text": "Everything ahead is decided."},
        {"code": "bisection_done", "met": False, "text": search},
    ]
    believed = {"percent": 97, "text": "97 % to blame: failed alone twice."}
    answer = an_explanation(
        "PENDING_FAILURE", conditions=conditions, dependsOn=[1], suspicion=believed
    )
    answer["suspects"] = [3, 4]
    api.says("/explainPullRequest", answer)
    assert headgate("explain", "3") == 0
    assert capsys.readouterr().out.splitlines() == [
        "#3 🔎 PENDING_FAILURE  In the queue, 3rd of 7.",
        "  ✓ Everything ahead is decided.",
        f"  ○ {search}",
        "Suspicion  97 % to blame: failed alone twice.",
        "Suspects   #3, #4",
        "Next       A test run ends.",
        "To do      WAIT: Wait until a slot is free.",
        "Then       headgate next 3 --wait",
        "Ahead      #1, #2",
        "Tested on  #1",
        "Required   lint, test",
    ]


def test_explain_names_what_failed_where_to_look_and_how_sure_it_is(api, capsys):
    answer = an_explanation("FAILED", **ENDED, failures=FAILURES, requiredChecks=[SKIPPED])
    api.says("/explainPullRequest", answer)
    assert headgate("explain", "3") == 0
    assert capsys.readouterr().out.splitlines() == [
        "#3 ❌ FAILED  In the queue, 3rd of 7.",
        "  ⊘ e2e was skipped.",
        "  ✗ unit",
        f"      {LOG}",
        "  ✗ tests/cart.py::test_total (new, also fails on main)",
        "      10.01 != 10.0",
        "      tests/cart.py:12",
        f"      {LOG}",
        f"      {HISTORY}",
        "      | def test_total():",
        "      |     assert 10.01 == 10.0",
        "  and 2 more",
        "  It failed in 2 test runs.",
        "Next      A test run ends.",
        "To do     WAIT: Wait until a slot is free.",
        "Then      headgate next 3 --wait",
        "Required  lint, test",
        f"Page      {PAGE}",
    ]


def test_an_excused_failure_is_called_so_once_and_has_not_the_mark_of_a_failure(api, capsys):
    test = FAILURES["tests"][0] | {"knownAs": "excused", "quarantined": True, "failsOn": None}
    answer = an_explanation("FAILED", failures=FAILURES | {"tests": [test]})
    api.says("/explainPullRequest", answer)
    assert headgate("explain", "3") == 0
    assert "  ! tests/cart.py::test_total (excused)\n" in capsys.readouterr().out


def test_land_says_the_same_after_a_failure(api, capsys):
    record = a_record("FAILED", requiredChecks=[SKIPPED], links={"page": PAGE})
    api.says("/submitPullRequest", record)
    api.says("/explainPullRequest", an_explanation("FAILED", failures=FAILURES))
    assert headgate("land", "3") == 1
    shown = capsys.readouterr().out.splitlines()
    for line in ("  ⊘ e2e was skipped.", f"      {LOG}", "      10.01 != 10.0"):
        assert line in shown
    assert "  It failed in 2 test runs." in shown
    assert any(line.endswith(PAGE) for line in shown)


@pytest.mark.parametrize(
    ("state", "outcome", "code"),
    [("MERGED", "merged", 0), ("FAILED", "failed", 1), ("CANCELLED", "removed", 1)],
)
def test_land_ends_with_record_outcome_and_explanation(api, capsys, state, outcome, code):
    api.says("/submitPullRequest", a_record(state))
    api.says("/explainPullRequest", an_explanation(state))
    assert headgate("land", "3", "--json") == code
    explanation = an_explanation(state)
    told = {"nextStep": explanation["nextStep"], "explanation": explanation}
    expected = a_record(state) | {"outcome": outcome} | told
    assert json.loads(capsys.readouterr().out) == expected


def test_land_without_waiting_only_submits(api, capsys):
    api.says("/submitPullRequest", a_record())
    api.says("/explainPullRequest", an_explanation())
    assert headgate("land", "3", "--no-wait", "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "PENDING"
    assert api.paths() == ["/submitPullRequest", "/explainPullRequest"]


def test_landing_what_is_merged_is_done(api):
    api.refuses("/submitPullRequest", 422, "pull_request_merged")
    api.says("/getSubmittedPullRequest", a_record("MERGED"))
    api.says("/explainPullRequest", an_explanation("MERGED"))
    assert headgate("land", "3") == 0


@pytest.mark.parametrize("state", ["CANCELLED", "FAILED"])
def test_what_was_closed_or_merged_elsewhere_does_not_land(api, capsys, state):
    api.refuses("/submitPullRequest", 422, "pull_request_closed", "#3 is closed.")
    api.says("/getSubmittedPullRequest", a_record(state))
    assert headgate("land", "3") == 6
    assert capsys.readouterr().err == "headgate: #3 is closed.\n"


def test_a_pull_request_that_never_was_in_the_queue_keeps_its_refusal(api, capsys):
    api.refuses("/submitPullRequest", 422, "pull_request_merged", "#3 is merged already.")
    api.refuses("/getSubmittedPullRequest", 404, "never_submitted")
    assert headgate("land", "3") == 6
    assert capsys.readouterr().err == "headgate: #3 is merged already.\n"


def test_landing_over_time_ends_with_7_and_outcome_timeout(api, capsys):
    api.says("/submitPullRequest", a_record())
    api.says("/getSubmittedPullRequest", a_record())
    api.says("/explainPullRequest", an_explanation())
    assert headgate("land", "3", "--timeout", "0.01s", "--json") == 7
    said = capsys.readouterr()
    assert json.loads(said.out)["outcome"] == "timeout"
    assert "headgate: the wait is over and #3 is still queued" in said.err


def test_a_refused_landing_says_what_to_do_next(api, capsys):
    step = a_step("DROP", text="This PR is closed.")
    api.refuses("/submitPullRequest", 422, "pull_request_closed", "#3 is closed.", next_step=step)
    api.refuses("/getSubmittedPullRequest", 404, "never_submitted")
    assert headgate("land", "3", "--json") == 6
    said = capsys.readouterr()
    assert json.loads(said.out) == {"prNumber": 3, "outcome": "refused", "nextStep": step}
    assert said.err == "headgate: #3 is closed.\n"


@pytest.mark.parametrize(("kind", "code"), STEP_EXITS.items())
def test_the_exit_code_names_the_next_step(api, capsys, kind, code):
    api.says("/getNextStep", a_step(kind))
    assert headgate("next", "3", "--json") == code
    assert json.loads(capsys.readouterr().out) == a_step(kind)


def test_every_kind_of_step_has_an_exit_code_of_its_own():
    assert set(STEP_EXITS) == {kind.value for kind in StepKind}
    assert len(set(STEP_EXITS.values())) == len(STEP_EXITS)
    assert not set(STEP_EXITS.values()) & {code.value for code in Exit if code is not Exit.DONE}


def test_next_waits_until_there_is_something_to_do(api, capsys):
    asks = a_step("ASK", text="Ask a maintainer.", person="alice", at="2026-03-02T14:19:02.000Z")
    for step in (asks, a_step(), a_step(recordVersion="v2"), a_step("REBASE", **CONFLICT)):
        api.says("/getNextStep", step)
    assert headgate("next", "3", "--wait", "--after", "of ASK") == 12
    asked = [(body.get("sinceVersion"), body.get("waitFor")) for _, body, _ in api.asked]
    assert asked == [("of ASK", 25), ("of ASK", 25), ("of WAIT", 25), ("v2", 25)]
    assert capsys.readouterr().out.splitlines() == [
        "#3 REBASE  Rebase it.",
        "Onto         a1b2c3d",
        "In conflict  cart.py",
        "With         #1 by alice (merged)",
        "Then         headgate land 3 --no-wait",
    ]


def test_next_waits_until_the_time_to_submit_again(api):
    early = a_step("RESUBMIT", at="2999-03-02T14:19:02.000Z")
    for step in (early, early, a_step("RESUBMIT", at="2026-03-02T14:19:02.000Z")):
        api.says("/getNextStep", step)
    assert headgate("next", "3", "--wait") == 13
    assert [body.get("waitFor") for _, body, _ in api.asked] == [None, 25, 25]


CONFLICT = {
    "text": "Rebase it.",
    "commit": "a1b2c3d",
    "paths": ["cart.py"],
    "conflictsWith": [{"prNumber": 1, "author": "alice", "merged": True}],
}


def waits(api):
    """How long each question was to wait for a change."""
    asked = [body for path, body, _ in api.asked if path == "/getSubmittedPullRequest"]
    return [body.get("waitFor", 0) for body in asked]


def landed(api, timeout_s):
    said: list[str] = []
    # The service takes all the time that it may.
    clock = Clock(lambda _: None, lambda: sum(waits(api)), lambda: 1_772_409_600.0)
    client = Client(api.url, service.TOKEN, said.append, clock)
    queue = Queue(client, RepoRef("github.com", "octo", "widgets"), "main")
    return pull_requests.submit_and_wait(queue, Submission(3), timeout_s)


def test_land_lets_the_service_answer_at_each_change(api, capsys):
    for place, state in enumerate(("PENDING", "TESTING", "TESTING", "MERGED")):
        api.says("/getSubmittedPullRequest", a_record(state, recordVersion=f"v{place}"))
    api.says("/submitPullRequest", a_record())
    api.says("/explainPullRequest", an_explanation("MERGED"))
    assert (landed(api, 7200))["outcome"] == "merged"
    asked = [body for path, body, _ in api.asked if path == "/getSubmittedPullRequest"]
    assert [body.get("sinceVersion") for body in asked] == [None, "v0", "v1", "v2"]
    assert waits(api) == [0, 25, 25, 25]
    # One line a change, not one a question.
    assert capsys.readouterr().err.splitlines() == [
        "#3 PENDING, 3rd of 7: It waits for a slot.",
        "#3 TESTING, 3rd of 7: It waits for a slot.",
        "#3 MERGED: It is merged.",
    ]


def test_land_never_waits_longer_than_it_was_told(api):
    api.says("/submitPullRequest", a_record())
    api.says("/getSubmittedPullRequest", a_record())
    api.says("/explainPullRequest", an_explanation())
    assert (landed(api, 60))["outcome"] == "timeout"
    assert waits(api) == [0, 25, 25, 10]


def test_a_service_that_cannot_wait_is_named_as_older(api):
    record = a_record()
    del record["recordVersion"]
    api.says("/submitPullRequest", record)
    api.says("/getSubmittedPullRequest", record)
    with pytest.raises(Failed, match="answered without 'recordVersion'"):
        landed(api, 60)


def test_ctrl_c_leaves_it_queued_and_says_so():
    with (
        pytest.raises(Failed, match="#3 keeps its place in the queue") as failed,
        pull_requests.interruptible(3),
    ):
        raise KeyboardInterrupt
    assert failed.value.code == 130
