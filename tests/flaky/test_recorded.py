"""Reports that real runners wrote over our samples; recorded/record.py writes them anew."""

from pathlib import Path

import pytest

from service.testhealth.reports import failures, reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, FileStatus, Outcome
from tests.flaky.dialects import lines, shown
from tests.flaky.recorded.record import RUNNERS
from tests.flaky.test_truths import COUNTS

RECORDED = Path(__file__).parent / "recorded"

THUS = "fails <b>so</b> & thus"
UMLAUTS = "cart with a discount handles ümlauts"
CTRF = "cart.test.js > cart"
SUITE = "test_cart.Cart"

FOUND = {
    "pytest": r"""
        passed | pytest | tests.test_cart.TestCart | test_total |
        failed | pytest | tests.test_cart.TestCart | test_discount |
        passed | pytest | tests.test_cart.TestCart | test_names[plain] |
        passed | pytest | tests.test_cart.TestCart | test_names[t\xe4/st] |
        passed | pytest | tests.test_cart.TestCart | test_names[a::b] |
        skipped | pytest | tests.test_cart | test_skipped |
        failed | pytest | tests.test_cart | test_setup |
        skipped | pytest | tests.test_cart | test_expected_to_fail |
        """,
    "pytest-xunit1": r"""
        passed | pytest | tests.test_cart.TestCart | test_total | tests/test_cart.py:7
        failed | pytest | tests.test_cart.TestCart | test_discount | tests/test_cart.py:10
        passed | pytest | tests.test_cart.TestCart | test_names[plain] | tests/test_cart.py:13
        passed | pytest | tests.test_cart.TestCart | test_names[t\xe4/st] | tests/test_cart.py:13
        passed | pytest | tests.test_cart.TestCart | test_names[a::b] | tests/test_cart.py:13
        skipped | pytest | tests.test_cart | test_skipped | tests/test_cart.py:18
        failed | pytest | tests.test_cart | test_setup | tests/test_cart.py:28
        skipped | pytest | tests.test_cart | test_expected_to_fail | tests/test_cart.py:32
        """,
    "unittest": f"""
        passed | {SUITE} | test_cart.Cart | test_total | test_cart.py:6
        failed | {SUITE} | test_cart.Cart | test_discount | test_cart.py:9
        failed | {SUITE} | test_cart.Cart | test_parts (part=2) | test_cart.py:19
        failed | {SUITE} | test_cart.Cart | test_throws | test_cart.py:12
        skipped | {SUITE} | test_cart.Cart | test_skipped | test_cart.py:15
        """,
    "jest": f"""
        passed | cart | cart adds up | cart adds up |
        failed | cart | cart with a discount {THUS} | cart with a discount {THUS} |
        passed | cart | {UMLAUTS} | {UMLAUTS} |
        skipped | cart | cart is left out | cart is left out |
        """,
    "jest-ctrf": f"""
        passed | {CTRF} |  | cart adds up | cart.test.js
        failed | {CTRF} > with a discount |  | cart with a discount {THUS} | cart.test.js
        passed | {CTRF} > with a discount |  | {UMLAUTS} | cart.test.js
        skipped | {CTRF} |  | cart is left out | cart.test.js
        """,
    "mocha": f"""
        passed | cart | adds up | cart adds up | test/cart.js
        failed | with a discount | {THUS} | cart with a discount {THUS} | test/cart.js
        passed | with a discount | handles ümlauts | {UMLAUTS} | test/cart.js
        """,
    "vitest": """
        passed | cart.test.js | cart.test.js | cart > adds up |
        failed | cart.test.js | cart.test.js | cart > with a discount > fails <b>so</b> & thus |
        passed | cart.test.js | cart.test.js | cart > with a discount > handles ümlauts |
        skipped | cart.test.js | cart.test.js | cart > is left out |
        """,
    "node": """
        passed | cart | test | adds up |
        failed | cart/with a discount | test | fails <b>so</b> & thus |
        passed | cart/with a discount | test | handles ümlauts |
        skipped | cart | test | is left out |
        """,
    "playwright": """
        passed | cart.play.js | cart.play.js | cart \u203a adds up |
        passed | cart.play.js | cart.play.js | cart \u203a passes when tried again |
        failed | cart.play.js | cart.play.js | cart \u203a fails each time |
        skipped | cart.play.js | cart.play.js | cart \u203a is left out |
        """,
    "ctest": """
        passed | (empty) | adds_up | adds_up |
        failed | (empty) | fails | fails |
        skipped | (empty) | is_disabled | is_disabled |
        """,
    "surefire": """
        passed | CartTest | CartTest | addsUp |
        skipped | CartTest | CartTest | isLeftOut |
        failed failed | CartTest | CartTest | fails |
        passed | CartTest | CartTest | names(String)[1] |
        passed | CartTest | CartTest | names(String)[2] |
        passed | CartTest | CartTest | names(String)[3] |
        failed passed | CartTest | CartTest | passesWhenTriedAgain |
        failed failed | CartTest | CartTest | throwsSomething |
        """,
}

HEADLINES = {
    "pytest": "AssertionError: two red & <b>bold</b>\nassert [1, 2] == [1, 3]",
    "unittest": "AssertionError: 1 != 2",
    "jest": "Error: 10 != 11",
    "jest-ctrf": "Error: 10 != 11",
    "mocha": "Error: 10 != 11",
    "vitest": "Error: 10 != 11",
    "node": "testCodeFailure: 10 != 11",
    "playwright": "expect.toBe: expect(received).toBe(expected) // Object.is equality",
    "ctest": "",
    "surefire": "org.opentest4j.AssertionFailedError: <b>so</b> & thus ==> expected: <10>",
}


def read(name):
    """The recorded report; its runner ran in /build."""
    return reports.read(recording(name).read_bytes(), None, ReadOptions(source_root="/build"))


def recording(name):
    """The file of a runner."""
    (path,) = (each for each in recordings() if each.stem == name)
    return path


def recordings():
    """The files of all runners."""
    return [each for each in RECORDED.iterdir() if each.is_file() and each.suffix != ".py"]


def test_every_runner_is_recorded_and_read():
    kept = {path.stem for path in recordings()}
    assert set(FOUND) | set(COUNTS) == set(RUNNERS) == kept


@pytest.mark.parametrize("name", FOUND)
def test_a_recorded_report_gives_its_cases(name):
    report = read(name)
    assert report.status is FileStatus.ACCEPTED
    assert shown(report.cases) == lines(FOUND[name])
    assert all(case.kind is CaseKind.TEST for case in report.cases)


@pytest.mark.parametrize("name", HEADLINES)
def test_a_recorded_failure_has_a_headline_without_escapes(name):
    failed = [case for case in read(name).cases if case.outcome is Outcome.FAILED]
    headline = failures.headline_of(failed[0].attempts[-1])
    assert headline.startswith(HEADLINES[name])
    assert "\x1b" not in headline
    assert "\ufffd" not in headline
