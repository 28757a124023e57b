"""Read how the runners of a command ended, in their own words, to send it with the reports.

The protocol is in docs/reference/live-tests.md. A run that began and did not say how it ended was
killed; so was one whose words cannot be read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.cli import live_lines
from bot.uploader import transport, verdict
from bot.uploader.transport import Json
from service.testhealth.runner_ends import (
    ENDS_MAX,
    ERRORS_MAX,
    EXIT_CODE_MAX,
    FILE_MAX,
    MESSAGE_MAX,
    NAME_MAX,
    SHARD_MAX,
    TESTS_MAX,
    EndReason,
)

BYTES_MAX = 32_768
"""The limit of all ends together as JSON: half of the limit of an upload's metadata."""

COUNTS = ("planned", "passed", "failed", "skipped", "not_run")
LISTS = ("unloaded", "errors_outside")
KILLED, *SAID = (each.value for each in EndReason)
"""The reasons, the worst first; what was killed says none."""
WORDS: Mapping[str, str] = {
    EndReason.INTERNAL: "ended by an error of its own",
    EndReason.USAGE: "was started in a wrong way",
    EndReason.INTERRUPTED: "was interrupted",
    EndReason.UNLOADED: "could not load files",
    EndReason.ERROR_OUTSIDE: "met errors outside of the tests",
    EndReason.THRESHOLD: "missed a threshold, such as that of the coverage",
    EndReason.STOPPED_EARLY: "stopped before its end",
    EndReason.NO_TESTS: "found no test",
    EndReason.KILLED: "began and did not end",
}
"""Ends that the reports do not show, for the log of the job."""


def read(path: Path) -> list[Json]:
    """Return how each run in a file of lines ended; empty if the file has none.

    If there are more than can be sent, those are left out that ended best.
    """
    begun: dict[str, Json] = {}
    ends: list[Json] = []
    for value in live_lines.lines_in(path):
        run, runner = _text(value.get("run"), NAME_MAX), _text(value.get("runner"), NAME_MAX)
        if not run or not runner:
            continue
        if value.get("event") == "start":
            begun[run] = {"run": run, "runner": runner, "reason": KILLED}
        elif value.get("event") == "end" and value.get("reason") in SAID:
            ends.append(_end_of(value, run, runner))
    ended = {end["run"] for end in ends}
    ends = [*(start for run, start in begun.items() if run not in ended), *ends]
    return _bounded(sorted(ends, key=_goodness)[:ENDS_MAX])


def sentences(ends: Sequence[Json]) -> Iterator[str]:
    """Yield what the reports do not show: `pytest could not load files: tests/test_mail.py`."""
    for end in ends:
        words = WORDS.get(str(end["reason"]))
        if words is None:
            continue
        errors = [each for name in LISTS for each in transport.objects(end.get(name, []))]
        more = sum(_count(end.get(f"{name}_more")) for name in LISTS)
        places = [str(each["file"] or each["message"]) for each in errors]
        named = verdict.listed(places, len(places) + more)
        yield f"{end['runner']} {words}{f': {named}' if named else ''}"


def _end_of(value: Json, run: str, runner: str) -> Json:
    end: Json = {"run": run, "runner": runner, "reason": value["reason"]}
    code = value.get("exit_code")
    is_code = isinstance(code, int) and not isinstance(code, bool) and 0 <= code <= EXIT_CODE_MAX
    end["exit_code"] = code if is_code else None
    for name in COUNTS:
        end[name] = _count(value.get(name))
    for name in LISTS:
        found = value.get(name)
        listed = found if isinstance(found, list) else []
        errors = [each for each in listed if isinstance(each, dict)]
        end[name] = [
            {
                "file": _text(each.get("file"), FILE_MAX),
                "message": _text(each.get("message"), MESSAGE_MAX),
            }
            for each in errors
        ]
        _set_more(end, name, _count(value.get(f"{name}_more")))
        _cut(end, name, ERRORS_MAX)
    shard = _text(value.get("shard"), SHARD_MAX)
    return {**end, "shard": shard} if shard else end


def _goodness(end: Json) -> int:
    """Return a number that is less for an end that must not be left out."""
    is_plain = not any(end.get(name) for name in (*LISTS, "not_run"))
    return [KILLED, *SAID].index(str(end["reason"])) if is_plain else 0


def _bounded(ends: list[Json]) -> list[Json]:
    """Return the ends with as many of their errors as fit; what is left out is counted."""
    for shown in range(ERRORS_MAX, -1, -1):
        for end in ends:
            for name in LISTS:
                _cut(end, name, shown)
        if len(json.dumps(ends)) <= BYTES_MAX:
            break
    return ends


def _cut(end: Json, name: str, shown: int) -> None:
    errors = end.get(name)
    if isinstance(errors, list) and len(errors) > shown:
        _set_more(end, name, _count(end.get(f"{name}_more")) + len(errors) - shown)
        end[name] = errors[:shown]


def _set_more(end: Json, name: str, more: int) -> None:
    if more:
        end[f"{name}_more"] = min(more, TESTS_MAX)


def _count(value: object) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(max(int(str(value)), 0), TESTS_MAX) if is_number else 0


def _text(value: object, length: int) -> str:
    """Return one line of what is printable: nothing else can be sent."""
    if not isinstance(value, str):
        return ""
    plain = "".join(each if each.isprintable() else " " for each in value)
    return " ".join(plain.split())[:length]
