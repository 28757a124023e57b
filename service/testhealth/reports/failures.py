"""Failure text to a headline, and to a key that groups failures of one kind.

The key takes out what changes between two runs of the same failure: times, addresses, ids,
numbers, places on a machine. Every expression here is linear in the text.

See docs/design/reports.md 8.
"""

import re
from enum import StrEnum
from hashlib import sha256

from service.testhealth.reports.frames import innermost_frame, is_frame
from service.testhealth.reports.results import Attempt
from service.testhealth.reports.text import without_escapes

HEADLINE_CHARACTERS_MAX = 1_000
SUMMARY_CHARACTERS_MAX = 200
KEYED_CHARACTERS_MAX = 2_000
KEY_TEXT_CHARACTERS_MAX = 300
KEY_HEX_DIGITS = 16
# A new version of the stages below gets a new number; keys of the old one stay as they are.
KEY_VERSION = "1"
# A message stands above its stack, or right below; what comes later is no headline.
LINES_MAX = 40

# Cursor and color codes are gone by then; what remains are single control characters.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
LETTER = re.compile(r"[^\W\d_]")

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|\s?[+-]\d{2}:?\d{2})?"
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_UNIT = r"(?:ns|us|µs|μs|ms|s|sec|secs|seconds?|milliseconds?|min|mins|minutes?|h|hours?)"
_SEGMENT = r"[\w.@+~$%=,\-]+"
_HEX4 = r"[0-9a-fA-F]{1,4}"

# Order matters: each stage sees what the ones before it left.
STAGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.\-]{1,15}://[^\s\"'<>)\]}]+"), "<url>"),
    (re.compile(rf"\b{_DATE}(?:[T ]{_TIME}|T\d{{2}}:\d{{2}}Z?)?|\b{_TIME}"), "<time>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+"), "<addr>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<ip>"),
    (
        re.compile(
            r"\[[0-9a-fA-F:.]{2,45}\](?::\d{1,5})?"
            rf"|(?<![\w:])(?:{_HEX4}:){{7}}{_HEX4}\b"
            rf"|(?<![\w:])(?:{_HEX4})?(?::{_HEX4}){{0,6}}::(?:{_HEX4}(?::{_HEX4}){{0,6}})?(?![\w:])"
        ),
        "<ip>",
    ),
    (re.compile(rf"(?<![\w.]){_NUMBER}\s?{_UNIT}\b"), "<dur>"),
    (
        re.compile(rf"(?<![\w.<>/\\\-])(?:[A-Za-z]:)?(?:[\\/]{_SEGMENT})*[\\/]({_SEGMENT})"),
        r"<path>/\1",
    ),
    (re.compile(r"\b(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[a-zA-Z0-9]{16,}\b"), "<id>"),
    (re.compile(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{7,}\b"), "<hex>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def headline_of(attempt: Attempt) -> str:
    """Return what a person reads first: the message, led by its type, at most 1,000 characters.

    Without a message the first meaningful line of the stack; without either the type alone.
    """
    message = attempt.message.strip() or first_meaningful_line(attempt.stack)
    return _with_type(message, attempt.error_type.strip())[:HEADLINE_CHARACTERS_MAX]


class Phase(StrEnum):
    """The part of a test in which a failure happened."""

    SETUP = "setup"
    CALL = "call"
    TEARDOWN = "teardown"


def phase_of(headline: str) -> Phase:
    """Return where a failure happened, as pytest says it, now and before version 6.

    It reports what a fixture of a module or of the whole run raises at a test that uses it: an
    error of its tear-down at the test that ran last.
    """
    for phase in (Phase.SETUP, Phase.TEARDOWN):
        if headline.startswith((f"failed on {phase} with ", f"test {phase} failure")):
            return phase
    return Phase.CALL


def summary_of(headline: str) -> str:
    """The headline on one line of at most 200 characters."""
    line = " ".join(headline.split())
    if len(line) <= SUMMARY_CHARACTERS_MAX:
        return line
    return f"{line[: SUMMARY_CHARACTERS_MAX - 1]}…"


def _with_type(message: str, error_type: str) -> str:
    """The message, prefixed by its type unless it begins with it, in full or by its last part."""
    if not error_type or not message:
        return message or error_type
    short = re.split(r"[.:\\/$]", error_type)[-1] or error_type
    if message.startswith((error_type, short)):
        return message
    return f"{error_type}: {message}"


def first_meaningful_line(text: str) -> str:
    """The first line that holds a letter and is no frame of a stack, stripped; else empty."""
    for line in text.split("\n", LINES_MAX)[:LINES_MAX]:
        stripped = line.strip()
        if LETTER.search(stripped) and not is_frame(stripped):
            return stripped
    return ""


def key_of(attempt: Attempt, source_root: str = "") -> str:
    """16 hex digits, equal for failures of one kind whenever and wherever they happen.

    Of the exception's type, the headline without what changes, and the innermost frame inside
    the repository without its line.
    """
    message = attempt.message.strip() or first_meaningful_line(attempt.stack)
    text = stable_text(_with_type(message, attempt.error_type.strip()))
    frame = innermost_frame(attempt.stack, source_root)
    parts = (KEY_VERSION, attempt.error_type.strip(), text, frame)
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:KEY_HEX_DIGITS]


def stable_text(text: str) -> str:
    """The text with everything that changes from run to run named instead of shown."""
    text = CONTROL.sub("", without_escapes(text[:KEYED_CHARACTERS_MAX]))
    for pattern, name in STAGES:
        text = pattern.sub(name, text)
    return text.strip()[:KEY_TEXT_CHARACTERS_MAX]
