"""The rules of JUnit XML, a row of docs/design/reports.md 5 each."""

import pytest

from service.testhealth.reports import duplicates, reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import (
    CaseKind,
    CaseResult,
    Counts,
    FileStatus,
    Outcome,
    WarningCode,
    counts_of,
)
from tests.flaky.dialects import lines, shown

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED


def read(xml, **wishes):
    """The report of a text."""
    return reports.read(xml.encode(), None, ReadOptions(**wishes))


def case_of(inner="", attributes="", **wishes) -> CaseResult:
    """The only case of a report."""
    xml = f'<testsuite name="s"><testcase name="n" {attributes}>{inner}</testcase></testsuite>'
    (case,) = read(xml, **wishes).cases
    return case


def codes(report):
    return [warned.code for warned in report.warnings]


@pytest.mark.parametrize(
    ("inner", "attributes", "expected"),
    [
        ("", "", PASSED),
        ("<failure/>", "", FAILED),
        ("<error/>", "", FAILED),
        ("<skipped/>", "", SKIPPED),
        ("<skipped/><failure/>", "", FAILED),
        ("<passed/>", "", PASSED),
        ("", 'status="run"', PASSED),
        ("", 'status="notrun"', SKIPPED),
        ("", 'status="disabled"', SKIPPED),
        ("", 'status="Skipped"', SKIPPED),
        ("", 'status="ignored"', SKIPPED),
        ("", 'result="suppressed"', SKIPPED),
        ("", 'result="skipped"', SKIPPED),
        ("", 'result="ignored"', SKIPPED),
        ("", 'result="completed"', PASSED),
        ("", 'status="failed"', FAILED),
        ("", 'status="failure"', FAILED),
        ("", 'status="error"', FAILED),
        ("", 'status="errored"', FAILED),
        ("<skipped/>", 'status="failed"', SKIPPED),
        ("<failure/>", 'status="notrun"', FAILED),
        ("<rerunFailure/>", "", PASSED),
        ("<rerunFailure/>", 'status="disabled"', SKIPPED),
    ],
)
def test_an_outcome(inner, attributes, expected):
    assert case_of(inner, attributes).outcome is expected


def test_error_wins_over_failure_and_of_its_kind_the_first():
    case = case_of(
        '<failure message="f"/><error message="e1" type="T">s1</error><error message="e2"/>'
    )
    (attempt,) = case.attempts
    assert (attempt.message, attempt.stack, attempt.error_type) == ("e1", "s1", "T")
    assert attempt.is_error


def test_retries_come_before_the_outcome_and_never_change_it():
    case = case_of(
        '<rerunError type="A" time="0.5"><stackTrace>first line\nmore</stackTrace></rerunError>'
        "<flakyFailure>only text</flakyFailure>"
        '<flakyError message="said"><stackTrace>s</stackTrace><system-out>no</system-out>'
        "</flakyError>",
        'time="2"',
    )
    assert [each.message for each in case.attempts] == ["first line", "only text", "said", ""]
    assert [each.outcome for each in case.attempts] == [FAILED, FAILED, FAILED, PASSED]
    assert [each.is_error for each in case.attempts] == [True, False, True, False]
    assert [each.duration_s for each in case.attempts] == [0.5, None, None, 2]
    assert case.attempts[2].stack == "s"


@pytest.mark.parametrize(
    ("suite", "case", "attempts"),
    [
        ('failures="0" flakes="1"', 'flaky="true"', [FAILED, PASSED]),
        ('failures="1" flakes="0"', 'flaky="false"', [FAILED]),
        ('failures="1" flakes="0"', "", [FAILED]),
        ('failures="1"', 'flaky="true"', [FAILED]),
    ],
)
def test_a_failure_that_firebase_counts_as_a_flake_was_mended_by_a_retry(suite, case, attempts):
    xml = f'<testsuite name="s" {suite}><testcase name="n" {case}><failure/></testcase></testsuite>'
    (found,) = read(xml).cases
    assert [each.outcome for each in found.attempts] == attempts


def test_nested_suites_are_their_joined_names():
    report = read(
        '<testsuites name="all"><testsuite name="a"><testsuite name=""><testsuite name="b/c">'
        '<testcase name="n"/></testsuite></testsuite><testcase name="m"/></testsuite></testsuites>'
    )
    assert shown(report.cases) == "passed | a/b/c |  | n |\npassed | a |  | m |"
    assert [case.outermost_suite for case in report.cases] == ["a", ""]


def test_cases_of_a_class_share_its_name():
    one = '<testcase classname="pkg.Cart" name="n"/>'
    first, second = read(f"<testsuite>{one}{one}</testsuite>").cases
    assert first.classname == "pkg.Cart"
    assert first.classname is second.classname


def test_a_failure_of_a_suite_is_a_failed_test_of_its_own():
    report = read(
        '<testsuites><testsuite name="a" file="a.py"><error message="no database"/>'
        '<testcase name="n"/><system-out>o</system-out></testsuite></testsuites>'
    )
    assert shown(report.cases) == lines(
        """
        failed | a |  | (suite) | a.py
        passed | a |  | n | a.py
        """
    )
    assert report.cases[0].kind is CaseKind.SYNTHETIC
    assert report.cases[0].attempts[0].message == "no database"
    assert counts_of([report]) == Counts(
        files=1,
        tests=1,
        distinct=1,
        passed=1,
        failed=0,
        errors=0,
        skipped=0,
        attempts=1,
        suite_failures=1,
    )


def test_a_case_without_a_name_is_listed_and_no_evidence():
    report = read('<testsuite><testcase/><testcase name=""/><testcase name=" "/></testsuite>')
    assert [case.name for case in report.cases] == ["(unnamed)", "(unnamed)", " "]
    assert [case.kind for case in report.cases] == [CaseKind.UNNAMED] * 2 + [CaseKind.TEST]
    assert codes(report) == [WarningCode.UNNAMED_TESTS]
    assert counts_of([report]).tests == 3


@pytest.mark.parametrize(
    ("attributes", "suite", "expected"),
    [
        ('file="a" filepath="b"', 'file="c" filepath="d"', "a"),
        ('filepath="b"', 'file="c"', "b"),
        ("", 'file="c" filepath="d"', "c"),
        ("", 'filepath="d"', "d"),
        ("", "", "outer"),
        ('file="./x/../y.py"', "", "y.py"),
    ],
)
def test_a_file_is_taken_from_the_nearest(attributes, suite, expected):
    (case,) = read(
        f'<testsuite file="outer"><testsuite {suite}><testcase name="n" {attributes}/>'
        "</testsuite></testsuite>"
    ).cases
    assert case.file == expected


@pytest.mark.parametrize(
    ("line", "expected"), [("7", 7), ("0", 0), ("x", None), ("-1", None), ("9" * 40, None)]
)
def test_a_line_is_kept_when_it_is_one(line, expected):
    for name in ("line", "lineno"):
        assert case_of(attributes=f'{name}="{line}"').line == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [('classname="a.B" class="C"', "a.B"), ('class="C"', "C"), ('classname=""', ""), ("", "")],
)
def test_a_class_is_taken_as_it_is_given(attributes, expected):
    assert case_of(attributes=attributes).classname == expected


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1.5", 1.5),
        ("1,5", 1.5),
        ("1,234.5", 1234.5),
        (".5", 0.5),
        ("0.", 0),
        ("1e-3", 0.001),
        ("2s", 2),
        ("250 ms", 0.25),
        (" 3 ", 3),
        ("10000000", 1e7),
        ("10000001", None),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("<", None),
        ("1:02", None),
        ("1,2,3", None),
    ],
)
def test_a_duration(time, seconds):
    report = read(f'<testsuite><testcase name="n" time="{time.replace("<", "&lt;")}"/></testsuite>')
    assert report.cases[0].attempts[0].duration_s == seconds
    assert codes(report) == ([WarningCode.ODD_TIME] if seconds is None else [])


def test_no_duration_is_no_oddity():
    report = read('<testsuite><testcase name="n"/><testcase name="m" time=""/></testsuite>')
    assert [case.duration_s for case in report.cases] == [None, None]
    assert codes(report) == []


@pytest.mark.parametrize(("wall_s", "factor"), [(None, 1), (1_000, 1), (999 - 60, 1), (5, 1000)])
def test_durations_longer_than_the_job_are_milliseconds(wall_s, factor):
    xml = (
        '<testsuite><testcase name="a" time="999"/><testcase name="b" time="1">'
        '<failure/><rerunFailure time="2"/></testcase></testsuite>'
    )
    report = read(xml, wall_s=wall_s)
    durations = [each.duration_s for case in report.cases for each in case.attempts]
    assert durations == [999 / factor, 2 / factor, 1 / factor]
    assert codes(report) == ([WarningCode.MILLISECONDS] if factor != 1 else [])


def test_properties_of_a_case_are_kept_and_those_of_a_suite_are_not():
    many = "".join(f'<property name="p{n}" value="{n}"/>' for n in range(60))
    (case,) = read(
        '<testsuite><properties><property name="os" value="x"/></properties><testcase name="n">'
        f'<properties><property name="t">text</property>{many}</properties></testcase></testsuite>'
    ).cases
    assert case.properties[:2] == (("t", "text"), ("p0", "0"))
    assert len(case.properties) == 50
    long = case_of(f'<property name="{"k" * 300}" value="{"v" * 300}"/>')
    assert long.properties == (("k" * 255, "v" * 255),)


@pytest.mark.parametrize(
    ("inner", "attributes", "claimed"),
    [
        ("", 'id="trunk:1"', "trunk:1"),
        ("", 'id="06cb6db5-f807-5198-b072-af67a0636f8a"', "06cb6db5-f807-5198-b072-af67a0636f8a"),
        ("", 'id="17"', ""),
        ('<property name="id" value="headgate:a"/>', "", "headgate:a"),
        ('<property name="id" value="headgate:a"/>', 'id="trunk:1"', "trunk:1"),
        ('<property name="id" value="17"/>', "", ""),
    ],
)
def test_an_id_that_counts_is_claimed(inner, attributes, claimed):
    assert case_of(inner, attributes).claimed_id == claimed


def test_output_is_kept_of_failed_cases_alone_its_end():
    long = "x" * 5_000
    failed = case_of(f"<system-out>{long}</system-out><failure/><system-err>end</system-err>")
    assert failed.output == "x" * 3_997 + "end"
    assert case_of("<system-out>out</system-out>").output == ""


def test_output_of_a_suite_belongs_to_its_only_case():
    one = '<testcase name="n"><failure/></testcase>'
    only = read(f"<testsuite>{one}<system-out>o</system-out></testsuite>")
    two = read(f"<testsuite>{one}{one}<system-out>o</system-out></testsuite>")
    own = read(
        '<testsuite><testcase name="n"><failure/><system-out>own</system-out></testcase>'
        "<system-out>o</system-out></testsuite>"
    )
    nested = read(f"<testsuite><testsuite>{one}</testsuite><system-err>o</system-err></testsuite>")
    assert [case.output for case in only.cases] == ["o"]
    assert [case.output for case in two.cases] == ["", ""]
    assert [case.output for case in own.cases] == ["own"]
    assert [case.output for case in nested.cases] == ["o"]


def test_a_missing_message_is_the_first_meaningful_line():
    text = '\n  ----\nTraceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 1'
    attempt = case_of(f'<failure message=" ">{text}</failure>').attempts[0]
    assert attempt.message == "KeyError: 1"
    assert attempt.stack == text


def test_a_long_stack_keeps_its_start_and_its_end():
    stack = case_of(f"<failure>{'a' * 7_000}{'b' * 7_000}</failure>").attempts[0].stack
    assert stack == f"{'a' * 6_000}\n…\n{'b' * 2_000}"


def test_a_long_message_is_cut_with_a_warning():
    report = read(
        f'<testsuite><testcase name="n"><failure message="{"m" * 9_000}"/></testcase></testsuite>'
    )
    assert len(report.cases[0].attempts[0].message) == 8_000
    assert codes(report) == [WarningCode.TEXT_CUT]


def test_a_skipped_case_keeps_its_reason():
    assert case_of('<skipped message="why"/>').attempts[0].message == "why"
    assert case_of("<skipped>why</skipped>").attempts[0].message == "why"


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        ('<report><testcase name="n"/></report>', WarningCode.UNEXPECTED_ROOT),
        ("<testsuites/>", WarningCode.NO_TESTS),
        ('<testsuite tests="2"><testcase name="n"/></testsuite>', WarningCode.COUNTS_DIFFER),
        ('<testsuites tests="0"><testcase name="n"/></testsuites>', WarningCode.COUNTS_DIFFER),
        ('<testsuite><testcase name="n" file="/b/a.py"/></testsuite>', WarningCode.ABSOLUTE_PATH),
    ],
)
def test_what_is_odd_is_read_with_a_warning(xml, code):
    report = read(xml)
    assert report.status is FileStatus.ACCEPTED
    assert codes(report) == [code]


def test_counts_may_be_those_of_the_suite_alone_or_of_all_below():
    inner = '<testsuite tests="1"><testcase name="n"/></testsuite><testcase name="m"/>'
    assert codes(read(f'<testsuite tests="1">{inner}</testsuite>')) == []
    assert codes(read(f'<testsuite tests="2">{inner}</testsuite>')) == []


def test_cases_count_at_any_depth_even_inside_what_is_text():
    report = read(
        '<testsuite><testcase name="a"><failure message="m">t<testcase name="b"><error/>'
        '</testcase>u</failure></testcase><wrap><testcase name="c"/></wrap></testsuite>'
    )
    assert shown(report.cases).split("\n") == [
        "failed |  |  | b |",
        "failed |  |  | a |",
        "passed |  |  | c |",
    ]
    assert report.cases[1].attempts[0].stack == "tu"


def test_elements_inside_a_failure_are_its_text():
    stack = (
        case_of("<failure>a <b>bold</b> c<system-out>d</system-out></failure>").attempts[0].stack
    )
    assert stack == "a bold cd"


def test_names_that_change_with_each_run_can_be_masked():
    case = case_of(attributes="", name_masks=("n*",))
    assert case.name == "n*"


def test_paths_lose_the_root_of_the_job():
    case = case_of(attributes='file="/build/job/tests/a.py"', source_root="/build/job")
    assert case.file == "tests/a.py"


def test_tests_are_distinct_by_what_identity_takes():
    report = read(
        '<testsuite><testcase name="a"/><testcase name="a"/><testcase name="a" classname="c"/>'
        '<testcase name="b" id="trunk:1"/><testcase name="c" id="trunk:1"/></testsuite>'
    )
    counts = counts_of([report, report])
    assert (counts.files, counts.tests, counts.distinct) == (2, 10, 3)


def attempts_of(*cases, declared=None, suite="pytest"):
    """The outcomes of each test of a suite: its attempts as letters, `!` where they do not compare.

    A case is given as its name and what is inside.
    """
    tests = f'tests="{declared}"' if declared is not None else ""
    made = "".join(f'<testcase name="{name}">{inner}</testcase>' for name, inner in cases)
    report = read(f'<testsuite name="{suite}" {tests}>{made}</testsuite>')
    keys = [case.name for case in report.cases]
    found = duplicates.sorted_by_test(keys, report.cases)
    said = dict.fromkeys(found.passed, ("p", True)) | {
        name: ("".join(each.outcome[0] for each in result.attempts), result.is_comparable)
        for name, result in found.others.items()
    }
    return {name: letters + ("" if compares else "!") for name, (letters, compares) in said.items()}


NO = "<failure/>"


@pytest.mark.parametrize(
    ("cases", "declared", "expected"),
    [
        ([("a", ""), ("a", "")], 1, "fp"),
        ([("a", ""), ("a", ""), ("a", NO)], 1, "fff"),
        ([("a", ""), ("a", "")], None, "fp"),
        ([("a", ""), ("a", "<skipped/>")], 1, "fs"),
        ([("a", ""), ("a", NO), ("a", "<error/>")], 2, "fff"),
        # Some versions of pytest count a call and its tear-down once.
        ([("a", ""), ("a", NO), ("a", "<error/>")], 1, "fff"),
        ([("a", NO), ("a", "<error/>")], 2, "ff"),
        # As many tests as cases: each worker ran it, and no case is an attempt of another.
        ([("a", ""), ("a", "")], 2, "p!"),
        ([("a", ""), ("a", NO)], 2, "f!"),
        ([("a", NO), ("a", "")], 2, "f!"),
    ],
)
def test_cases_of_one_id_of_pytest_are_attempts_if_fewer_tests_are_declared(
    cases, declared, expected
):
    assert attempts_of(*cases, declared=declared) == {"a": expected}


def test_attempts_that_other_tests_stand_between_are_joined_too():
    cases = [("a", ""), ("b", ""), ("a", NO), ("b", "")]
    assert attempts_of(*cases, declared=2) == {"a": "ff", "b": "fp"}


GO_SUITE = """<testsuites tests="{n}"><testsuite name="shop" tests="{n}"><properties>
<property name="go.version" value="go1.24.1 linux/amd64"/></properties>{cases}</testsuite>
</testsuites>"""


def of_go(*cases):
    """The report of a package of Go: names with F, S or P."""
    inside = {"P": "", "F": '<failure message="Failed">=== RUN</failure>', "S": "<skipped/>"}
    made = "".join(
        f'<testcase classname="shop" name="{name}">{inside[letter]}</testcase>'
        for name, letter in (case.split(":") for case in cases)
    )
    return read(GO_SUITE.format(n=len(cases), cases=made))


@pytest.mark.parametrize(
    ("cases", "attempts", "outcome"),
    [
        # As gotestsum writes reruns: what failed, what was skipped, what passed.
        (["a:F", "b:F", "c:S", "d:P", "a:P", "b:P"], "fp", PASSED),
        (["a:F", "b:F", "a:F", "b:F", "d:P"], "ff", FAILED),
        (["a:F", "a:F", "d:P", "a:P"], "ffp", PASSED),
        # `go test -count=2` as go-junit-report writes it: in the order of the runs.
        (["a:P", "d:P", "a:F", "d:P"], "pf", FAILED),
    ],
)
def test_cases_of_one_name_in_a_package_of_go_are_attempts(cases, attempts, outcome):
    report = of_go(*cases)
    names = [case.name for case in report.cases]
    results = duplicates.sorted_by_test(names, report.cases)
    result = results.others["a"]
    assert "".join(each.outcome[0] for each in result.attempts) == attempts
    assert (result.outcome, result.is_comparable) == (outcome, True)
    assert len(names) == len(set(names))
    assert codes(report) == []
    assert report.declared is not None
    assert not report.declared.is_short


def test_a_test_that_is_missing_beside_reruns_is_missed():
    xml = GO_SUITE.format(n=4, cases='<testcase name="a"><failure/></testcase><testcase name="a"/>')
    assert read(xml).declared.is_short


def test_names_that_a_mask_makes_equal_are_no_attempts():
    cases = '<testcase name="port 1"/><testcase name="port 2"/><testcase name="x"/>'
    xml = f'<testsuite name="pytest" tests="3">{cases}<testcase name="x"/></testsuite>'
    report = read(xml, name_masks=("port *",))
    assert [(case.name, len(case.attempts)) for case in report.cases] == [
        ("port *", 1),
        ("port *", 1),
        ("x", 2),
    ]


@pytest.mark.parametrize(
    ("name", "timestamp", "parent"),
    [
        ("a.Cart-20261122203514", "", "a.Cart"),
        ("a.Cart-20261122203514", "2026-11-22T20:35:14", "a.Cart"),
        ("a.Cart-2026-11-22T20:35:14", "2026-11-22T20:35:14", "a.Cart"),
        ("a.Cart-2026-11-22T20:35:14", "", "a.Cart-2026-11-22T20:35:14"),
        ("2026-11-22T20:35:14", "2026-11-22T20:35:14", "2026-11-22T20:35:14"),
        ("order-20261399999999", "", "order-20261399999999"),
        ("build-12345678901234", "", "build-12345678901234"),
        ("20261122203514", "", "20261122203514"),
        ("Cart 2", "", "Cart 2"),
    ],
)
def test_the_time_of_a_run_is_no_part_of_a_suites_name(name, timestamp, parent):
    report = read(
        f'<testsuite name="{name}" timestamp="{timestamp}"><testcase name="n"/></testsuite>'
    )
    assert [case.parent for case in report.cases] == [parent]


def projects(*suites):
    """The variants of all cases: a suite is its name, its host, and the names of its cases."""
    made = "".join(
        f'<testsuite name="{name}" hostname="{host}">'
        + "".join(f'<testcase name="{case}"/>' for case in cases)
        + "</testsuite>"
        for name, host, cases in suites
    )
    return [case.variant for case in read(f"<testsuites>{made}</testsuites>").cases]


def test_hosts_of_one_suite_are_projects_if_they_ran_the_same_test():
    assert projects(("a", "one", "nm"), ("a", "two", "n"), ("b", "two", "k")) == [
        *("one", "one"),
        *("two", "two"),
    ]
    # Parts of one suite on several machines: a machine's name changes with every run.
    assert projects(("a", "one", "n"), ("a", "two", "m")) == ["", ""]
    assert projects(("a", "one", "n"), ("b", "two", "n")) == ["", ""]
    assert projects(("a", "", "n"), ("a", "two", "n")) == ["", ""]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ('<skipped type="todo"/><failure/>', SKIPPED),
        ('<failure/><skipped type="todo"/>', SKIPPED),
        ('<skipped type="todo"/><error/>', SKIPPED),
        ('<skipped type="skipped"/><failure/>', FAILED),
    ],
)
def test_a_test_that_is_still_to_be_done_does_not_fail(inner, expected):
    assert case_of(inner).outcome is expected


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ('<testsuite tests="2"><testcase name="a"/></testsuite>', (2, 1, True)),
        ('<testsuite tests="1"><testcase name="a"/></testsuite>', (1, 1, False)),
        (
            '<testsuite tests="1"><testcase name="a"/><testcase name="b"/></testsuite>',
            (1, 2, False),
        ),
        (
            '<testsuites tests="5"><testsuite tests="1"><testcase name="a"/></testsuite>'
            "</testsuites>",
            (5, 1, True),
        ),
        (
            '<testsuites><testsuite tests="1"><testcase name="a"/></testsuite>'
            '<testsuite tests="3"><testcase name="b"/></testsuite></testsuites>',
            (4, 2, True),
        ),
        ('<testsuite tests="3"><testcase name="a"/><testcase name="b"', (3, 1, True)),
    ],
)
def test_a_report_says_how_many_tests_it_declares_and_holds(xml, expected):
    report = read(xml)
    declared = report.declared
    assert declared
    assert (declared.tests, declared.held, declared.is_short) == expected
    assert report.is_whole is not declared.is_short


def test_a_report_that_declares_no_number_has_none():
    report = read('<testsuite><testcase name="a"/></testsuite>')
    assert (report.declared, report.is_whole) == (None, True)
