"""The other formats give the same cases, a row of docs/design/reports.md 6 each."""

import json

import pytest

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, FileStatus, Format, Outcome, WarningCode
from tests.flaky.dialects import lines, shown


def read(content, wanted=None):
    return reports.read(content.encode(), wanted, ReadOptions())


def go(*events):
    return "\n".join(
        json.dumps(dict(zip(("Action", "Package", "Test"), each, strict=False))) for each in events
    )


def printed(package, test, text):
    return json.dumps({"Action": "output", "Package": package, "Test": test, "Output": text})


def ctrf(*tests, **more):
    return json.dumps({"results": {"tool": {"name": "t"}, "tests": list(tests), **more}})


TRX = """<?xml version="1.0" encoding="utf-8"?>
<TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010"><Results>
  <UnitTestResult testId="1" testName="Adds" outcome="Passed" duration="00:01:02.5000000"/>
  <UnitTestResult testId="1" testName="Pays" outcome="Failed"><Output><StdOut>out</StdOut>
    <ErrorInfo><Message>10 != 11</Message><StackTrace>at Shop.Cart.Pays() in C:\\a\\Cart.cs:line 9
    </StackTrace></ErrorInfo></Output></UnitTestResult>
  <UnitTestResult testId="2" testName="Rows" outcome="Failed"><InnerResults>
    <UnitTestResult testId="2" testName="Rows (1)" outcome="Passed"/>
    <UnitTestResult testId="2" testName="Rows (2)" outcome="Timeout"/></InnerResults>
  </UnitTestResult>
  <UnitTestResult testId="2" testName="Old" outcome="NotExecuted"><Output><ErrorInfo>
    <Message>not here</Message></ErrorInfo></Output></UnitTestResult>
</Results><TestDefinitions>
  <UnitTest id="1" name="Adds">
    <TestMethod className="Shop.Cart, Shop, Version=1.0" name="Adds"/></UnitTest>
  <UnitTest id="2" name="Rows"><TestMethod className="Shop.Rows" name="Rows"/></UnitTest>
</TestDefinitions></TestRun>"""

NUNIT3 = """<test-run id="2" testcasecount="4"><test-suite type="Assembly" name="Shop.dll">
  <test-suite type="TestFixture" name="Cart" classname="Shop.Cart">
  <test-case name="Adds" classname="Shop.Cart" result="Passed" duration="0.5"/>
  <test-case name="Warns" classname="Shop.Cart" result="Warning"/>
  <test-case name="Pays" classname="Shop.Cart" result="Failed" label="Error" duration="0.1">
    <failure><message><![CDATA[no database]]></message><stack-trace>at Shop</stack-trace></failure>
    <output>out</output></test-case>
  <test-case name="Maybe" classname="Shop.Cart" result="Inconclusive"/>
  <test-case name="Old" classname="Shop.Cart" result="Skipped"><reason>
    <message>why</message></reason></test-case></test-suite></test-suite></test-run>"""

NUNIT2 = """<test-results name="Shop.dll" total="3"><test-suite type="Assembly"><results>
  <test-case name="Shop.Cart.Adds" executed="True" result="Success" success="True" time="0.01"/>
  <test-case name="Shop.Cart.Pays" executed="True" result="Failure"><failure>
    <message>10 != 11</message><stack-trace>s</stack-trace></failure></test-case>
  <test-case name="Shop.Cart.Throws" executed="True" result="Error"/>
  <test-case name="Shop.Cart.Old" executed="False" result="Success"/>
  <test-case name="Shop.Cart.Bad" result="NotRunnable"/></results></test-suite></test-results>"""

XUNIT = """<assemblies><assembly name="Shop.dll"><errors/><collection name="c">
  <test name="Shop.Cart.Adds" type="Shop.Cart" method="Adds" time="0.02" result="Pass"/>
  <test name="Shop.Cart.Pays" type="Shop.Cart" method="Pays" time="0.02" result="Fail">
    <failure exception-type="Xunit.Sdk.EqualException"><message>10 != 11</message>
    <stack-trace>at Shop</stack-trace></failure><output>out</output></test>
  <test name="Shop.Cart.Old" type="Shop.Cart" result="Skip"><reason>why</reason></test>
  <test name="Shop.Cart.New" type="Shop.Cart" result="NotRun"/>
</collection></assembly></assemblies>"""

NUNIT3_SUITES = """<test-run result="Failed"><test-suite type="Assembly" name="Shop.dll"
    result="Failed" site="Child"><failure><message>One or more child tests had errors</message>
    </failure>
  <test-suite type="TestFixture" name="Cart" fullname="Shop.Cart" result="Failed" site="TearDown">
    <properties><property name="message" value="x"/></properties>
    <failure><message>TearDown : no disk</message><stack-trace>--TearDown</stack-trace></failure>
    <test-case name="Pays" classname="Shop.Cart" result="Failed"><failure>
      <message>10 != 11</message></failure></test-case></test-suite>
  <test-suite type="TestFixture" name="Till" fullname="Shop.Till" result="Failed" label="Invalid">
    <failure><message>No constructor</message></failure></test-suite>
  <test-suite type="TestFixture" name="Desk" result="Passed">
    <test-case name="Opens" classname="Shop.Desk" result="Passed"/></test-suite>
</test-suite></test-run>"""

NUNIT2_SUITES = """<test-results><test-suite type="Assembly" name="Shop.dll" result="Failure">
  <failure><message>Child test failed</message></failure><results>
  <test-suite type="TestFixture" name="Cart" result="Error"><failure>
    <message>TearDown : no disk</message></failure><results>
    <test-case name="Shop.Cart.Pays" executed="True" result="Failure"/></results></test-suite>
  <test-suite type="TestFixture" name="Till" result="Error"><failure>
    <message>no network</message></failure><results>
    <test-case name="Shop.Till.Opens" executed="True" result="Success"/></results></test-suite>
</results></test-suite></test-results>"""

XUNIT_ERRORS = """<assemblies><assembly name="Shop.dll" errors="2"><errors>
  <error type="class-cleanup" name="Shop.Cart"><failure exception-type="System.IOException">
    <message>no disk</message><stack-trace>at Shop</stack-trace></failure></error>
  <error type="fatal"><failure><message>gone</message></failure></error></errors>
  <collection><test name="Shop.Cart.Adds" type="Shop.Cart" result="Pass"/></collection>
</assembly></assemblies>"""

OUTSIDE_OF_TESTS = {
    "NUnit 3": (
        NUNIT3_SUITES,
        """
        failed |  | Shop.Cart | Pays |
        failed | Shop.Cart |  | (suite) |
        failed | Shop.Till |  | (suite) |
        passed |  | Shop.Desk | Opens |
        """,
        ["TearDown : no disk", "No constructor"],
    ),
    "NUnit 2": (
        NUNIT2_SUITES,
        """
        failed |  |  | Shop.Cart.Pays |
        failed | Cart |  | (suite) |
        passed |  |  | Shop.Till.Opens |
        failed | Till |  | (suite) |
        """,
        ["TearDown : no disk", "no network"],
    ),
    "xUnit.net": (
        XUNIT_ERRORS,
        """
        failed | Shop.Cart |  | (suite) |
        failed | fatal |  | (suite) |
        passed |  | Shop.Cart | Shop.Cart.Adds |
        """,
        ["no disk", "gone"],
    ),
}

GO = "\n".join(
    [
        "# shop: build output",
        '{"Time":"2026-01-01T00:00:00Z","Action":"start","Package":"shop"}',
        go(("run", "shop", "TestA"), ("pass", "shop", "TestA"), ("run", "shop", "TestB")),
        printed("shop", "TestB", "=== RUN   TestB\n"),
        printed("shop", "TestB", "    cart_test.go:9: 10 != 11\n"),
        printed("shop", "TestB", "--- FAIL: TestB (0.02s)\n"),
        '{"Action":"fail","Package":"shop","Test":"TestB","Elapsed":0.02}',
        go(("skip", "shop", "TestC"), ("fail", "shop"), ("run", "shop", "TestHangs")),
    ]
)

REPORTS = {
    Format.GO_JSON: (
        GO,
        """
        passed |  | shop | TestA |
        failed |  | shop | TestB |
        skipped |  | shop | TestC |
        """,
    ),
    Format.CTRF: (
        ctrf(
            {"name": "adds", "status": "passed", "duration": 20, "suite": ["cart", "totals"]},
            {"name": "pays", "status": "failed", "suite": "cart", "filePath": "./a.js", "line": 3},
            {"name": "old", "status": "pending"},
            {"name": "odd", "status": "other"},
            {"name": "tried", "status": "passed", "flaky": True, "retries": 2},
            {
                "name": "listed",
                "status": "passed",
                "retries": 9,
                "retryAttempts": [{"attempt": 1, "status": "failed", "message": "m"}],
            },
        ),
        """
        passed | cart/totals |  | adds |
        failed | cart |  | pays | a.js:3
        skipped |  |  | old |
        skipped |  |  | odd |
        failed failed passed |  |  | tried |
        failed passed |  |  | listed |
        """,
    ),
    Format.TRX: (
        TRX,
        """
        passed |  | Shop.Cart | Adds |
        failed |  | Shop.Cart | Pays |
        passed |  | Shop.Rows | Rows (1) |
        failed |  | Shop.Rows | Rows (2) |
        skipped |  | Shop.Rows | Old |
        """,
    ),
    Format.NUNIT: (
        NUNIT3,
        """
        passed |  | Shop.Cart | Adds |
        passed |  | Shop.Cart | Warns |
        failed |  | Shop.Cart | Pays |
        skipped |  | Shop.Cart | Maybe |
        skipped |  | Shop.Cart | Old |
        """,
    ),
    Format.XUNIT: (
        XUNIT,
        """
        passed |  | Shop.Cart | Shop.Cart.Adds |
        failed |  | Shop.Cart | Shop.Cart.Pays |
        skipped |  | Shop.Cart | Shop.Cart.Old |
        skipped |  | Shop.Cart | Shop.Cart.New |
        """,
    ),
}


@pytest.mark.parametrize("wanted", REPORTS)
def test_a_format_is_known_by_its_content_and_gives_its_cases(wanted):
    content, expected = REPORTS[wanted]
    for named in (None, wanted):
        report = read(content, named)
        assert (report.format, report.status) == (wanted, FileStatus.ACCEPTED)
        assert shown(report.cases) == lines(expected)


@pytest.mark.parametrize("wanted", Format)
def test_a_file_of_another_format_than_the_one_named_is_refused(wanted):
    contents = {**{each: content for each, (content, _) in REPORTS.items()}}
    contents[Format.JUNIT] = '<testsuite><testcase name="n"/></testsuite>'
    for each, content in contents.items():
        if each is not wanted:
            assert read(content, wanted).fault.message == "Not a known report format."


def test_nunit_2_has_names_alone():
    assert shown(read(NUNIT2).cases) == lines(
        """
        passed |  |  | Shop.Cart.Adds |
        failed |  |  | Shop.Cart.Pays |
        failed |  |  | Shop.Cart.Throws |
        skipped |  |  | Shop.Cart.Old |
        skipped |  |  | Shop.Cart.Bad |
        """
    )


# Report, case; then message, stack, type, and whether it is an error.
DOTNET = [
    (TRX, "Pays", ("10 != 11", r"at Shop.Cart.Pays() in C:\a\Cart.cs:line 9", "", False)),
    (TRX, "Rows (2)", ("", "", "", True)),
    (NUNIT3, "Pays", ("no database", "at Shop", "", True)),
    (NUNIT2, "Shop.Cart.Pays", ("10 != 11", "s", "", False)),
    (XUNIT, "Shop.Cart.Pays", ("10 != 11", "at Shop", "Xunit.Sdk.EqualException", False)),
]


@pytest.mark.parametrize(("content", "name", "told"), DOTNET)
def test_a_failure_of_dotnet_is_told_whole(content, name, told):
    (case,) = (case for case in read(content).cases if case.name == name)
    (attempt,) = case.attempts
    assert (attempt.message, attempt.stack, attempt.error_type, attempt.is_error) == told


def test_durations_come_in_the_unit_of_the_format():
    assert read(TRX).cases[0].duration_s == 62.5
    assert read(NUNIT3).cases[0].duration_s == 0.5
    assert read(XUNIT).cases[0].duration_s == 0.02
    assert read(GO).cases[1].attempts[0].duration_s == 0.02
    assert read(REPORTS[Format.CTRF][0]).cases[0].duration_s == 0.02


def test_a_trx_cut_before_its_definitions_has_no_whole_case():
    assert read(TRX[: TRX.index("<TestDefinitions>")]).status is FileStatus.REFUSED
    report = read(TRX[: TRX.index('<UnitTest id="2"')])
    assert (report.status, [case.name for case in report.cases]) == (
        FileStatus.PARTIAL,
        ["Adds", "Pays"],
    )


def test_lines_of_go_that_are_no_events_are_counted():
    report = read(GO)
    assert report.is_interrupted
    (warned, _) = report.warnings
    assert warned.code is WarningCode.SKIPPED_LINES
    assert warned.text == "Lines that are no events of a test run: 1. They are left out."


def test_a_failed_test_of_go_says_what_it_printed():
    attempt = read(GO).cases[1].attempts[0]
    assert attempt.message == "cart_test.go:9: 10 != 11"
    assert attempt.stack.startswith("=== RUN   TestB\n")
    long = "\n".join(
        [printed("p", "T", "x" * 999 + "\n") for _ in range(99)] + [go(("fail", "p", "T"))]
    )
    assert len(read(long).cases[0].attempts[0].stack) == 8_000


def test_several_ends_of_one_go_test_are_attempts():
    events = [(end, "p", "T") for end in ("pass", "fail", "pass")]
    (case,) = read(go(*events)).cases
    assert [attempt.outcome for attempt in case.attempts] == ["passed", "failed", "passed"]


def test_a_package_that_failed_without_a_test_is_a_failure_of_its_own():
    said = json.dumps({"Action": "output", "Package": "p", "Output": "panic: no database\n"})
    report = read(
        f"{go(('pass', 'p', 'T'))}\n{said}\n{go(('fail', 'p'), ('fail', 'q', 'U'), ('fail', 'q'))}"
    )
    assert shown(report.cases) == lines(
        """
        passed |  | p | T |
        failed |  | p | (package) |
        failed |  | q | U |
        """
    )
    assert report.cases[1].kind is CaseKind.SYNTHETIC
    assert report.cases[1].attempts[0].message == "panic: no database"


def test_a_cut_go_report_gives_its_ended_tests():
    for end in range(len(GO)):
        report = read(GO[:end])
        assert all(case.outcome in Outcome for case in report.cases)
    assert len(read(GO[:-30]).cases) == 3


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"results":{"tests":[{"name":"a","status":"passed"}',
        '{"results":{"tests":{}}}',
        '{"results":[]}',
        '{"a":1}',
        '["results"]',
        '{"Action":7}',
        "[" * 100_000,
        "{" + '"a":{' * 100_000,
        '{"results":{"tests":' + "[" * 5_000 + "]" * 5_000 + "}}",
    ],
)
def test_json_that_is_no_report_is_refused(content):
    assert read(content).status is FileStatus.REFUSED


@pytest.mark.parametrize(
    "test",
    [
        {},
        {"name": 7, "status": None, "suite": {"a": 1}, "duration": "x"},
        {"name": "n", "duration": -1, "line": True, "suite": [1, None], "retryAttempts": [7]},
        {"name": "n", "status": "failed", "message": ["m"], "trace": 3, "retries": -1},
        {"name": "n", "status": "passed", "flaky": True, "retries": 1e300},
    ],
)
def test_fields_of_a_wrong_kind_are_nothing(test):
    (case,) = read(ctrf(test)).cases
    assert case.attempts[-1].duration_s is None
    assert len(case.attempts) <= 101


def test_a_dotnet_report_is_bounded_as_junit_is():
    report = read(XUNIT.replace("<assemblies>", "<!DOCTYPE a><assemblies>"))
    assert report.fault
    assert report.fault.message == "A document type declaration is not allowed."
    cut = read(XUNIT[: XUNIT.index("</collection>") - 40])
    assert (cut.status, len(cut.cases)) == (FileStatus.PARTIAL, 3)


def test_elements_inside_a_message_are_its_text():
    report = read(XUNIT.replace("10 != 11", "10 <b>is not</b> 11"))
    assert report.cases[1].attempts[0].message == "10 is not 11"


def test_a_time_span_may_have_days_and_may_be_none():
    assert read(TRX.replace("00:01:02.5000000", "1.00:00:01")).cases[0].duration_s == 86_401
    assert read(TRX.replace("00:01:02.5000000", "soon")).cases[0].duration_s is None


def test_a_line_of_go_beyond_its_bound_is_left_out():
    long = printed("p", "T", "x" * 2_000_000)
    report = read(f"{go(('run', 'p', 'T'))}\n\n{long}\n{go(('fail', 'p', 'T'))}")
    assert report.cases[0].attempts[0].stack == ""
    assert [warned.code for warned in report.warnings] == [
        WarningCode.SKIPPED_LINES,
        WarningCode.INTERRUPTED,
    ]


def test_a_whole_trx_without_definitions_loses_no_failure():
    content = (
        '<TestRun><Results><UnitTestResult testName="Pays" outcome="Failed" testId="1"/>'
        '<UnitTestResult testName="Adds" outcome="Passed"/></Results></TestRun>'
    )
    report = read(content)
    assert [(case.name, case.classname, case.outcome.value) for case in report.cases] == [
        ("Pays", "", "failed"),
        ("Adds", "", "passed"),
    ]


ODD = "a\0b\x1b[1mc\uffff"


@pytest.mark.parametrize(
    "content",
    [
        ctrf({"name": ODD, "suite": [ODD, ODD], "filePath": ODD, "status": "failed",
              "message": ODD, "trace": ODD}),
        "\n".join(
            json.dumps({"Action": action, "Package": ODD, "Test": ODD, "Output": ODD})
            for action in ("output", "fail")
        ),
    ],
)  # fmt: skip
def test_what_xml_forbids_is_replaced_in_json_too(content):
    (case,) = read(content).cases
    (attempt,) = case.attempts
    assert case.name == "a\ufffdb\ufffd[1mc\ufffd"
    texts = [*case[:4], attempt.message, attempt.stack]
    assert not any(odd in text for odd in "\0\x1b\uffff" for text in texts)


def test_a_line_that_no_file_has_is_none():
    (case,) = read(ctrf({"name": "a", "status": "passed", "line": 2**62})).cases
    assert case.line is None


@pytest.mark.parametrize("name", OUTSIDE_OF_TESTS)
def test_what_failed_outside_of_every_test_is_a_failure(name):
    content, expected, said = OUTSIDE_OF_TESTS[name]
    report = read(content)
    synthetic = [case for case in report.cases if case.kind is CaseKind.SYNTHETIC]
    assert shown(report.cases) == lines(expected)
    assert [case.explicit_attempts[0].message for case in synthetic] == said


TRX_WORD = '<TestRun><Results><UnitTestResult testName="n" outcome="WORD"/></Results></TestRun>'
NUNIT_WORD = '<test-run><test-case name="n" result="WORD"/></test-run>'
NUNIT2_WORD = '<test-results><test-case name="n" executed="True" result="WORD"/></test-results>'
NOT_RUN = NUNIT2_WORD.replace("True", "False")
XUNIT_WORD = '<assemblies><assembly><test name="n" result="WORD"/></assembly></assemblies>'
CTRF_WORD = ctrf({"name": "n", "status": "WORD"})
WORDS = [
    (TRX_WORD, "passed", "Passed PassedButRunAborted Warning Completed"),
    (TRX_WORD, "failed", "Failed Error Timeout Aborted"),
    (TRX_WORD, "skipped", "NotExecuted Inconclusive NotRunnable Pending Disconnected InProgress"),
    (NUNIT_WORD, "passed", "Passed Success Warning"),
    (NUNIT_WORD, "failed", "Failed Failure Error"),
    (NUNIT_WORD, "skipped", "Skipped Inconclusive Ignored NotRunnable Explicit"),
    (NUNIT2_WORD, "passed", "Success"),
    (NUNIT2_WORD, "failed", "Failure Error"),
    (NOT_RUN, "skipped", "Success Failure"),
    (XUNIT_WORD, "passed", "Pass"),
    (XUNIT_WORD, "failed", "Fail"),
    (XUNIT_WORD, "skipped", "Skip NotRun pass"),
    (CTRF_WORD, "passed", "passed"),
    (CTRF_WORD, "failed", "failed"),
    (CTRF_WORD, "skipped", "skipped pending other Failed"),
]


@pytest.mark.parametrize(("content", "outcome", "words"), WORDS)
def test_every_word_of_an_outcome_means_one(content, outcome, words):
    for word in words.split():
        (case,) = read(content.replace("WORD", word)).cases
        assert case.outcome.value == outcome, word


@pytest.mark.parametrize(
    ("told", "attempts"),
    [
        ({"flaky": True, "retries": 2}, 3),
        ({"flaky": True, "retries": 0}, 1),
        ({"flaky": False, "retries": 2}, 1),
        ({"retries": 2}, 1),
        ({"flaky": True}, 1),
        ({"flaky": True, "retries": 1e9}, 101),
        ({"retryAttempts": [{"status": "failed"}] * 200}, 101),
        ({"flaky": True, "retries": 9, "retryAttempts": [{"status": "failed"}]}, 2),
    ],
)
def test_retries_are_those_that_a_flaky_test_lists_or_counts(told, attempts):
    (case,) = read(ctrf({"name": "n", "status": "passed", **told})).cases
    assert len(case.attempts) == attempts


@pytest.mark.parametrize(
    ("attributes", "said", "fails"),
    [
        ('result="Failed"', "", False),
        ('result="Failed" site="SetUp"', "", True),
        ('result="Failed" site="TearDown"', "", True),
        ('result="Failed" site="Child"', "", False),
        ('result="Failure"', "TearDown : no", True),
        ('result="Passed" site="TearDown"', "", False),
    ],
)
def test_a_suite_of_nunit_fails_beside_its_tests_where_it_says_so(attributes, said, fails):
    """Else its failure is that of the test inside it."""
    inside = '<test-case name="n" result="Failed"/>'
    told = f"<failure><message>{said}</message></failure>"
    suite = f'<test-suite name="s" {attributes}>{told}{inside}</test-suite>'
    cases = read(f"<test-run>{suite}</test-run>").cases
    assert [case.kind for case in cases if case.name != "n"] == [CaseKind.SYNTHETIC] * fails


@pytest.mark.parametrize(
    ("outcome", "is_interrupted"), [("Aborted", True), ("Timeout", True), ("Failed", False)]
)
def test_a_trx_summary_shows_a_run_that_was_stopped(outcome, is_interrupted):
    report = read(
        '<TestRun><Results><UnitTestResult testId="1" testName="a" outcome="Passed"/></Results>'
        f'<ResultSummary outcome="{outcome}"/></TestRun>'
    )
    assert report.is_interrupted is is_interrupted
