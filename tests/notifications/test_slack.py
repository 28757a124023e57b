"""Messages as one text for Slack: what it says, and that texts of others stay inert."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.notifications import messages, slack
from service.vocabulary import EndpointFormat

PAGE = "https://queue.example.org/octo/widgets/main/pull/5"
LOG = "https://github.com/octo/widgets/actions/runs/7"
ABOUT = {
    "organization": "octo",
    "repository": {"host": "github.com", "owner": "octo", "name": "widgets"},
    "target_branch": "main",
}
PULL = {**ABOUT, "pr_number": 5, "http_details_url": PAGE, "reason_message": "unit failed."}
TEST = {
    "name": "tests/cart.py::total",
    "message": "1 != 2",
    "fails_on": "main",
    "log": LOG,
    "page": "https://queue.example.org/t/1?a=1&b=2",
}
FAILED = {
    **PULL,
    "type": "pull_request.failed",
    "failures": {
        "text": "It failed in 2 test runs.",
        "checks": [{"name": "unit", "url": LOG, "because": None}],
        "tests": [TEST],
    },
}
HELD = {
    **ABOUT,
    "type": "queue.held",
    "http_details_url": "https://queue.example.org/octo/widgets/main",
    "reason": "base_red",
    "actor": {"kind": "system", "login": None},
    "hold": {"reason": "base_red", "message": "main itself fails its required checks."},
}


def test_a_failure_names_the_tests_their_logs_and_how_the_cause_was_found():
    assert slack.text_of(FAILED).splitlines() == [
        f"❌ <{PAGE}|octo/widgets#5> for `main` was not merged: unit failed.",
        f"• `unit` failed (<{LOG}|log>)",
        "• `tests/cart.py::total` `1 != 2` also fails on `main` "
        f"<https://queue.example.org/t/1?a=1&amp;b=2|history> (<{LOG}|log>)",
        "It failed in 2 test runs.",
    ]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            {**PULL, "type": "pull_request.merged", "merged_sha": "ab12cd3" + "0" * 33},
            f"🟣 <{PAGE}|octo/widgets#5> for `main` was merged as `ab12cd3`.",
        ),
        (
            {**PULL, "type": "pull_request.canceled", "failures": None},
            f"🚫 <{PAGE}|octo/widgets#5> for `main` left the queue: unit failed.",
        ),
        (
            {**PULL, "type": "pull_request.testing", "http_details_url": None},
            "`pull_request.testing`: octo/widgets#5 for `main` unit failed.",
        ),
        (
            HELD,
            "⏸️ The queue for `main` of octo/widgets "
            "(<https://queue.example.org/octo/widgets/main|page>) is held: "
            "main itself fails its required checks.",
        ),
        (
            {**HELD, "type": "queue.released", "http_details_url": None},
            "▶️ The queue for `main` of octo/widgets: the hold `base_red` has ended",
        ),
        (
            {
                **ABOUT,
                "type": "queue.state_changed",
                "status": "PAUSED",
                "reason": "freeze",
                "actor": {"kind": "person", "login": "bob"},
            },
            "The queue for `main` of octo/widgets is paused now (by `bob`): freeze",
        ),
        (
            {**HELD, "type": "queue.landing_mismatch", "http_details_url": None},
            "🚨 The queue for `main` of octo/widgets: what landed is not what was tested. base_red",
        ),
        (
            {**ABOUT, "type": "queue.state_changed", "status": "RUNNING", "reason": None},
            "The queue for `main` of octo/widgets is running now.",
        ),
        (
            {"type": "webhook.test", "organization": "octo"},
            "This is a test by Headgate for `octo`.",
        ),
        (
            {"type": "webhook.endpoint_disabled", "organization": "octo", "reason": "Gone."},
            "⚠️ A webhook endpoint was disabled: Gone.",
        ),
        (
            {
                "type": "test_case.status_changed",
                "organization": "octo",
                "repository": ABOUT["repository"],
                "test_case": {"html_url": "https://queue.example.org/t/1"},
            },
            "`test_case.status_changed`: octo/widgets <https://queue.example.org/t/1|details>",
        ),
    ],
)
def test_each_message_has_a_sentence(message, text):
    assert slack.text_of(message) == text


def test_the_body_has_the_one_field_that_slack_reads():
    body = orjson.dumps(FAILED).decode()
    assert slack.body_of(body, EndpointFormat.JSON) == body
    sent = slack.body_of(body, EndpointFormat.SLACK)
    assert orjson.loads(sent) == {"text": slack.text_of(FAILED)}
    assert slack.body_of(body, EndpointFormat.SLACK) == sent


@pytest.mark.parametrize("name", messages.EVENTS)
def test_a_message_without_any_field_has_a_text_too(name):
    assert slack.text_of({"type": name})


BAD = "x <!channel> <https://evil.example|log> @all @here [a](https://evil.example) & y"


def test_texts_of_others_mention_nobody_and_hide_no_address():
    test = {**TEST, "name": BAD, "message": BAD, "log": "https://evil.example/1"}
    checks = [{"name": BAD, "url": "https://evil.example/2"}]
    failures = {"text": BAD, "checks": checks, "tests": [test]}
    text = slack.text_of({**FAILED, "reason_message": BAD, "failures": failures})
    outside = "".join(text.split("`")[::2])
    assert "<!" not in text
    assert "<https://evil" not in text
    assert "](" not in outside
    assert not re.search("@[a-z]", outside)


words = st.text(st.characters(codec="utf-8"), max_size=40)


@given(words, words, words)
def test_markup_is_ours_alone(name, message, why):
    test = {**TEST, "name": name, "message": message}
    failures = {"text": why, "checks": [], "tests": [test]}
    text = slack.text_of({**FAILED, "reason_message": why, "failures": failures})
    # The page, the history and the log, and no code span of another is left open.
    assert text.count("<") == text.count(">") == 3
    test_line = text.splitlines()[1]
    assert test_line.count("`") % 2 == 0
