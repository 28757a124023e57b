"""Run the command of a test job, same terminal, same signals, and name its test runner.

The name is that of a program whose exit code is the command's own, so that the service can tell
what the code means: what a shell line of several commands, a script of `package.json` or `make`
ends with is not the runner's.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from bot.cli.exits import Exit, Failed

RUNNER_MAX = 255

# Words that may precede the program that runs the tests.
LAUNCHERS = re.compile(
    r"bunx|bundle|coverage|dlx|env|exec|node|npx|php|pipenv|poetry|py|python|run|time|uv|uvx"
    r"|xvfb-run"
)

# Programs that run scripts of a project by name, unless one of these words follows.
OF_SCRIPTS = frozenset({"bun", "npm", "pnpm", "yarn"})
OF_PROGRAMS = frozenset({"dlx", "exec", "x"})

SHELLS = frozenset({"bash", "dash", "sh", "zsh"})

# Anything by which a shell line is more than one plain command.
MORE_THAN_ONE = re.compile(r"[;&|<>()`$\n]|^\s*!|\b(?:if|while|for|until|case)\b")

# Programs that do many things: the word after the program tells which.
BY_WORD = frozenset({"bazel", "bazelisk", "cargo", "go"})
NAMES = {"bazelisk test": "bazel test"}

PYTEST, PYTEST_WITH_COVERAGE = "pytest", "pytest-cov"
COVERAGE = "--cov"
OPTIONS_FILE = ("-c", "--config-file", "--rootdir")
PYTEST_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
PARENTS_MAX = 20


def runner_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the program that runs the tests: `pytest` of `uv run python -m pytest`.

    pytest that measures coverage is `pytest-cov`, by option or by setting: a missed threshold ends
    it with the code of a failed test. Empty if there is no such name.
    """
    words = list(_unwrapped(command))
    at, name = _program_in(words)
    rest = words[at + 1 :]
    if name in BY_WORD:
        name = " ".join((name, *[word for word in rest if not word.startswith(("-", "+"))][:1]))
        return NAMES.get(name, name)[:RUNNER_MAX]
    given = os.environ if environment is None else environment
    if name == PYTEST and _has_coverage(rest, given.get("PYTEST_ADDOPTS", ""), Path.cwd()):
        return PYTEST_WITH_COVERAGE
    return name[:RUNNER_MAX]


def _unwrapped(command: Sequence[str]) -> Sequence[str]:
    """Return the one plain command that a shell runs, else the words as they are."""
    is_line = len(command) == 3 and command[1] in ("-c", "-ec", "-lc")
    if not (is_line and _plain_name(command[0]) in SHELLS) or MORE_THAN_ONE.search(command[2]):
        return command
    try:
        return shlex.split(command[2])
    except ValueError:
        return command


def _program_in(words: Sequence[str]) -> tuple[int, str]:
    for at, word in enumerate(words):
        plain = _plain_name(word)
        is_launcher = LAUNCHERS.fullmatch(re.sub(r"[\d.]+$", "", plain))
        if plain in OF_SCRIPTS and OF_PROGRAMS & {*words[at + 1 : at + 2]}:
            continue
        if plain in OF_PROGRAMS:
            continue
        if plain and not plain.startswith("-") and "=" not in plain and not is_launcher:
            return at, plain
    return len(words), ""


def _plain_name(word: str) -> str:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.sub(r"\.(?:exe|cmd|bat|phar|m?js|py)$", "", name)


def _has_coverage(words: Sequence[str], more: str, folder: Path) -> bool:
    """Return whether pytest may measure coverage, by its options or a file of settings.

    `words` are its arguments, `more` those of the environment, `folder` is where it starts. Options
    that are elsewhere than usual count as coverage.
    """
    if any(word.startswith(("@", *OPTIONS_FILE)) or COVERAGE in word for word in (*words, more)):
        return True
    return any(COVERAGE in _text_of(file) for file in _settings_files(words, folder))


def _settings_files(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Every file that pytest may read settings from: beside its arguments and above them."""
    places = (folder / word.partition("::")[0] for word in words if not word.startswith("-"))
    starts = {folder.resolve(), *(each.resolve() for each in places if each.exists())}
    folders = {above for each in starts for above in (each, *list(each.parents)[:PARENTS_MAX])}
    return (each / name for each in sorted(folders) for name in PYTEST_FILES)


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


# The file descriptor of standard error.
STDERR = 2

# What a shell adds to a signal's number.
KILLED = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: its exit code, 128 + signal when it was killed."""

    code: int
    was_killed: bool


def run(command: Sequence[str], *, keeps_stdout: bool = False) -> Ended:
    """Run a command to its end. Raises Failed(USAGE) if it cannot be run.

    `keeps_stdout`: the command's stdout goes to stderr, so that stdout has our answer alone.

    A signal that asks this process to end is passed on to the command; the terminal sends it
    Ctrl-C itself.
    """
    if shutil.which(command[0]) is None:
        raise Failed(
            Exit.USAGE,
            f"{command[0]!r} is not a command",
            "The command follows `--`; quote globs: --junit 'reports/*.xml'",
        )
    try:
        child = subprocess.Popen(command, stdout=STDERR if keeps_stdout else None)
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{command[0]} cannot be run ({failed.strerror})") from failed
    with passing_on(child):
        code = child.wait()
    return Ended(KILLED - code, True) if code < 0 else Ended(code, False)


@contextmanager
def passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass signals to end on to the child until the block ends."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not os.isatty(sys.stdin.fileno()):
            child.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
