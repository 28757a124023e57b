"""The tools for agents: what is sent, what is answered, which errors are told."""

from typing import Any

import pytest
from mcp import Client

from bot.cli.agents.server import Service, make_server
from tests.cli import service
from tests.cli.service import (
    ENDED,
    FAILURES,
    LOG,
    PAGE,
    SKIPPED,
    a_record,
    a_step,
    an_explanation,
)

BEYOND: dict[str, Any] = {
    "whoMustAct": "NOBODY",
    "retryable": True,
    "links": {"page": "http://x/3"},
}
FOUND = {"prNumber": 3, "targetBranch": "main"}


@pytest.fixture(name="call")
def _call(api):
    """Call one tool; its structured answer, or the words of its refusal."""
    api.says("/findQueue", FOUND)

    async def call(tool, progress=None, **arguments):
        server = make_server(Service(api.url, service.TOKEN, "octo/widgets"))
        async with Client(server) as client:
            answer = await client.call_tool(tool, arguments, progress_callback=progress)
        return str(answer.content) if answer.is_error else answer.structured_content

    return call


async def test_landing_submits_once_and_tells_the_next_step(api, call):
    api.says("/submitPullRequest", a_record(prTitle="a\x1b[31mb\u202e", **BEYOND))
    api.says("/explainPullRequest", an_explanation())
    state = await call("land_pull_request", number=3, priority="High", sha="a1b2c3d")
    assert api.paths() == ["/findQueue", "/submitPullRequest", "/explainPullRequest"]
    assert api.asked[1][1]["pr"] == {"number": 3, "sha": "a1b2c3d"}
    assert api.asked[1][1]["priority"] == "high"
    assert state["title"] == "a [31mb "
    told = ("outcome", "who_must_act", "position", "page")
    assert [state[name] for name in told] == ["waiting", "nobody", 3, "http://x/3"]
    step = state["next_step"]
    assert (step["kind"], step["call"]["tool"]) == ("WAIT", "what_now")


async def test_landing_takes_the_options_of_the_command_line(api, call):
    api.says("/submitPullRequest", a_record(**BEYOND))
    api.says("/explainPullRequest", an_explanation())
    await call("land_pull_request", number=3, undoes=["7", "#9", "A" * 40], again=True)
    sent = api.asked[1][1]
    assert (sent["undoes"], sent["again"]) == (["#7", "#9", "a" * 40], True)


async def test_waiting_uses_the_long_poll_and_reports_each_change(api, call):
    for record in (a_record(**BEYOND), a_record("TESTING", recordVersion="v2", **BEYOND)):
        api.says("/getSubmittedPullRequest", record)
    api.says("/getSubmittedPullRequest", a_record("MERGED", recordVersion="v3", **BEYOND))
    seen = []

    async def progress(_done, _total, message):
        seen.append(message)

    api.says("/explainPullRequest", an_explanation(nextStep=a_step("DONE")))
    state = await call("wait_for_pull_request", progress, number=3)
    assert (state["outcome"], state["next_step"]["kind"]) == ("merged", "DONE")
    waits = [(body.get("sinceVersion"), body.get("waitFor")) for _, body, _ in api.asked[1:-1]]
    assert waits == [(None, None), ("v1", 10), ("v2", 10)]
    assert [each.split(",")[0] for each in seen] == ["PENDING", "TESTING"]
    assert api.paths().count("/findQueue") == 1


async def test_what_now_tells_the_one_step_with_its_call(api, call):
    api.says("/getNextStep", a_step("FIX", failures=FAILURES, percent=97))
    step = await call("what_now", number=3)
    assert (step["kind"], step["version"], step["percent"]) == ("FIX", "of FIX", 97)
    assert step["failures"]["tests"][0]["line"] == 12
    assert step["call"]["command"] == "headgate land 3 --no-wait"
    assert step["call"]["arguments"] == {"number": 3}


async def test_what_now_waits_until_there_is_something_to_do(api, call):
    for step in (a_step("ASK"), a_step(text="Wait."), a_step("DONE")):
        api.says("/getNextStep", step)
    seen = []

    async def progress(_done, _total, message):
        seen.append(message)

    step = await call("what_now", progress, number=3, seconds=60, after="of ASK")
    assert step["kind"] == "DONE"
    waits = [(body.get("sinceVersion"), body.get("waitFor")) for _, body, _ in api.asked[1:]]
    assert waits == [("of ASK", 10), ("of ASK", 10), ("of WAIT", 10)]
    assert seen[-1] == "Wait."


async def test_what_now_waits_until_the_time_to_submit_again(api, call):
    for at in ("2999-03-02T14:19:02.000Z", None):
        api.says("/getNextStep", a_step("RESUBMIT", at=at))
    assert (await call("what_now", number=3, seconds=60))["at"] is None


async def test_a_refused_submission_has_the_next_step(api, call):
    step = a_step("DROP", text="This PR is closed.")
    api.refuses("/submitPullRequest", 422, "pull_request_closed", "#3 is closed.", next_step=step)
    api.refuses("/getSubmittedPullRequest", 404, "never_submitted")
    said = await call("land_pull_request", number=3)
    assert "#3 is closed." in said
    assert '"kind":"DROP"' in said


async def test_an_explanation_has_the_evidence_of_failures(api, call):
    believed = {"percent": 97, "text": "97 % to blame: failed alone twice."}
    answer = an_explanation(conditions=[], eta=None, etaUnknownReason="", suspicion=believed)
    answer["suspects"] = [3, 12]
    api.says("/explainPullRequest", answer)
    explained = await call("explain_pull_request", number=3)
    assert explained["suspicion"] == "97 % to blame: failed alone twice."
    assert explained["suspects"] == [3, 12]


async def test_what_failed_is_told_with_its_tests_its_logs_and_how_sure_it_is(api, call):
    answer = an_explanation("FAILED", **ENDED, failures=FAILURES, requiredChecks=[SKIPPED])
    api.says("/explainPullRequest", answer)
    told = await call("explain_pull_request", number=3)
    assert told["page"] == PAGE
    assert told["next"] == "A test run ends."
    (check,) = told["failures"]["checks"]
    assert check == {"name": "unit", "url": LOG, "because": None, "failed_before": []}
    (test,) = told["failures"]["tests"]
    assert (test["file"], test["line"], test["message"]) == ("tests/cart.py", 12, "10.01 != 10.0")
    assert (test["known_as"], test["quarantined"], test["log"]) == ("new", False, LOG)
    assert test["trace"] == ["def test_total():", "    assert 10.01 == 10.0"]
    assert test["fails_on"] == "main"
    assert told["failures"]["text"] == "It failed in 2 test runs."
    (skipped,) = told["required_checks"]
    assert (skipped["state"], skipped["text"]) == ("skipped", "e2e was skipped.")
    assert skipped["reporter"] == {
        "kind": "check_run",
        "app": "15368",
        "check_run": "7",
        "attempt": 2,
    }


async def test_a_wait_that_ends_with_a_failure_says_what_failed(api, call):
    api.says("/getSubmittedPullRequest", a_record("FAILED", requiredChecks=[SKIPPED], **BEYOND))
    api.says("/explainPullRequest", an_explanation("FAILED", failures=FAILURES))
    told = await call("wait_for_pull_request", number=3)
    assert told["outcome"] == "failed"
    assert told["failures"]["tests"][0]["name"] == "tests/cart.py::test_total"
    assert told["required_checks"][0]["name"] == "e2e"


@pytest.mark.parametrize(
    ("refusal", "more", "said"),
    [
        ((404, "queue_not_found"), {}, "headgate queue create --branch BRANCH"),
        ((403, "missing_role"), {"required_role": "queue"}, "`headgate token create --role queue`"),
        ((409, "head_mismatch"), {}, "It is another commit."),
    ],
)
async def test_an_error_names_the_mend(api, call, refusal, more, said):
    api.refuses("/submitPullRequest", *refusal, "It is another commit", **more)
    assert said in await call("land_pull_request", number=3)


async def test_a_wrong_word_is_refused_before_anybody_is_asked(api, call):
    assert "urgent, high, medium" in await call("land_pull_request", number=3, priority="asap")
    assert "number" in await call("explain_pull_request", number=0)
    assert "/submitPullRequest" not in api.paths()
