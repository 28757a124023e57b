"""Run tests of a command again when it is done (docs/design/active-evidence.md).

The exit code and the reports of the command are settled before; nothing here changes them. The
command runs again with `HEADGATE_ONLY`, which names the tests and how often each is to run.
"""

import json
import math
import os
import signal
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bot.cli import live, output
from bot.cli.live_lines import VERSION, lines_in
from bot.uploader import transport
from bot.uploader.transport import Json, Request, RequestFailed

ONLY = "HEADGATE_ONLY"
PLAN, REPORT = "/flaky-tests/plan-repeats", "/flaky-tests/report-repeats"
TIMEOUT_S = 10.0

END_S = 5.0
"""Seconds that a command has to end when its time is over."""

LOOK_S = 0.2
"""Seconds between two looks at the clock while a command runs."""

PROCESSES = 2
"""The command runs so often: some tests fail or pass alike in all of one process."""

RUNNERS = frozenset({"pytest", "pytest-cov"})
"""Commands that are a runner whose plug-in can run single tests again."""

FIELDS = ("sha", "branch", "pr_number", "run_id", "run_attempt", "job")
_CLOCK = transport.Clock()
_STDERR = 2


class Repeatable(NamedTuple):
    """A command that has ended, and its upload; `is_able`: its runner can run single tests."""

    command: Sequence[str]
    job: live.Job
    upload_id: str
    is_able: bool


def repeat(done: Repeatable) -> None:
    """Run tests again if the service asks for it, and report them. Raises nothing of the network.

    A service that knows no plans is not asked twice. A signal that asks this process to end ends
    the repeats with what they started; the exit code of the job stands.
    """
    with _stopped_by_signals() as stop:
        _repeat(done, stop)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Yield what is set by a signal to end, until the block ends."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in numbers}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _repeat(done: Repeatable, stop: threading.Event) -> None:
    try:
        plan = _ask(done)
        tests = transport.objects(plan.get("tests") or [])
        if not tests:
            if str(plan.get("standing")).lower() != "off":
                output.log(f"headgate: no test is run again: {plan.get('message', '')}")
            return
        seconds = float(str(plan["seconds"]))
        named = ", ".join(f"{_shown(each)} ({str(each['because']).lower()})" for each in tests[:5])
        more = f" and {len(tests) - 5} more" if len(tests) > 5 else ""
        output.log(
            f"headgate: running {len(tests)} tests again for at most {seconds:.0f} s, which changes"
            f" no result of this job: {named}{more}"
        )
        began_s = _CLOCK.monotonic_s()
        letters = _run(done.command, tests, seconds, stop)
        _report(done, plan, letters, _CLOCK.monotonic_s() - began_s)
        if stop.is_set():
            output.log(
                "headgate: a signal ended the repeats; the exit code of this job stays as it was"
            )
        _say(tests, letters)
    except RequestFailed as failed:
        output.log(f"headgate: no test is run again: {failed.reason}")
    except (KeyError, OSError, TypeError, ValueError):
        output.log("headgate: no test is run again: the answer is no plan of repeats")


def _about(done: Repeatable) -> Json:
    job = done.job
    repository = job.service.repository
    service = job.service.connect(job.service.find_token(), bool, TIMEOUT_S)
    metadata = {name: job.metadata[name] for name in FIELDS if job.metadata.get(name)}
    return {
        "repo": {"host": repository.host, "owner": repository.owner, "name": repository.name},
        "org_url_slug": job.service.organization_of(service),
        **metadata,
    }


def _ask(done: Repeatable) -> Json:
    body = {**_about(done), "upload_id": done.upload_id, "able": done.is_able}
    return _send(done, PLAN, body)


def _send(done: Repeatable, path: str, body: Json) -> Json:
    service = done.job.service.connect(done.job.service.find_token(), bool, TIMEOUT_S)
    headers = {"Content-Type": "application/json"}
    return service.send(Request(path, headers, json.dumps(body).encode()), ())


def _run(
    command: Sequence[str], tests: Sequence[Json], seconds: float, stop: threading.Event
) -> list[str]:
    """Run the command with these tests alone; return the letters of each test.

    It runs in PROCESSES processes, which share the time; one that takes longer is ended, and all
    are when `stop` is set.
    """
    letters = ["" for _ in tests]
    end_s = _CLOCK.monotonic_s() + seconds
    for left in range(PROCESSES, 0, -1):
        left_s = end_s - _CLOCK.monotonic_s()
        if left_s <= 0 or stop.is_set():
            break
        wanted = [
            math.ceil((int(str(each["times"])) - _count(word)) / left)
            for each, word in zip(tests, letters, strict=True)
        ]
        with tempfile.TemporaryDirectory(prefix="headgate-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            variables = _prepared(folder, tests, wanted)
            _run_once(command, variables, left_s / left, stop)
            reported = _letters_in(folder / "live")
        for at, word in enumerate(letters):
            letters[at] = "/".join(filter(None, (word, reported.get(at, ""))))
    return letters


def _count(letters: str) -> int:
    return len(letters) - letters.count("/")


def _prepared(folder: Path, tests: Sequence[Json], times: Sequence[int]) -> dict[str, str]:
    variables = live.plugin_variables(folder)
    names = [
        {
            "name": each["name"],
            "classname": each["classname"],
            "parent": each["parent"],
            "file": each["file_path"],
            "times": count,
        }
        for each, count in zip(tests, times, strict=True)
    ]
    (folder / "only.json").write_text(json.dumps({"v": VERSION, "tests": names}), "utf-8")
    return {**variables, ONLY: str(folder / "only.json")}


def _run_once(
    command: Sequence[str], variables: Mapping[str, str], seconds: float, stop: threading.Event
) -> None:
    """Run the command to its end or for so long; what it prints goes to stderr."""
    end_s = _CLOCK.monotonic_s() + max(1.0, seconds)
    with subprocess.Popen(
        command, stdout=_STDERR, env={**os.environ, **variables}, start_new_session=True
    ) as child:
        while child.poll() is None:
            if stop.is_set() or _CLOCK.monotonic_s() > end_s:
                _end(child)
            else:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(LOOK_S)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a command and what it has started."""
    for number, wait_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, number)
            child.wait(wait_s)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _letters_in(path: Path) -> dict[int, str]:
    """Return the letters that the runner reported, by the place of each test in its file."""
    found: defaultdict[int, str] = defaultdict(str)
    for line in lines_in(path):
        at, outcome = line.get("at"), line.get("outcome")
        is_known = isinstance(at, int) and outcome in ("passed", "failed")
        if line.get("event") == "repeat" and is_known:
            found[int(str(at))] += "P" if outcome == "passed" else "F"
    return found


def _report(done: Repeatable, plan: Json, letters: Sequence[str], seconds: float) -> None:
    tests = transport.objects(plan["tests"])
    pairs = zip(tests, letters, strict=True)
    ran = [{"test_id": str(each["test_id"]), "runs": word} for each, word in pairs if word]
    body = {
        **_about(done),
        "plan_id": plan["plan_id"],
        "seconds": round(seconds, 3),
        "tests": ran,
    }
    _send(done, REPORT, body)


def _say(tests: Sequence[Json], letters: Sequence[str]) -> None:
    runs = sum(map(_count, letters))
    failed = [(each, word) for each, word in zip(tests, letters, strict=True) if "F" in word]
    output.log(f"headgate: ran {runs} tests again, {len(failed)} of {len(tests)} failed at times")
    for each, word in failed:
        output.log(
            f"headgate: {_shown(each)} failed {word.count('F')} of {_count(word)} times on the same"
            " code"
        )


def _shown(test: Json) -> str:
    place = str(test["file_path"] or test["classname"])
    return f"{place}::{test['name']}" if place else str(test["name"])
