"""The worked scenarios of docs/design/testing.md 7, claim by claim.

Below each input stands what the document says of it, and nothing else. `starts` lists every run
that begins, in order: nothing else may begin. `merged` and `unit` list everybody who lands: nobody
else may; a unit is landed by one run. `moved` is a step that an entry takes on the way, `now`
where it stands in the end. `untouched` runs are in progress and nothing happened to them.
"""

import re
from collections.abc import Callable, Mapping

import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.outputs import (
    EntryMoved,
    LandingStarted,
    Recorded,
    RunFinished,
    RunRetired,
    RunRetried,
    RunStarted,
)
from service.mergequeue.engine.states import EntryState, QueueState, RunKind, RunStatus
from tests.mergequeue.script import Script
from tests.mergequeue.stage import Told, together
from tests.mergequeue.words import number_of

WORKED = {
    "1 happy path": """
        queue SINGLE concurrency=2
        > submit 1 2
          starts r1[1 | ] r2[2 | 1]
          now 1 TESTING
          now 2 TESTING
        > pass r2
          now 2 TESTS_PASSED
        > pass r1
          merged 1 2
    """,
    "2 failure ahead": """
        queue SINGLE concurrency=2
        > submit 1 2 3
          starts r1[1 | ] r2[2 | 1]
          now 3 PENDING
        > fail r2
          starts r3[3 | 1]
          now 2 PENDING_FAILURE
        > fail r1
          starts r4[2 | ] r5[3 | 2]
          now 1 FAILED required_status_failed
          moved 2 PENDING ahead_failed
          moved 3 PENDING ahead_failed
    """,
    "3 optimistic clear": """
        queue SINGLE concurrency=3 optimistic depth=1
        > submit 1 2 3 ; fail r1
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
          now 1 PENDING_FAILURE
          untouched r2
          untouched r3
        > pass r2
          moved 1 TESTS_PASSED successor_passed
          unit r2 1 2
          untouched r3
    """,
    "4 batch, one culprit": """
        queue SINGLE batch=4 concurrency=1 bisection=1
        > submit 1 2 3 4
          starts r1[1 2 3 4 | ]
        > fail r1
          starts probe r2[1 2 | ]
          now 1 PENDING_FAILURE
          now 2 PENDING_FAILURE
          now 3 PENDING_FAILURE
          now 4 PENDING_FAILURE
        > pass r2
          starts probe r3[1 2 3 | ]
          moved 1 TESTS_PASSED bisection_passed
          moved 2 TESTS_PASSED bisection_passed
          unit r2 1 2
        > fail r3
          starts confirmation r4[1 2 3 | ]
          leaf 3
        > fail r4
          starts r5[4 | ]
          now 3 FAILED required_status_failed
          moved 4 PENDING bisection_required
    """,
    "4 busy": """
        queue SINGLE batch=4 concurrency=2 bisection=1
        > submit 1 2 3 4 5 6 7 8
          starts r1[1 2 3 4 | ] r2[5 6 7 8 | 1 2 3 4]
        > fail r1
          starts probe r3[1 2 | ] r4[5 6 7 8 | ]
          over r2
          moved 5 PENDING ahead_out
          moved 8 PENDING ahead_out
        > pass r3
          starts probe r5[1 2 3 | ] r6[1 2 | 5 6 7 8]
          moved 1 PENDING bisection_passed
          moved 2 PENDING bisection_passed
          untouched r4
    """,
    "5 two culprits": """
        queue SINGLE batch=4 concurrency=1 bisection=3
        > submit 1 2 3 4
          starts r1[1 2 3 4 | ]
        > fail r1
          starts probe r2[1 | ] probe r3[1 2 | ] probe r4[1 2 3 | ]
        > pass r2 ; fail r3
          starts confirmation r5[1 2 | ]
          merged 1
          over r4
          leaf 2
        > fail r5
          starts r6[3 4 | ]
          on tip r6
          now 2 FAILED required_status_failed
          moved 3 PENDING bisection_required
          moved 4 PENDING bisection_required
        > fail r6 ; pass r7
          starts probe r7[3 | ] confirmation r8[3 4 | ]
          merged 3
          leaf 4
        > fail r8
          now 4 FAILED required_status_failed
    """,
    "6 interaction": """
        queue SINGLE batch=2 concurrency=1 bisection=1
        > own 2 unit=passed ; submit 1 2
          starts r1[1 2 | ]
        > fail r1 ; pass r2
          starts probe r2[1 | ] confirmation r3[1 2 | ]
          merged 1
          leaf 2
        > fail r3
          now 2 FAILED interaction
          names 2 1
    """,
    "7 push while queued": """
        queue SINGLE concurrency=3
        > submit 1 2 3 ; push 2
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2] r4[3 | 1]
          now 2 CANCELLED head_changed
          moved 3 PENDING ahead_cancelled
          over r2
          untouched r1
    """,
    "8 foreign push": """
        queue SINGLE concurrency=2
        > submit 1 2 ; pass r2 ; foreign
          starts r1[1 | ] r2[2 | 1] r3[1 | ] r4[2 | 1]
          moved 1 PENDING target_moved
          moved 2 PENDING target_moved
          on tip r3
          on tip r4
    """,
    "9 urgent": """
        queue SINGLE concurrency=2
        > submit 1 2 3
          starts r1[1 | ] r2[2 | 1]
        > submit 9 p=0
          starts r3[9 | ] r4[1 | 9]
          moved 1 PENDING interrupted_by_urgent
          moved 2 PENDING interrupted_by_urgent
        > pass r3 ; pass r4
          starts r5[2 | 9 1] r6[3 | 1 2]
          merged 9 1
    """,
    "10 parallel": """
        queue PARALLEL concurrency=4
        > submit 1 t=a ; 2 t=b ; 3 t=a,b ; 4 t=c
          starts r1[1 | ] r2[2 | ] r3[3 | 1 2] r4[4 | ]
        > pass r4
          merged 4
          untouched r1
          untouched r2
          untouched r3
        > fail r1
          starts r5[3 | 2]
          now 1 FAILED
          moved 3 PENDING ahead_failed
          untouched r2
        > targets 2 b,c
          starts r6[2 | ]
          moved 2 PENDING ahead_changed
          untouched r5
    """,
    "11 pause, drain": """
        queue SINGLE concurrency=2
        > submit 1 2 ; state PAUSED ; pass r1
          starts r1[1 | ] r2[2 | 1]
          now 1 TESTS_PASSED
        > submit 3 ; state DRAINING
          merged 1
          untouched r2
          now 3 PENDING
        > pass r2
          merged 2
          event QueueDrained
        > state RUNNING
          starts r3[3 | ]
    """,
    "12 mode switch": """
        queue SINGLE concurrency=2
        > submit 1 2 ; mode PARALLEL
          starts r1[1 | ] r2[2 | 1]
          queue SWITCHING_MODES SINGLE
        > state PAUSED
          refused mode_switch_in_progress
          queue SWITCHING_MODES SINGLE
        > pass r1 ; pass r2
          merged 1 2
          event ModeChanged
          queue RUNNING PARALLEL
    """,
    "13 landing mismatch": """
        queue SINGLE concurrency=2 manual land
        > submit 1 2 ; pass r1 ; mismatch r1
          starts r1[1 | ] r2[2 | 1]
          merged 1
          held landing_mismatch
          untouched r2
        > submit 3
          now 3 PENDING
        > release
          starts r3[2 | ] r4[3 | 2]
          moved 2 PENDING target_moved
          on tip r3
    """,
    "14 flaky, quarantined": """
        queue SINGLE concurrency=1 evidence=yes
        > submit 1 ; fail r1 ; evidence r1 FLAKY
          starts r1[1 | ]
          attempt r1 2
          now 1 TESTING
        > fail r1 ; evidence r1 QUARANTINED
          moved 1 TESTS_PASSED passed_excused
          merged 1
    """,
    "15 conflict ahead": """
        queue SINGLE concurrency=2 manual build
        > submit 1 2 3 ; build r1 ; conflict r2 2 with 1
          starts r1[1 | ] r2[2 | 1] r3[3 | 1]
          now 2 PENDING conflict_ahead
        > fail r1
          starts r4[2 | ] r5[3 | 2]
          now 1 FAILED
          moved 2 PENDING conflict_cleared
          moved 3 PENDING ahead_failed
    """,
    "16 reuse": """
        queue SINGLE concurrency=2
        > submit 1 2 ; state PAUSED ; pass r1 ; pass r2
          starts r1[1 | ] r2[2 | 1]
          now 1 TESTS_PASSED
          now 2 TESTS_PASSED
        > foreign ; foreign back
          moved 1 PENDING target_moved
          moved 2 PENDING target_moved
        > state RUNNING
          starts r3[1 | ] r4[2 | 1]
          moved 1 TESTS_PASSED result_reused
          moved 2 TESTS_PASSED result_reused
          merged 1 2
    """,
    "depth: off": """
        queue SINGLE concurrency=3 depth=2
        > submit 1 2 3
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
        > fail r1
          starts r4[2 | ] r5[3 | 2]
          now 1 FAILED
          over r2
          over r3
          on tip r4
          on tip r5
    """,
    "depth: 0": """
        queue SINGLE concurrency=3 optimistic depth=0
        > submit 1 2 3
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
        > fail r1
          starts r4[2 | ] r5[3 | 2]
          now 1 FAILED
          over r2
          over r3
    """,
    "depth: 1, successor fails": """
        queue SINGLE concurrency=3 optimistic depth=1
        > submit 1 2 3 ; fail r1
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
          now 1 PENDING_FAILURE
        > fail r2
          starts r4[2 | ] r5[3 | 2]
          now 1 FAILED required_status_failed
          moved 2 PENDING ahead_failed
          on tip r4
    """,
    "depth: 2": """
        queue SINGLE concurrency=3 optimistic depth=2
        > submit 1 2 3 ; fail r1 ; fail r2
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
          now 1 PENDING_FAILURE
          now 2 PENDING_FAILURE
          untouched r3
        > pass r3
          moved 1 TESTS_PASSED successor_passed
          moved 2 TESTS_PASSED successor_passed
          unit r3 1 2 3
    """,
    "depth: 1, successor first": """
        queue SINGLE concurrency=3 optimistic depth=1
        > submit 1 2 3 ; pass r2
          starts r1[1 | ] r2[2 | 1] r3[3 | 1 2]
          moved 1 TESTS_PASSED successor_passed
          over r1
          unit r2 1 2
          untouched r3
    """,
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_scenario(name: str) -> None:
    first, *lines = WORKED[name].strip().splitlines()
    script = Script(first)
    news = News(script, together([]))
    for line in (*(line.strip() for line in lines), ""):
        if line.startswith("> ") or not line:
            assert not news.unclaimed(), f"{news.input}: {news.unclaimed()} is not in the document"
        if line.startswith("> "):
            news = News(script, Told((), None), line)
            news.play()
        elif line:
            fact, *words = line.split()
            news.claim(fact, words)


class News:
    """What one line of inputs led to, and which of it was claimed."""

    def __init__(self, script: Script, told: Told, line: str = "") -> None:
        self.script = script
        self.told = told
        self.input = line
        self.is_start_claimed = False
        self.is_landing_claimed = False

    def play(self) -> None:
        answers = [self.script.told(part) for part in self.input[2:].split(" ; ")]
        self.told = together(told for told in answers if isinstance(told, Told))

    def claim(self, fact: str, words: list[str]) -> None:
        """Hold a claim of the document against what happened."""
        expected, found = _FACTS[fact](self, words)
        assert found == expected, f"{self.input}: {fact} {' '.join(words)}"

    def unclaimed(self) -> list[object]:
        """Starts and landings that the document does not know of."""
        starts = [] if self.is_start_claimed else self.starts()
        return [*starts, *([] if self.is_landing_claimed else self.merged())]

    def starts(self) -> list[str]:
        started = [one.event for one in self.told.events if isinstance(one.event, RunStarted)]
        return [_written(event) for event in started]

    def moves(self, pr: int) -> list[EntryMoved]:
        moves = [one.event for one in self.told.events if isinstance(one.event, EntryMoved)]
        return [event for event in moves if event.pr == pr]

    def merged(self) -> list[int]:
        events = [one.event for one in self.told.events if isinstance(one.event, EntryMoved)]
        return [event.pr for event in events if event.state is EntryState.MERGED]

    def run_id(self, word: str) -> str:
        return self.script.stage.run_id(number_of(word))


def _written(event: RunStarted) -> str:
    kind = "" if event.kind is RunKind.MAIN else f"{event.kind.value} "
    prs, base = (" ".join(map(str, each)) for each in (event.prs, event.base_prs))
    return f"{kind}r{event.number}[{prs} | {base}]"


Fact = tuple[object, object]
"""What the document says, and what is so."""


def _starts(news: News, words: list[str]) -> Fact:
    news.is_start_claimed = True
    return re.findall(r"(?:[a-z]+ )?r\d+\[[^]]*\]", " ".join(words)), news.starts()


def _merged(news: News, words: list[str]) -> Fact:
    news.is_landing_claimed = True
    return [int(word) for word in words], news.merged()


def _unit(news: News, words: list[str]) -> Fact:
    run, *prs = words
    expected, found = _merged(news, prs)
    landings = [one.event for one in news.told.events if isinstance(one.event, LandingStarted)]
    return (expected, {news.run_id(run)}), (found, {landing.run for landing in landings})


def _moved(news: News, words: list[str]) -> Fact:
    pr, *wanted = words
    moves = [[move.state.value, move.reason.value] for move in news.moves(int(pr))]
    return True, any(move[: len(wanted)] == wanted for move in moves) or moves


def _now(news: News, words: list[str]) -> Fact:
    pr, *wanted = words
    entry = news.script.stage.queue.entries.get(int(pr))
    move = news.moves(int(pr))[-1:]
    last = entry or (move[0] if move else None)
    found = [] if last is None else [last.state.value, last.reason.value]
    return wanted, found[: len(wanted)]


def _names(news: News, words: list[str]) -> Fact:
    pr, other = words
    detail = news.moves(int(pr))[-1].detail
    return True, int(other) in detail.prs or f"#{other}" in detail.text


def _is_of(one: Recorded, run: str) -> bool:
    return isinstance(one.event, RunFinished | RunRetired | RunRetried) and one.event.run == run


def _untouched(news: News, words: list[str]) -> Fact:
    run = news.script.stage.queue.runs.get(news.run_id(words[0]))
    happened = [one.event for one in news.told.events if _is_of(one, news.run_id(words[0]))]
    return (RunStatus.IN_PROGRESS, []), (run.status if run else None, happened)


def _over(news: News, words: list[str]) -> Fact:
    events = [one.event for one in news.told.events]
    retired = {event.run for event in events if isinstance(event, RunRetired)}
    return True, news.run_id(words[0]) in retired


def _attempt(news: News, words: list[str]) -> Fact:
    return int(words[1]), news.script.stage.queue.runs[news.run_id(words[0])].attempt


def _on_tip(news: News, words: list[str]) -> Fact:
    stage = news.script.stage
    return stage.target.tip, stage.queue.runs[news.run_id(words[1])].base_tip


def _leaf(news: News, words: list[str]) -> Fact:
    searches = news.script.stage.queue.bisections.values()
    leaves = [one.entries[one.lo].pr for one in searches if one.hi == one.lo + 1]
    return [int(word) for word in words], leaves


def _queue(news: News, words: list[str]) -> Fact:
    queue = news.script.stage.queue
    return (QueueState(words[0]), Mode(words[1])), (queue.state, queue.config.mode)


def _held(news: News, words: list[str]) -> Fact:
    return words, [hold.reason.value for hold in news.script.stage.queue.holds]


def _event(news: News, words: list[str]) -> Fact:
    return 1, [type(one.event).__name__ for one in news.told.events].count(words[0])


def _refused(news: News, words: list[str]) -> Fact:
    refusal = news.told.refusal
    return words[0], refusal.reason.value if refusal else None


_FACTS: Mapping[str, Callable[[News, list[str]], Fact]] = {
    "starts": _starts,
    "merged": _merged,
    "unit": _unit,
    "moved": _moved,
    "now": _now,
    "names": _names,
    "untouched": _untouched,
    "over": _over,
    "attempt": _attempt,
    "on": _on_tip,
    "leaf": _leaf,
    "queue": _queue,
    "held": _held,
    "event": _event,
    "refused": _refused,
}
