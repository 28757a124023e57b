"""Real queues, played: whatever the engine says of a pull request has its text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

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
from service.mergequeue.wording import bodies, conditions, history, notices, reasons, replies
from service.mergequeue.wording.situation import PullRequestText
from service.text.markdown import Links
from tests.harness.expect import expect
from tests.mergequeue.script import Script
from tests.mergequeue.timeline import Timeline
from tests.wording import hygiene

SCENARIOS = Path(__file__).parents[1] / "mergequeue" / "scenarios"

LINKS = Links("https://ci.example")


class Listener(Timeline):
    """Takes the place of a script's timeline and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Recorded] = []

    def lines(self, events: Sequence[Recorded]) -> list[str]:
        self.heard += events
        return []


class Play:
    """A scenario with every submission that ever was in it, as last seen."""

    def __init__(self, file: Path) -> None:
        inputs = file.read_text("utf-8").partition("---\n")[0]
        kept = [line for line in inputs.splitlines() if line and not line.startswith("#")]
        self.parts = [part for line in kept[1:] for part in line[2:].split(" ; ")]
        self.script = Script(kept[0])
        self.listener = Listener()
        self.script.timeline = self.listener
        self.entries: dict[str, Entry] = {}
        self.runs: dict[str, Run] = {}

    def views(self) -> Iterator[tuple[str, list[PullRequestText]]]:
        """Each input with all submissions as they are after it, by number."""
        for part in self.parts:
            before = len(self.listener.heard)
            self.script.play(part)
            self._look(self.listener.heard[before:])
            shown = sorted(self.entries.values(), key=lambda entry: (entry.pr, entry.id))
            yield part, [self._view(entry) for entry in shown]

    def _look(self, news: list[Recorded]) -> None:
        queue = self.script.stage.queue
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
        queue, now = self.script.stage.queue, self.script.stage.now
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
            links=LINKS,
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


def texts(view: PullRequestText) -> Iterator[str]:
    """Everything that is written about a pull request, in Markdown."""
    yield notices.status_comment(view)
    yield notices.check_report(view).summary
    yield replies.status(view).text or ""
    if notices.is_announced(view):
        yield notices.failure_comment(view)


def sentences(view: PullRequestText) -> Iterator[str]:
    """Everything that the API says in words."""
    yield reasons.message(view.entry, view.queue)
    yield bodies.summary(view)
    yield from (conditions.message(one, view.queue) for one in view.explained.conditions)
    if view.explained.next is not None:
        yield conditions.next_message(view.explained.next)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.txt")))
def test_every_scene_can_be_told(name):
    play = Play(SCENARIOS / f"{name}.txt")
    for part, views in play.views():
        for view in views:
            assert [hygiene.faults(text, mentions=("alice",)) for text in texts(view)] == [
                [] for _ in texts(view)
            ], (part, view.entry.pr)
            said = list(sentences(view))
            assert all(each.endswith(".") and each[0] != " " for each in said), said
    told = [history.message(each, "main") for each in play.listener.heard]
    assert told or all(part.startswith("submit") for part in play.parts)
    assert all(each.endswith(".") for each in told)


def test_the_comments_of_a_failure_ahead():
    pages = []
    for part, views in Play(SCENARIOS / "failure-ahead.txt").views():
        shown = [notices.status_comment(view) for view in views if view.entry.pr in (1, 2)]
        pages += [f"after {part}:", *shown]
    expect("\n\n".join(pages)).matches("story-failure-ahead.txt")
