"""A scenario file, played once: each input with its timeline and every submission after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    EntryMoved,
    EntryPlaced,
    EntrySubmitted,
    EntryUpdated,
    LandingHalted,
    Recorded,
    RunRetried,
    RunStarted,
)
from service.mergequeue.engine.states import FINAL
from service.mergequeue.wording.situation import PullRequestText
from service.text.markdown import Links
from tests.mergequeue.script import Script
from tests.mergequeue.stage import Stage
from tests.mergequeue.timeline import Timeline

RULE = "---"
"""Above it a file has its inputs, below it the timeline."""
FILES = {path.stem: path for path in (Path(__file__).parent / "scenarios").rglob("*.txt")}
"""Every scenario by name; the folder says what it is about."""

_LINKS = Links("https://ci.example")


class Listener(Timeline):
    """A timeline that keeps its events."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Recorded] = []

    def lines(self, events: Sequence[Recorded]) -> list[str]:
        self.heard += events
        return super().lines(events)


@dataclass(frozen=True)
class Step:
    """One input, the lines it adds to the timeline, and all submissions after it by number."""

    part: str
    lines: list[str]
    views: list[PullRequestText]


class Play:
    """A scenario with every submission that ever was in it, as last seen."""

    def __init__(self, file: Path) -> None:
        inputs = file.read_text("utf-8").partition(f"{RULE}\n")[0]
        first, *others = [line for line in inputs.splitlines() if line and not line.startswith("#")]
        assert all(line.startswith("> ") for line in others), file
        self.parts = [part for line in others for part in line[2:].split(" ; ")]
        self.script = Script(first)
        self.listener = Listener()
        self.script.timeline = self.listener
        self.entries: dict[str, Entry] = {}
        self.runs: dict[str, Run] = {}

    @property
    def stage(self) -> Stage:
        """The world around the queue."""
        return self.script.stage

    def steps(self) -> Iterator[Step]:
        """Play the inputs one by one."""
        for part in self.parts:
            before = len(self.listener.heard)
            lines = self.script.play(part)
            self._look(self.listener.heard[before:])
            shown = sorted(self.entries.values(), key=lambda entry: (entry.pr, entry.id))
            yield Step(part, lines, [self._view(entry) for entry in shown])

    def _look(self, news: list[Recorded]) -> None:
        queue = self.stage.queue
        self.runs |= queue.runs
        self.entries |= {entry.id: entry for entry in queue.entries.values()}
        for recorded in news:
            event = recorded.event
            if (
                isinstance(event, EntryMoved)
                and event.state in FINAL
                and event.entry in self.entries
            ):
                self.entries[event.entry] = replace(
                    self.entries[event.entry],
                    state=event.state,
                    reason=event.reason,
                    detail=event.detail,
                )

    def _view(self, entry: Entry) -> PullRequestText:
        queue, now = self.stage.queue, self.stage.now
        is_live = entry.state not in FINAL
        return PullRequestText(
            queue=queue,
            entry=entry,
            explained=explain.explain(queue, entry.pr, now) if is_live else explain.of_final(entry),
            run=self.runs.get(entry.run or ""),
            position=None,
            length=len(queue.entries),
            left=None,
            history=tuple(each for each in self.listener.heard if self._is_of(each, entry)),
            links=_LINKS,
            now=now,
            version="0.1.0",
        )

    def _is_of(self, recorded: Recorded, entry: Entry) -> bool:
        event = recorded.event
        if isinstance(event, EntrySubmitted | EntryMoved | EntryUpdated | EntryPlaced):
            return event.entry == entry.id
        if isinstance(event, RunStarted | BisectionOpened):
            return entry.pr in event.prs
        if isinstance(event, BisectionNarrowed | BisectionClosed):
            return event.bisection in self._searches_of(entry)
        if isinstance(event, RunRetried | LandingHalted):
            return event.run == entry.run
        return False

    def _searches_of(self, entry: Entry) -> set[str]:
        opened = [each.event for each in self.listener.heard]
        return {
            event.bisection
            for event in opened
            if isinstance(event, BisectionOpened) and entry.pr in event.prs
        }
