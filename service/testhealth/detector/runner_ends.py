"""Judge what runners say about their own ends: the gaps it names, and what it proves.

A word can add a gap for every command. It explains something only for a command that is the runner
itself, because only then has every runner of the command spoken, and only if this runner speaks in
the job on the target branch as well: a test could write the line of a plug-in that is not there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.testhealth.detector.gap_texts import code, counted
from service.testhealth.runner_ends import EndReason, FileError, RunnerEnd

SPEAKERS: Mapping[str, str] = {
    "jest": "jest",
    "playwright": "playwright",
    "pytest": "pytest",
    "pytest-cov": "pytest",
    "vitest": "vitest",
}
"""Programs that have a plug-in of ours, and what it calls them."""

SAID: Mapping[EndReason, str] = {
    EndReason.KILLED: "began and never said how it ended",
    EndReason.INTERNAL: "says that it ended by an error of its own",
    EndReason.USAGE: "says that it was started in a wrong way",
    EndReason.INTERRUPTED: "says that it was interrupted",
    EndReason.THRESHOLD: "says that a threshold was missed, such as that of the coverage",
    EndReason.STOPPED_EARLY: "says that it stopped before its end",
    EndReason.NO_TESTS: "says that it found no test",
}

ERRORS_NAMED_MAX = 3
"""Files and errors that are named, of those that a runner tells."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command, and what was told of it: by its sender, by its runners, by its report files.

    `tests` and `failed` are those in its report files. `exit_code` None: not sent. `is_believed`:
    its runner speaks in this job on the target branch.
    """

    runner: str
    exit_code: int | None
    ends: tuple[RunnerEnd, ...]
    tests: int
    failed: int
    is_believed: bool = True

    @property
    def own_ends(self) -> tuple[RunnerEnd, ...]:
        """Return the ends of the runner that the command is; none if it is no runner."""
        speaker = SPEAKERS.get(self.runner)
        return tuple(each for each in self.ends if each.runner == speaker)

    @property
    def is_direct(self) -> bool:
        """Return whether the command is a runner that has spoken for itself, and no other has."""
        return bool(self.ends) and self.own_ends == self.ends


def gaps_of(command: Command) -> tuple[str, ...]:
    """Return what the runners of a command say is missing, and where they contradict something."""
    gaps = [gap for end in command.ends for gap in _gaps_of_end(end)]
    gaps += _contradictions(command)
    return tuple(dict.fromkeys(gaps))


def explains_code(command: Command) -> bool:
    """Return whether its runner says that only failed tests made the command's exit code."""
    failing = {each.exit_code for each in command.ends if each.reason is EndReason.TESTS_FAILED}
    is_known = command.exit_code is not None
    return is_known and _is_whole(command) and failing == {command.exit_code}


def have_loaded_all(commands: Sequence[Command]) -> bool:
    """Return whether the runners of all these commands say that they loaded every file."""
    return bool(commands) and all(_is_whole(each) for each in commands)


def _is_whole(command: Command) -> bool:
    return command.is_believed and command.is_direct and not gaps_of(command)


def _gaps_of_end(end: RunnerEnd) -> Iterable[str]:
    name = code(end.runner)
    said = SAID.get(end.reason)
    if said is not None and not end.is_plain:
        yield f"{name} {said}"
    for error in end.unloaded[:ERRORS_NAMED_MAX]:
        yield f"{_place(error)} did not load: {code(error.message)}"
    yield from _more(name, "file", "that did not load", end.unloaded, end.unloaded_more)
    for error in end.errors_outside[:ERRORS_NAMED_MAX]:
        place = f" of {code(error.file)}" if error.file else ""
        yield f"an error outside of the tests{place}: {code(error.message)}"
    outside, more = end.errors_outside, end.errors_outside_more
    yield from _more(name, "error", "outside of the tests", outside, more)
    if end.reason is EndReason.UNLOADED and not end.unloaded:
        yield f"{name} says that files did not load, and names none"
    if end.reason is EndReason.ERROR_OUTSIDE and not end.errors_outside:
        yield f"{name} says that there were errors outside of the tests, and names none"
    if end.not_run:
        yield f"{name} did not run {end.not_run:,} of {counted(end.planned, 'test')}"


def _more(name: str, what: str, which: str, named: Sequence[FileError], more: int) -> Iterable[str]:
    left = max(0, len(named) - ERRORS_NAMED_MAX) + more
    if left:
        yield f"{name} names {counted(left, what)} more {which}"


def _place(error: FileError) -> str:
    return code(error.file) if error.file else "a file"


def _contradictions(command: Command) -> Iterable[str]:
    """Yield where a runner contradicts itself, the command's end, or the report files."""
    ends = command.ends
    if not ends:
        return
    names = " and ".join(dict.fromkeys(code(each.runner) for each in ends))
    if len({each.run for each in ends}) < len(set(ends)):
        yield f"{names} says two things about the end of one run"
    for end in ends:
        is_failed = end.reason is EndReason.TESTS_FAILED
        if (is_failed and not end.failed) or (end.reason is EndReason.PASSED and end.failed):
            of = counted(end.failed, "failed test")
            yield f"{code(end.runner)} gives {code(end.reason)} as its end, and counts {of}"
    ran = sum(max(0, each.planned - each.not_run) for each in ends)
    if ran > command.tests:
        yield f"{names} ran {counted(ran, 'test')}, and its report files have {command.tests:,}"
    failed = sum(each.failed for each in ends)
    is_none = any(each.is_plain and not each.failed for each in command.own_ends)
    if failed > command.failed or (command.failed and is_none):
        of = counted(failed, "failed test")
        yield f"{names} counts {of}, and its report files have {command.failed:,}"
    yield from _other_codes(command)


def _other_codes(command: Command) -> Iterable[str]:
    """Yield where the command, which is the runner, ended otherwise than the runner says.

    Each end must be right, so that no line can be added to hide one that is not.
    """
    for end in command.own_ends:
        is_known = None not in (end.exit_code, command.exit_code)
        if end.is_plain and is_known and end.exit_code != command.exit_code:
            ended = f"the command ended with {command.exit_code}"
            yield f"{ended}, and {code(end.runner)} says that it ends with {end.exit_code}"
