"""What `go test -json` says of tests around subtests, of builds that failed, and of stops."""

import json

import pytest

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, Format


def read(*lines):
    """The report of these lines; an event is given as action, package, test and output."""
    names = ("Action", "Package", "Test", "Output")
    text = "\n".join(
        line if isinstance(line, str) else json.dumps(dict(zip(names, line, strict=False)))
        for line in lines
    )
    return reports.read(text.encode(), Format.GO_JSON, ReadOptions())


def outcomes(report):
    """Name of each case → its attempts as letters."""
    return {case.name: "".join(each.outcome[0] for each in case.attempts) for case in report.cases}


def ran(test, ending, *printed):
    """The events of one test."""
    said = [("output", "p", test, text) for text in printed]
    return [("run", "p", test), *said, (ending, "p", test)]


def around(*inside, own=()):
    """A test that fails around its subtests."""
    return [("run", "p", "T"), *inside, *(("output", "p", "T", text) for text in own)]


FRAMED = "--- FAIL: T (0.00s)\n"


@pytest.mark.parametrize(
    ("inside", "own", "expected"),
    [
        (ran("T/a", "fail"), (FRAMED,), "p"),
        (ran("T/a", "fail"), ("=== CONT  T\n", FRAMED), "p"),
        (ran("T/a", "fail"), ("    t_test.go:9: 10 != 11\n", FRAMED), "f"),
        (ran("T/a", "fail"), ("panic: no\n",), "f"),
        (ran("T/a", "pass"), (FRAMED,), "f"),
        ((), (FRAMED,), "f"),
    ],
)
def test_a_test_fails_with_its_subtests_unless_it_says_why(inside, own, expected):
    report = read(*around(*inside, own=own), ("fail", "p", "T"), ("fail", "p"))
    assert outcomes(report)["T"] == expected


def test_a_failure_deep_inside_is_that_of_the_innermost_test_alone():
    report = read(
        *(("run", "p", name) for name in ("T", "T/a", "T/a/b")),
        *(("fail", "p", name) for name in ("T/a/b", "T/a", "T")),
        ("fail", "p"),
    )
    assert outcomes(report) == {"T": "p", "T/a": "p", "T/a/b": "f"}


def test_each_run_of_a_test_follows_its_own_subtests():
    again = [("run", "p", "T"), ("fail", "p", "T")]
    report = read(*around(*ran("T/a", "fail")), ("fail", "p", "T"), *again, ("fail", "p"))
    assert outcomes(report) == {"T": "pf", "T/a": "f"}


@pytest.mark.parametrize("how", ["build failed", "setup failed"])
def test_a_package_that_is_not_built_is_a_failure_of_the_package(how):
    report = read(
        *ran("T", "pass"),
        ("pass", "p"),
        "# q [q.test]",
        "q/a.go:4:2: undefined: x",
        f"FAIL\tq [{how}]",
        "FAIL",
    )
    failed = [case for case in report.cases if case.kind is CaseKind.SYNTHETIC]
    assert [(case.name, case.classname) for case in failed] == [("(package)", "q")]
    assert failed[0].attempts[0].message == "q/a.go:4:2: undefined: x"
    assert failed[0].attempts[0].is_error


def test_a_package_that_an_event_reports_too_fails_once():
    report = read(("fail", "q"), *ran("T", "pass"), ("pass", "p"), "FAIL\tq [build failed]")
    assert [case.classname for case in report.cases if case.kind is CaseKind.SYNTHETIC] == ["q"]


@pytest.mark.parametrize(
    ("lines", "is_interrupted"),
    [
        ([*ran("T", "pass"), ("pass", "p")], False),
        ([("run", "p", "T"), ("fail", "p")], True),
        (ran("T", "pass"), True),
        ([("start", "p"), *ran("T", "pass"), ("pass", "p")], False),
        ([*ran("T", "pass"), ("pass", "p"), ("start", "q")], True),
    ],
)
def test_what_began_and_did_not_end_was_interrupted(lines, is_interrupted):
    report = read(*lines)
    assert report.is_interrupted is is_interrupted
    assert report.is_whole is not is_interrupted
