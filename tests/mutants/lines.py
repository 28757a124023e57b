"""Which tests execute which lines of a module: only those can notice a mutant of a line."""

import pickle
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, BinaryIO

import pytest


class Watch:
    """A plugin of pytest that notes the lines of one file that each test executes, and its cost.

    Tests run in a child, so what it notes goes to the parent through a file that both have open.
    The cost is in seconds of the processor. What a fixture of the whole session executes counts for
    the first test that needs it.
    """

    def __init__(self, file: str, notes: BinaryIO) -> None:
        self._file = file
        self._notes = notes
        self.lines: dict[str, set[int]] = {}
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Watch one test, with the fixtures that it sets up."""
        seen = self.lines[item.nodeid] = set()
        is_of_file: dict[CodeType, bool] = {}

        def note(frame: FrameType, *_: object) -> Any:
            seen.add(frame.f_lineno)
            return note

        def enter(frame: FrameType, *_: object) -> Any:
            code = frame.f_code
            if code not in is_of_file:
                is_of_file[code] = code.co_filename == self._file
            return note(frame) if is_of_file[code] else None

        before, began_s = sys.gettrace(), time.process_time()
        threading.settrace(enter)
        sys.settrace(enter)
        try:
            return (yield)
        finally:
            sys.settrace(before)
            self.seconds[item.nodeid] = time.process_time() - began_s

    def write(self) -> None:
        """Leave what was noted to the parent; called in the child."""
        pickle.dump((self.lines, self.seconds), self._notes)
        self._notes.flush()

    def read(self) -> None:
        """Take what the child has left."""
        self._notes.seek(0)
        self.lines, self.seconds = pickle.load(self._notes)

    def touching(self, first: int, last: int) -> list[str]:
        """The tests that execute one of these lines, the quickest first."""
        asked = set(range(first, last + 1))
        found = [name for name, lines in self.lines.items() if lines & asked]
        return sorted(found, key=self.seconds.__getitem__)

    def seconds_of(self, tests: Sequence[str]) -> float:
        """How long the processor works for these tests; for all of them if none is named."""
        return sum(self.seconds[name] for name in tests or self.seconds)
