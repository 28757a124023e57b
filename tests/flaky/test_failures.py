"""Failures of one kind have one key, and a headline that a person understands."""

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.testhealth.reports import failures, frames
from service.testhealth.reports.results import Attempt, Outcome


def failed(message="", stack="", error_type=""):
    return Attempt(Outcome.FAILED, None, message, stack, error_type)


@pytest.mark.parametrize(
    ("message", "stack", "error_type", "headline"),
    [
        ("10 != 11", "", "AssertionError", "AssertionError: 10 != 11"),
        ("AssertionError: 10 != 11", "", "AssertionError", "AssertionError: 10 != 11"),
        ("AssertionError: 1", "", "builtins.AssertionError", "AssertionError: 1"),
        ("  10 != 11\n", "", "", "10 != 11"),
        ("", "  File \"a.py\", line 3, in f\n  ---\nKeyError: 'a'", "", "KeyError: 'a'"),
        ("", "at shop.Cart.pay(Cart.java:3)", "java.io.IOException", "java.io.IOException"),
        ("", "", "", ""),
        ("m" * 2_000, "", "T", "T: " + "m" * 997),
    ],
)
def test_a_headline(message, stack, error_type, headline):
    assert failures.headline_of(failed(message, stack, error_type)) == headline


def test_a_summary_is_one_line_of_at_most_200_characters():
    assert failures.summary_of("a\n  b\tc") == "a b c"
    assert failures.summary_of("x" * 201) == "x" * 199 + "…"
    assert failures.summary_of("x" * 200) == "x" * 200


STABLE = [
    ("GET https://host:8080/a/17?b=c failed", "GET <url> failed"),
    ("(see http://localhost/x)", "(see <url>)"),
    ("at 2026-03-02T14:02:00.123Z", "at <time>"),
    ("at 2026-03-02 14:02:00,5 +01:00!", "at <time>!"),
    ("on 2026-03-02 late", "on <time> late"),
    ("14:02:00 late", "<time> late"),
    ("user 06cb6db5-f807-5198-b072-af67a0636f8a", "user <id>"),
    ("<Cart object at 0x7f096106a090>", "<Cart object at <addr>>"),
    ("dial 10.0.0.1:5432: refused", "dial <ip>: refused"),
    ("dial [::1]:5432: refused", "dial <ip>: refused"),
    ("from 2001:db8::ff00:42:8329 again", "from <ip> again"),
    ("took 12.5 ms, not 3s", "took <dur>, not <dur>"),
    ("waited 5 seconds", "waited <dur>"),
    ("open /tmp/pytest-17/a.txt: gone", "open <path>/a.txt: gone"),
    (r"open C:\Users\me\a.txt", "open <path>/a.txt"),
    ("in src/cart/a.py", "in src/cart/a.py"),
    ("1/2 and/or </div>", "<n>/<n> and/or </div>"),
    ("token A1b2C3d4E5f6G7h8 bad", "token <id> bad"),
    ("InternationalizationError here", "InternationalizationError here"),
    ("commit 9f8e7d6c is gone", "commit <hex> is gone"),
    ("deadbeef defaced", "deadbeef defaced"),
    ("expected 10.01 but 3 items", "expected <n> but <n> items"),
    ("std::vector of a", "std::vector of a"),
    ("a \x1b[31mred\x1b[0m\x00 word\r\n  next", "a red word next"),
    ("x" * 400, "x" * 300),
    ("", ""),
]


@pytest.mark.parametrize(("text", "stable"), STABLE)
def test_what_changes_from_run_to_run_is_named_instead(text, stable):
    assert failures.stable_text(text) == stable


@pytest.mark.parametrize(("text", "stable"), STABLE)
def test_what_is_stable_stays_so(text, stable):
    assert failures.stable_text(failures.stable_text(text)) == failures.stable_text(text)


def test_a_key_is_a_fixed_number_of_version_type_text_and_frame():
    attempt = failed("took 3 ms", 'File "src/a.py", line 3, in pay', "TimeoutError")
    # printf "1\0TimeoutError\0TimeoutError: took <dur>\0src/a.py:pay" | sha256sum
    assert failures.key_of(attempt) == "cd9e4b3975042196"
    assert failures.key_of(attempt) == failures.key_of(
        failed("took 17 ms", 'File "src/a.py", line 99, in pay', "TimeoutError")
    )


@pytest.mark.parametrize(
    "other",
    [
        failed("lost 3 ms", 'File "src/a.py", line 3, in pay', "TimeoutError"),
        failed("took 3 ms", 'File "src/b.py", line 3, in pay', "TimeoutError"),
        failed("took 3 ms", 'File "src/a.py", line 3, in cart', "TimeoutError"),
        failed("took 3 ms", 'File "src/a.py", line 3, in pay', "OSError"),
    ],
)
def test_another_type_text_or_frame_is_another_key(other):
    attempt = failed("took 3 ms", 'File "src/a.py", line 3, in pay', "TimeoutError")
    assert failures.key_of(other) != failures.key_of(attempt)


PYTHON = """Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/case.py", line 57, in run
    yield
  File "tests/test_cart.py", line 12, in test_pay
    pay(cart)
  File "shop/pay.py", line 40, in pay
    requests.get(url)
  File ".venv/lib/python3.11/site-packages/requests/api.py", line 3, in get
    raise error
KeyError: 'a'"""
PYTEST = """
    def test_pay():
>       pay()

tests/test_cart.py:12:
_ _ _ _ _
shop/pay.py:40: AssertionError"""
JAVA = """java.lang.AssertionError: expected
\tat org.junit.Assert.fail(Assert.java:88)
\tat java.base/java.util.ArrayList.forEach(ArrayList.java:1511)
\tat shop.cart.CartTest.lambda$pay$0(CartTest.java:17)
\tat shop.cart.CartTest.pay(CartTest.java:12)"""
NODE = """Error: 10 != 11
    at Object.toBe (node_modules/expect/build/index.js:114:20)
    at async Cart.pay (src/cart.js:4:5)
    at process.processImmediate (node:internal/timers:483:21)"""


@pytest.mark.parametrize(
    ("stack", "frame"),
    [
        (PYTHON, "shop/pay.py:pay"),
        (PYTEST, "shop/pay.py:"),
        (JAVA, "shop/cart/CartTest.java:lambda$pay$0"),
        (NODE, "src/cart.js:Cart.pay"),
        ("Error\n \u276f cart.test.js:6:48", "cart.test.js:"),
        ("at Shop.Cart.Pay(Int32 a) in src/Cart.cs:line 9", "src/Cart.cs:Shop.Cart.Pay"),
        (
            "./spec/cart_spec.rb:3:in `block (2 levels) in <top>'",
            "spec/cart_spec.rb:block (2 levels) in <top>",
        ),
        ("# ./lib/cart.rb:9:in 'Cart#pay'", "lib/cart.rb:Cart#pay"),
        ("\tcart_test.go:12", "cart_test.go:"),
        ("goroutine 1 [running]:\nmain.main()\n\tcmd/main.go:12 +0x1d", "cmd/main.go:"),
        ("panicked at\nsrc/lib.rs:12:5:", "src/lib.rs:"),
        ("/elsewhere/src/a.py:12: Error", ""),
        ("../a.py:12: Error", ""),
        ("nothing here: 12", ""),
        ("", ""),
    ],
)
def test_the_innermost_frame_inside_the_repository(stack, frame):
    assert frames.innermost_frame(stack) == frame


def test_absolute_frames_are_inside_once_the_root_is_known():
    stack = 'File "/build/shop/pay.py", line 40, in pay'
    assert frames.innermost_frame(stack) == ""
    assert frames.innermost_frame(stack, "/build") == "shop/pay.py:pay"


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=20))
def test_every_failure_has_a_key(message, stack, error_type):
    assert re.fullmatch("[0-9a-f]{16}", failures.key_of(failed(message, stack, error_type)))


HOSTILE = [
    *("a" * 8_000, "1" * 8_000, "a1" * 4_000, "/" * 8_000, "/a" * 4_000, ":" * 8_000),
    *("1:" * 4_000, "1." * 4_000, "[a:" * 2_600, "\x1b[0" * 2_600, "\ufffd]" * 4_000),
    *("http:" * 1_600, "1 ms" * 2_000, "a.a:1\n" * 1_300, "at a.a (" * 1_000, "::" * 4_000),
    *("at " + "a." * 3_900 + "(", 'File "' * 1_300, "in `" * 2_000, "#x1B[" * 1_600),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:6]))
def test_no_text_is_slow(text):
    # 1 ms a message (docs/design/reports.md 8); ten times as much for a busy machine, best of five.
    took = []
    for _ in range(5):
        began = process_time()
        failures.key_of(failed(text, text))
        took.append(process_time() - began)
    assert min(took) < 0.01
