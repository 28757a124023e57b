"""The issue of a test in every state, as text; and that foreign reports do nothing in it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.testhealth import tickets
from service.testhealth.detector.quarantine import QuarantineSetting
from service.testhealth.store.failing import CommonFailure
from service.testhealth.store.figures import Rates
from service.testhealth.store.listings import ListedCase
from service.testhealth.tickets import TicketText
from service.text.markdown import Links
from service.vocabulary import Health, Override
from tests.harness import effort
from tests.harness.expect import expect
from tests.wording import hygiene
from tests.wording.test_markdown import foreign

SINCE = datetime(2026, 3, 5, 9, 40, tzinfo=UTC)
ID = "5f0c5c52-8a0c-5c1a-9a55-3f3b1d6f2c10"
PAGE = f"https://queue.example.org/octo/widgets/tests/{ID}"

CASE = ListedCase(
    no=7,
    id=ID,
    name="test_total[7]",
    classname="TestCart",
    parent="ui",
    file="tests/ui/test_cart.py",
    variant="py3.13",
    owners=("@octo/web", "@carol"),
    status=Health.FLAKY,
    reason="Passed and failed on the same code 3 times (weight 2.05) in 203 runs in 14 days "
    "(job unit / linux); this fits a flaky test 252 times as well as a healthy one (flaky from "
    "100).",
    since=SINCE,
    impact=3,
    cost_ms=0,
    first_run_at=SINCE,
    last_failed_at=SINCE,
    override=Override.UNSPECIFIED,
    override_reason="",
    override_at=None,
    expires_at=None,
    ticket=None,
    setting=QuarantineSetting.AUTO_QUARANTINE,
    rates=Rates(0.0492, 0.2),
    failures=(
        CommonFailure("AssertionError: 10.0 != 10.01", 31, SINCE + timedelta(hours=4), ""),
        CommonFailure("TimeoutError: no answer from cart:8080", 1, SINCE, ""),
    ),
)
FLAKY = TicketText(
    CASE, PAGE, Links("https://github.com/octo/widgets", "https://queue.example.org"), "1.2.3"
)


def changed(text: TicketText, **fields: Any) -> TicketText:
    """The text of a test with other fields."""
    return replace(text, case=text.case._replace(**fields))


BROKEN = changed(
    FLAKY,
    status=Health.BROKEN,
    reason="Failed on the last 5 runs of main since a1b2c3d (job unit / linux); before that 3 of "
    "143 failed, so the chance of 5 in a row was 1 in 25,000,000 (broken from 1 in 20,000 on).",
)
HEALTHY = changed(
    FLAKY,
    status=Health.HEALTHY,
    reason="Not flaky since 2026-03-09: no disagreement in 415 runs over 8 days.",
    setting=None,
    impact=0,
    failures=(),
)
BARE = replace(
    changed(FLAKY, classname="", file="", variant="", owners=(), failures=(), setting=None),
    page=None,
)
TEXTS = {"flaky": FLAKY, "broken": BROKEN, "healthy": HEALTHY, "bare": BARE}


@pytest.mark.parametrize("name", TEXTS)
def test_the_issue(name: str):
    text = tickets.body(TEXTS[name])
    assert hygiene.faults(text) == []
    assert text.startswith(tickets.marker(ID) + "\n")
    expect(f"{tickets.title(TEXTS[name])}\n\n{text}").matches(f"ticket-{name}.txt")


COMMENTS = {
    "flaky": (FLAKY, None),
    "broken": (BROKEN, None),
    "healthy": (HEALTHY, None),
    "flaky-while-closed": (FLAKY, SINCE + timedelta(days=10)),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_the_comment_on_a_new_status(name: str):
    text = tickets.comment(*COMMENTS[name])
    assert hygiene.faults(text) == []
    expect(text).matches(f"ticket-comment-{name}.txt")


def test_only_our_own_page_is_linked():
    assert hygiene.links(tickets.body(FLAKY)) == [PAGE]
    assert hygiene.links(tickets.body(BARE)) == []


@settings(max_examples=effort.examples(60))
@given(foreign, foreign, st.sampled_from(list(Health)))
def test_whatever_reports_say_is_inert(text: str, other: str, status: Health):
    view = changed(
        FLAKY,
        name=text,
        classname=other,
        file=text,
        variant=other,
        owners=(text, other),
        status=status,
        reason=text,
        failures=tuple(CommonFailure(each, 2, SINCE, "") for each in (text, other, "")),
    )
    for written in (tickets.body(view), tickets.comment(view, SINCE)):
        assert hygiene.faults(written) == []
        assert len(written) < 10_000
    assert len(tickets.title(view)) <= 256
    assert "\n" not in tickets.title(view)
