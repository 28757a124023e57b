"""Frames of a stack, in the forms that languages and runners print them.

A frame is a place, `file:function`, without its line: a line moves with every edit above it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from service.testhealth.reports.identity import is_absolute, normalized_file

LINES_MAX = 400
LINE_CHARACTERS_MAX = 500
# Code that others wrote, although it lies below the repository.
FOREIGN = ("node_modules", "site-packages", "dist-packages", "vendor", ".venv", "venv")
# Packages of the platform and of test frameworks; JVM frames name no folder to go by.
JVM_FOREIGN = (
    *("java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy."),
    *("junit.", "org.junit.", "org.testng.", "org.hamcrest.", "org.assertj.", "org.mockito."),
    *("org.gradle.", "org.apache.maven.", "org.opentest4j.", "org.scalatest.", "worker.org."),
)

# Every form has a line's number behind a colon or the word; most lines of a text have neither.
NUMBERED = re.compile(r"(?::|line )\d")

_FILE = r"(?P<file>[^\s:()'\"<>]{1,300}\.\w{1,8})"


@dataclass(frozen=True, slots=True)
class Frame:
    """One place of a stack; `function` is empty where the form names none."""

    file: str
    function: str


def _frame_in(match: re.Match[str]) -> Frame:
    """The frame whose file and function the expression names."""
    names = match.groupdict()
    return Frame(names["file"], names.get("function") or "")


def _jvm_frame_in(match: re.Match[str]) -> Frame:
    """A JVM frame; its package is the folder of its file."""
    module, _, function = match["function"].rpartition(".")
    if match["function"].startswith(JVM_FOREIGN):
        return Frame("", "")
    folder = module.rpartition(".")[0].replace(".", "/")
    return Frame(f"{folder}/{match['file']}".lstrip("/"), function)


Reading = Callable[[re.Match[str]], Frame]

# What a line is, tried in this order; and whether the innermost frame is the last of its kind.
FORMS: tuple[tuple[re.Pattern[str], Reading, bool], ...] = (
    # Python: File "a/b.py", line 3, in f
    (
        re.compile(r'File "(?P<file>[^"]{1,300})", line \d+(?:, in (?P<function>[\w.<>]{1,200}))?'),
        _frame_in,
        True,
    ),
    # JVM: at a.b.C.f(C.java:3)
    (
        re.compile(
            r"at (?:[\w.\-]{1,80}/{1,2})?(?P<function>[\w.$<>]{1,300})"
            r"\((?P<file>[\w$\-]{1,100}\.\w{1,8}):\d+\)"
        ),
        _jvm_frame_in,
        False,
    ),
    # JavaScript: at f (a/b.js:3:4), at a/b.js:3:4
    (
        re.compile(
            rf"at (?:async )?(?P<function>[\w.$<> \[\]]{{1,200}}?) \((?:file://)?{_FILE}:\d+:\d+\)"
        ),
        _frame_in,
        False,
    ),
    (re.compile(rf"(?:at|\u276f) (?:async )?(?:file://)?{_FILE}:\d+:\d+"), _frame_in, False),
    # .NET: at N.C.F(String a) in a/b.cs:line 3
    (
        re.compile(
            r"at (?P<function>[\w.`+<>\[\]]{1,300})\([^()]{0,300}\) in (?P<file>.{1,300}):line \d+"
        ),
        _frame_in,
        False,
    ),
    # Ruby: a/b.rb:3:in `f'
    (
        re.compile(rf"(?:# )?{_FILE}:\d+:in [`'](?P<function>[^`']{{1,200}})'"),
        _frame_in,
        False,
    ),
    # pytest, one a level: a/b.py:3: AssertionError
    (re.compile(r"(?P<file>[^\s:()'\"<>]{1,300}\.py):\d+: ?(?:\w.{0,200})?"), _frame_in, True),
    # Go, Rust, PHP and others: a/b.go:3, a/b.rs:3:4, a/b.go:3 +0x1d
    (re.compile(rf"(?:at )?{_FILE}:\d+(?::\d+)?(?: \+0x[0-9a-f]{{1,16}})?:?"), _frame_in, False),
)


def innermost_frame(stack: str, source_root: str = "") -> str:
    """`file:function` of the innermost frame inside the repository, else empty.

    Inside is a relative path, after `source_root` was taken off, not below a folder of others'
    code.
    """
    innermost = ""
    for line in stack.split("\n", LINES_MAX)[:LINES_MAX]:
        read = _frame_of(line.strip()[:LINE_CHARACTERS_MAX])
        if read is None:
            continue
        frame, is_last_innermost = read
        file = normalized_file(frame.file, source_root)
        if _is_inside(file):
            innermost = f"{file}:{frame.function}"
            if not is_last_innermost:
                return innermost
    return innermost


def files_in(stack: str) -> frozenset[str]:
    """The files of the repository that a stack names."""
    lines = stack.split("\n", LINES_MAX)[:LINES_MAX]
    read = (_frame_of(line.strip()[:LINE_CHARACTERS_MAX]) for line in lines)
    files = {normalized_file(each[0].file, "") for each in read if each is not None}
    return frozenset(file for file in files if _is_inside(file))


def _frame_of(line: str) -> tuple[Frame, bool] | None:
    """The frame that the whole line is, and whether the last of its kind is the innermost."""
    if not NUMBERED.search(line):
        return None
    for pattern, reading, is_last_innermost in FORMS:
        match = pattern.fullmatch(line)
        if match:
            return reading(match), is_last_innermost
    return None


def is_frame(line: str) -> bool:
    """Return whether the stripped line is a frame or the head of a list of them."""
    if line.startswith(("Traceback (most recent call last)", "Stack trace:", "Backtrace:")):
        return True
    return _frame_of(line[:LINE_CHARACTERS_MAX]) is not None


def _is_inside(file: str) -> bool:
    """Return whether a normalized path is one of the repository's own files."""
    if not file or is_absolute(file) or file.startswith(("../", "node:", "internal/", "<")):
        return False
    return not any(folder in FOREIGN for folder in file.split("/"))
