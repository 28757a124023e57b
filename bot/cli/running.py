"""A command of somebody else's, run as if it stood alone: same terminal, same signals."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from bot.cli.exits import Exit, Failed

RUNNER_MAX = 255

# The file descriptor of standard error.
STDERR = 2

# Words that may stand before the program that runs the tests.
LAUNCHERS = frozenset(
    {
        "bunx",
        "bundle",
        "coverage",
        "dlx",
        "env",
        "exec",
        "node",
        "npm",
        "npx",
        "php",
        "pipenv",
        "pnpm",
        "poetry",
        "py",
        "python",
        "run",
        "time",
        "uv",
        "uvx",
        "xvfb-run",
        "yarn",
    }
)

# What a shell adds to a signal's number.
KILLED = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, 128 + signal when it was killed."""

    code: int
    was_killed: bool


def run(command: Sequence[str], *, keeps_stdout: bool = False) -> Ended:
    """Run a command to its end; its output is its own. Raises Failed(USAGE) when there is none.

    `keeps_stdout`: what the command writes to stdout goes to stderr, so that stdout is ours.

    A signal that asks this process to end is passed on, so that the command ends by it; the
    terminal's own Ctrl-C reaches the command without us.
    """
    if shutil.which(command[0]) is None:
        raise Failed(
            Exit.USAGE,
            f"{command[0]!r} is no command",
            "A command stands behind `--`; quote globs: --junit 'reports/*.xml'",
        )
    try:
        child = subprocess.Popen(command, stdout=STDERR if keeps_stdout else None)
    except OSError as failed:
        raise Failed(Exit.USAGE, f"{command[0]} cannot be run ({failed.strerror})") from failed
    with passing_on(child):
        code = child.wait()
    return Ended(KILLED - code, True) if code < 0 else Ended(code, False)


def runner_of(command: Sequence[str]) -> str:
    """Return the name of the program that runs the tests: `pytest` of `uv run python -m pytest`."""
    for word in command:
        name = re.split(r"[/\\]", word)[-1].lower()
        plain = re.sub(r"\.(?:exe|cmd|bat|phar|m?js|py)$", "", name)
        is_launcher = re.sub(r"[\d.]+$", "", plain) in LAUNCHERS
        if plain and not plain.startswith("-") and "=" not in plain and not is_launcher:
            return plain[:RUNNER_MAX]
    return ""


@contextmanager
def passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals to end go to the child until the block ends."""

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
