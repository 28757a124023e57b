"""Run the command of a test job: same terminal, same signals."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from bot.cli.exits import Exit, Failed

# The file descriptor of standard error.
STDERR = 2

# What a shell adds to a signal's number.
KILLED = 128


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, 128 + signal when it was killed."""

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
