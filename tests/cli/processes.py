"""`headgate` as real processes, spoken to as a shell and an init system would."""

import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "bot"]

# Long enough for a slow machine; what takes longer hangs.
END_TIMEOUT_S = 100


def environment(**settings):
    """The environment of this process without anything of Headgate, plus `settings`."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADGATE_", "GITHUB_", "COV_"))
    }
    ours = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "HEADGATE_ADMIN_LISTEN": "off"}
    return plain | ours | settings


@contextmanager
def log_kept():
    """Commands run in this process may set up the log; afterwards it is as before."""
    root = logging.getLogger()
    before = root.handlers, root.level
    try:
        yield
    finally:
        root.handlers, root.level = before
        logging.captureWarnings(capture=False)
        structlog.reset_defaults()


class Service:
    """A running `headgate serve`; its log lines as they come."""

    def __init__(self, child):
        self.child = child
        self.log = []
        self.url = self.line("ready")["url"]

    def line(self, event):
        """The next log line of this event; fails with the log when the process ends before."""
        for text in self.child.stderr:
            self.log.append(text)
            found = json.loads(text) if text.startswith("{") else {}
            if found.get("event") == event:
                return found
        raise AssertionError(f"no {event} in the log:\n{''.join(self.log)}")

    def stop(self, number=signal.SIGTERM):
        """Send a signal; the exit code."""
        self.child.send_signal(number)
        self.log += self.child.stderr.readlines()
        return self.child.wait(END_TIMEOUT_S)


@contextmanager
def started(*arguments, cwd, **settings):
    """A process that is ended at the latest with the context."""
    child = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


@contextmanager
def sandbox(cwd, *arguments):
    """A running sandbox: the settings it prints."""
    with started("sandbox", "--port", "0", "--json", *arguments, cwd=cwd) as child:
        yield json.loads(child.stdout.readline())


@contextmanager
def serving(cwd, *arguments, **settings):
    """A running service that is ready, on any free port."""
    with ExitStack() as stack:
        options = ("serve", "--port", "0", *arguments)
        yield Service(stack.enter_context(started(*options, cwd=cwd, **settings)))
