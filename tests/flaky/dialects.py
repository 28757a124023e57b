"""JUnit XML as its producers write it, one short report of ours a dialect.

Each is a report and, a line a case, what a correct reader finds: outcomes of all attempts, then
parent, classname, name, and file with line, as `shown` writes them.
"""

from service.testhealth.reports.results import CaseResult

DIALECTS: dict[str, tuple[str, str]] = {
    "ant": (
        '<testsuite name="shop.CartTest" tests="2" errors="0" failures="1" time="0.1">'
        '<properties><property name="java.home" value="/opt/java"/></properties>'
        '<testcase classname="shop.CartTest" name="addsUp" time="0.01"/>'
        '<testcase classname="shop.CartTest" name="fails" time="0.02">'
        '<failure message="10 != 11" type="junit.framework.AssertionFailedError">trace</failure>'
        "</testcase><system-out><![CDATA[]]></system-out><system-err/></testsuite>",
        """
        passed | shop.CartTest | shop.CartTest | addsUp |
        failed | shop.CartTest | shop.CartTest | fails |
        """,
    ),
    "surefire with retries": (
        '<testsuite xmlns:xsi="urn:x" xsi:schema="a.xsd" name="shop.CartTest" tests="3">'
        '<testcase name="flaky" classname="shop.CartTest" time="0.3">'
        '<flakyFailure message="once" type="java.lang.AssertionError">'
        "<stackTrace><![CDATA[java.lang.AssertionError: once\n\tat shop.CartTest.a(Cart.java:9)]]>"
        "</stackTrace><system-out>noise</system-out></flakyFailure></testcase>"
        '<testcase name="red" classname="shop.CartTest" time="0.3">'
        '<failure message="first" type="java.lang.AssertionError"/>'
        '<rerunFailure message="second" type="java.lang.AssertionError"><stackTrace>s</stackTrace>'
        "</rerunFailure></testcase>"
        '<testcase name="throws" classname="shop.CartTest"><error type="java.io.IOException"/>'
        '<rerunError type="java.io.IOException"/><rerunError/></testcase></testsuite>',
        """
        failed passed | shop.CartTest | shop.CartTest | flaky |
        failed failed | shop.CartTest | shop.CartTest | red |
        failed failed failed | shop.CartTest | shop.CartTest | throws |
        """,
    ),
    "gradle": (
        '<?xml version="1.0" encoding="UTF-8"?><testsuite name="CartTest" tests="2" skipped="1"'
        ' failures="0" errors="0" timestamp="2026-01-01T00:00:00" hostname="h" time="0.1">'
        '<properties/><testcase name="total()" classname="shop.CartTest" time="0.001"/>'
        '<testcase name="[1] 10, 11" classname="shop.CartTest"><skipped/></testcase>'
        "<system-out><![CDATA[]]></system-out></testsuite>",
        """
        passed | CartTest | shop.CartTest | total() |
        skipped | CartTest | shop.CartTest | [1] 10, 11 |
        """,
    ),
    "pytest xunit1": (
        '<testsuites><testsuite name="pytest" tests="2" errors="1">'
        '<testcase classname="tests.test_cart" name="test_a[1-x]" file="tests/test_cart.py"'
        ' line="7" time="0.1"><properties><property name="owner" value="web"/></properties>'
        "</testcase>"
        '<testcase classname="tests.test_cart" name="test_b" file="tests/test_cart.py" line="12">'
        '<error message="failed on setup">E RuntimeError</error></testcase>'
        "</testsuite></testsuites>",
        """
        passed | pytest | tests.test_cart | test_a[1-x] | tests/test_cart.py:7
        failed | pytest | tests.test_cart | test_b | tests/test_cart.py:12
        """,
    ),
    "nose": (
        '<testsuite name="nosetests" tests="2" errors="0" failures="0" skip="1">'
        '<testcase classname="cart" name="test_a" time="0.000"></testcase>'
        '<testcase classname="cart" name="test_b" time="0.000">'
        '<skipped type="unittest.case.SkipTest" message="no"><![CDATA[SkipTest: no]]></skipped>'
        "</testcase></testsuite>",
        """
        passed | nosetests | cart | test_a |
        skipped | nosetests | cart | test_b |
        """,
    ),
    "mocha": (
        '<testsuites name="Mocha"><testsuite name="Root Suite" tests="0" file="test/cart.js"/>'
        '<testsuite name="cart" file="test/cart.js" tests="1">'
        '<testcase name="cart adds up" classname="adds up" time="0"/></testsuite></testsuites>',
        "passed | cart | adds up | cart adds up | test/cart.js",
    ),
    "cypress": (
        '<testsuites name="Mocha Tests"><testsuite name="Root" file="cypress/e2e/cart.cy.js"'
        ' tests="0"></testsuite><testsuite name="cart" tests="1">'
        '<testcase name="cart: pays" classname="pays" time="4.2">'
        '<failure message="Timed out" type="CypressError"><![CDATA[CypressError: Timed out]]>'
        "</failure></testcase></testsuite></testsuites>",
        "failed | cart | pays | cart: pays |",
    ),
    "googletest": (
        '<testsuites tests="3" disabled="1" name="AllTests"><testsuite name="Cart" tests="3">'
        '<testcase name="AddsUp" file="cart_test.cc" line="9" status="run" result="completed"'
        ' time="0." classname="Cart"/>'
        '<testcase name="Pays" status="run" result="skipped" time="0" classname="Cart"/>'
        '<testcase name="DISABLED_Old" status="notrun" result="suppressed" classname="Cart"/>'
        "</testsuite></testsuites>",
        """
        passed | Cart | Cart | AddsUp | cart_test.cc:9
        skipped | Cart | Cart | Pays |
        skipped | Cart | Cart | DISABLED_Old |
        """,
    ),
    "catch2": (
        '<testsuites><testsuite name="cart.exe" tests="2"><properties/>'
        '<testcase classname="cart.exe.global" name="adds up/with tax" time="0.1" status="run"/>'
        '<testcase classname="cart.exe.global" name="pays" time="0.1" status="run">'
        '<failure message="a == b" type="REQUIRE">FAILED:\n  REQUIRE( a == b )\nat cart.cpp:12'
        "</failure></testcase><system-out/><system-err/></testsuite></testsuites>",
        """
        passed | cart.exe | cart.exe.global | adds up/with tax |
        failed | cart.exe | cart.exe.global | pays |
        """,
    ),
    "ctest": (
        '<testsuite name="Linux-c++" tests="2" disabled="1">'
        '<testcase name="cart" classname="cart" time="0.1" status="run"><system-out>x</system-out>'
        '</testcase><testcase name="old" classname="old" status="disabled"/></testsuite>',
        """
        passed | Linux-c++ | cart | cart |
        skipped | Linux-c++ | old | old |
        """,
    ),
    "boost": (
        '<testsuite tests="1" skipped="0" errors="1" failures="0" id="0" name="cart_test">'
        '<testcase assertions="1" classname="suite.inner" name="adds_up" time="0.0001">'
        '<error message="unexpected exception" type="uncaught exception"><![CDATA[x]]></error>'
        "<system-out><![CDATA[o]]></system-out></testcase></testsuite>",
        "failed | cart_test | suite.inner | adds_up |",
    ),
    "go-junit-report": (
        '<testsuites tests="2"><testsuite name="shop/cart" tests="2" failures="1" id="0">'
        '<properties><property name="go.version" value="go1.22"/></properties>'
        '<testcase name="TestTotal" classname="shop/cart" time="0.060"/>'
        '<testcase name="TestTotal/with_tax" classname="shop/cart" time="0.030">'
        '<failure message="Failed">    cart_test.go:9: 10 != 11</failure></testcase>'
        "</testsuite></testsuites>",
        """
        passed | shop/cart | shop/cart | TestTotal |
        failed | shop/cart | shop/cart | TestTotal/with_tax |
        """,
    ),
    "nextest": (
        '<testsuites name="nextest-run" uuid="1"><testsuite name="cart" tests="1" errors="0">'
        '<testcase name="tests::total" classname="cart" timestamp="2026-01-01T00:00:00Z">'
        '<flakyFailure timestamp="2026-01-01T00:00:00Z" time="0.1" message="panicked"'
        ' type="test failure"><system-out>x</system-out></flakyFailure>'
        '<flakyError time="0.1" type="test timeout"/></testcase></testsuite></testsuites>',
        "failed failed passed | cart | cart | tests::total |",
    ),
    "phpunit": (
        '<testsuites><testsuite name="" tests="3"><testsuite name="CartTest" tests="3"'
        ' file="tests/CartTest.php"><testcase name="testTotal" class="Shop\\CartTest"'
        ' classname="Shop.CartTest" file="tests/CartTest.php" line="8" assertions="1"/>'
        '<testsuite name="Tax" tests="2"><testcase name="testTax #0"'
        ' class="Shop\\CartTest"/><testcase name="testTax #1"'
        ' class="Shop\\CartTest"><warning>w</warning></testcase></testsuite>'
        "</testsuite></testsuite></testsuites>",
        r"""
        passed | CartTest | Shop.CartTest | testTotal | tests/CartTest.php:8
        passed | CartTest/Tax | Shop\CartTest | testTax #0 | tests/CartTest.php
        passed | CartTest/Tax | Shop\CartTest | testTax #1 | tests/CartTest.php
        """,
    ),
    "minitest": (
        '<testsuites><testsuite name="CartTest" filepath="test/cart_test.rb" tests="1">'
        '<testcase name="test_total" lineno="4" classname="CartTest" assertions="1" time="0.1">'
        '<failure type="Minitest::Assertion" message="Expected: 1"><![CDATA[x]]></failure>'
        "</testcase></testsuite></testsuites>",
        "failed | CartTest | CartTest | test_total | test/cart_test.rb:4",
    ),
    "rspec": (
        '<testsuite name="rspec" tests="1"><properties><property name="seed" value="1"/>'
        '</properties><testcase classname="spec.cart_spec" name="Cart adds up"'
        ' file="./spec/cart_spec.rb" time="0.1"></testcase></testsuite>',
        "passed | rspec | spec.cart_spec | Cart adds up | spec/cart_spec.rb",
    ),
    "exunit": (
        '<testsuites><testsuite name="Elixir.CartTest" tests="1"><testcase'
        ' classname="Elixir.CartTest" name="test adds up" file="test/cart_test.exs:4" time="0.1"/>'
        "</testsuite></testsuites>",
        "passed | Elixir.CartTest | Elixir.CartTest | test adds up | test/cart_test.exs:4",
    ),
    "swift": (
        '<testsuites><testsuite name="TestResults" errors="0" tests="1" failures="0" time="0.1">'
        '<testcase classname="ShopTests.CartTests" name="testTotal" time="0.1"></testcase>'
        "</testsuite></testsuites>",
        "passed | TestResults | ShopTests.CartTests | testTotal |",
    ),
    "xcpretty": (
        "<?xml version='1.0' encoding='UTF-8'?><testsuites name='ShopTests.xctest' tests='1'>"
        "<testsuite name='CartTests' tests='1' failures='1'><testcase classname='CartTests'"
        " name='testTotal'><failure message='XCTAssertEqual failed'>CartTests.swift:12</failure>"
        "</testcase></testsuite></testsuites>",
        "failed | CartTests | CartTests | testTotal |",
    ),
    "bazel": (
        '<testsuites><testsuite name="//shop:cart_test" tests="1" errors="1">'
        '<testcase name="//shop:cart_test" status="run" duration="3" time="3">'
        '<error message="exited with error code 1"></error></testcase>'
        "<system-out>Generated test.log</system-out></testsuite></testsuites>",
        "failed | //shop:cart_test |  | //shop:cart_test |",
    ),
    "playwright": (
        '<testsuites id="" name=""><testsuite name="cart.spec.ts" hostname="chromium" tests="2">'
        '<testcase name="cart \u203a adds up" classname="cart.spec.ts" time="1.5"/>'
        '<testcase name="cart \u203a pays" classname="cart.spec.ts"><properties>'
        '<property name="fixme" value=""></property></properties><skipped></skipped></testcase>'
        "</testsuite></testsuites>",
        """
        passed | cart.spec.ts | cart.spec.ts | cart \u203a adds up |
        skipped | cart.spec.ts | cart.spec.ts | cart \u203a pays |
        """,
    ),
    "karma": (
        '<testsuite name="Chrome 120" package="" tests="1" errors="0"><properties>'
        '<property name="browser.fullName" value="Chrome"/></properties>'
        '<testcase name="cart adds up" classname="Chrome_120.cart" time="0.002"/>'
        "<system-out><![CDATA[\n]]></system-out><system-err/></testsuite>",
        "passed | Chrome 120 | Chrome_120.cart | cart adds up |",
    ),
    "eslint": (
        '<testsuites><testsuite package="org.eslint" time="0" tests="1" errors="1"'
        ' name="/src/cart.js"><testcase time="0" name="org.eslint.no-undef"'
        ' classname="/src/cart"><failure message="x is not defined."><![CDATA[line 1]]></failure>'
        "</testcase></testsuite></testsuites>",
        "failed | /src/cart.js | /src/cart | org.eslint.no-undef |",
    ),
    "robot framework": (
        '<testsuite name="Cart" tests="2" errors="0" failures="1" skipped="0" time="1.2">'
        '<testsuite name="Totals" tests="2"><testcase classname="Cart.Totals" name="Adds Up"'
        ' time="1.0"></testcase><testcase classname="Cart.Totals" name="Pays" time="0.2">'
        '<failure message="10 != 11" type="AssertionError"></failure></testcase></testsuite>'
        "</testsuite>",
        """
        passed | Cart/Totals | Cart.Totals | Adds Up |
        failed | Cart/Totals | Cart.Totals | Pays |
        """,
    ),
    "dart": (
        '<testsuites><testsuite errors="0" failures="1" tests="1" name="cart_test"'
        ' timestamp="2026-01-01"><properties><property name="platform" value="vm"/></properties>'
        '<testcase classname="cart_test" name="adds up" time="0.02">'
        '<failure message="1 failure, see stacktrace for details">Failure:\nExpected: 1'
        "</failure></testcase></testsuite></testsuites>",
        "failed | cart_test | cart_test | adds up |",
    ),
}


def shown(cases: tuple[CaseResult, ...]) -> str:
    """A line a case: outcomes | parent | classname | name | file:line."""
    return "\n".join(shown_case(case) for case in cases)


def shown_case(case: CaseResult) -> str:
    """One line, without blanks at its end."""
    outcomes = " ".join(attempt.outcome for attempt in case.attempts)
    place = case.file if case.line is None else f"{case.file}:{case.line}"
    fields = (outcomes, case.parent, case.classname, case.name, place)
    return " | ".join(fields).strip()


def lines(text: str) -> str:
    """The expectation without its indentation."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))
