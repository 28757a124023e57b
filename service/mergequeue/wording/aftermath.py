"""Describe a submission's end: the search for the cause, the proof, the time in the queue.

See docs/design/comments.md 8.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.mergequeue.engine.outputs import (
    BisectionClosed,
    BisectionNarrowed,
    BisectionOpened,
    EntryMoved,
    QueueStateChanged,
    Recorded,
    RunFinished,
    RunStarted,
)
from service.mergequeue.engine.reasons import CONVICTED, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus
from service.mergequeue.wording import suspicions
from service.mergequeue.wording.situation import Landed, PullRequestText
from service.text import phrases, times
from service.text.phrases import Page, Phrase, phrase

Span = tuple[datetime, datetime]

_STANDS_STILL = (EntryState.NOT_READY, EntryState.PENDING, EntryState.TESTS_PASSED)
"""States in which nothing of it runs, so that a pause is a wait."""


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """The time a submission was in each state while the queue ran, and the time it was paused."""

    of: dict[EntryState, timedelta]
    paused: timedelta


def how_found(view: PullRequestText) -> Phrase:
    """Return how the cause of a failure was found; empty if one run said it all."""
    if view.entry.state is not EntryState.FAILED:
        return Phrase()
    if view.entry.detail.suspicion is not None:
        return suspicions.sentence(view.entry.detail.suspicion)
    if view.entry.reason not in CONVICTED - {Reason.RUN_TIMED_OUT}:
        return Phrase()
    prs, proven = _searched(view)
    if prs:
        found = phrase("The batch of {} failed, and bisection found this PR.", phrases.pulls(prs))
        passed = phrase("Without it, {} passed.", phrases.pulls(proven)) if proven else Phrase()
        return phrases.joined([found, passed])
    count = _failures_alone(view)
    return Phrase((f"It failed in {count} test runs.",)) if count > 1 else Phrase()


def _searched(view: PullRequestText) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the batch in which the search found this pull request, and who passed without it."""
    batches: dict[str, tuple[int, ...]] = {}
    proven: dict[str, int] = {}
    for recorded in view.history:
        match recorded.event:
            case BisectionOpened(bisection=name, prs=prs):
                batches[name] = prs
            case BisectionNarrowed(bisection=name, lo=lo):
                proven[name] = lo
            case BisectionClosed(bisection=name, culprit=culprit):
                batch = batches.get(name, ())
                if culprit == view.entry.pr and len(batch) > 1:
                    return batch, batch[: proven.get(name, 0)]
            case _:
                pass
    return (), ()


def _failures_alone(view: PullRequestText) -> int:
    alone: set[str] = set()
    failed: set[str] = set()
    for recorded in view.history:
        match recorded.event:
            case RunStarted(run=run, prs=prs) if prs == (view.entry.pr,):
                alone.add(run)
            case RunFinished(run=run, status=RunStatus.FAILED):
                failed.add(run)
            case _:
                pass
    return len(alone & failed)


def proof(view: PullRequestText) -> Phrase:
    """Return the commit that landed with its page, and what was proved of it."""
    landed = view.landed
    if landed is None:
        return Phrase()
    # The page of its files: a link to a commit or a pull request writes a line into it.
    page = f"{view.repository_url}/tree/{landed.sha}" if view.repository_url else ""
    commit = phrase("Commit {}.", Phrase((Page(phrases.commit(landed.sha), page),)))
    trees = phrases.short(landed.tree), phrases.short(landed.planned_tree)
    if landed.tree == landed.tested_tree:
        said = phrase("Proof: its tree {} is the tree that was tested.", trees[0])
    elif landed.planned_tree != landed.tested_tree:
        said = _part_of_a_unit(view, landed)
    else:
        said = phrase(
            "Proof: its changes are those that were tested (tree {}, tested {}); only PRs and "
            "commits that do not meet it landed in between.",
            *trees,
        )
    return phrases.joined([commit, said])


def _part_of_a_unit(view: PullRequestText, landed: Landed) -> Phrase:
    """Return what was tested of a pull request that landed before others of its unit."""
    tested = () if view.run is None else view.run.prs
    others = phrases.pulls(tuple(pr for pr in tested if pr != view.entry.pr))
    last = phrases.pulls(tested[-1:])
    said = phrase(
        "It was tested together with {}: the tree after {} ({}) is the tree that was tested. The "
        "tree after this PR ({}) had no test run of its own.",
        *(others, last, phrases.short(landed.tested_tree), phrases.short(landed.tree)),
    )
    target = view.queue.branch
    match landed.tip_test:
        case RunStatus.SUCCEEDED:
            after = "The rest did not follow at once, so {} was tested at this commit: it passed."
        case RunStatus.FAILED:
            after = "The rest did not follow, and {} did not pass its tests at this commit."
        case RunStatus.IN_PROGRESS:
            after = (
                "The rest did not follow, so {} is tested at this commit now. Nothing else starts "
                "or merges until it passes."
            )
        case _:
            return said
    return phrases.joined([said, phrase(after, target)])


def duration(view: PullRequestText) -> str:
    """Return how long it was in the queue; the time of pauses is named apart."""
    spent = time_spent(view.history, view.entry.submitted_at, view.pauses)
    whole = sum(spent.of.values(), timedelta())
    words = {
        "waiting": spent.of[EntryState.NOT_READY] + spent.of[EntryState.PENDING],
        "testing": spent.of[EntryState.TESTING] + spent.of[EntryState.PENDING_FAILURE],
        "waiting to merge": spent.of[EntryState.TESTS_PASSED],
    }
    minute = timedelta(minutes=1)
    parts = [f"{times.duration(each)} {name}" for name, each in words.items() if each >= minute]
    split = f": {', '.join(parts)}" if len(parts) > 1 else ""
    said = f"In the queue for {times.duration(whole)}{split}."
    if spent.paused < timedelta(seconds=1):
        return said
    return f"{said} The queue was paused for another {times.duration(spent.paused)}."


def time_spent(
    history: tuple[Recorded, ...], submitted_at: datetime, pauses: Sequence[Recorded] = ()
) -> TimeSpent:
    """Return how long a submission was in each state, up to its last step, without pauses.

    `pauses`: the changes of the queue's state since the submission, in order. A pause during tests
    delays nothing, so it does not count as one.
    """
    spent = TimeSpent(dict.fromkeys(EntryState, timedelta()), timedelta())
    stopped = tuple(_paused(pauses, submitted_at))
    paused = timedelta()
    since, state = submitted_at, EntryState.NOT_READY
    for recorded in history:
        if isinstance(recorded.event, EntryMoved):
            still = timedelta()
            if state in _STANDS_STILL:
                still = sum((_common(each, (since, recorded.at)) for each in stopped), still)
            spent.of[state] += recorded.at - since - still
            paused += still
            since, state = recorded.at, recorded.event.state
    return TimeSpent(spent.of, paused)


def _paused(changes: Sequence[Recorded], start: datetime) -> Iterator[Span]:
    """Yield the spans in which the queue was paused; one that has not ended is left out."""
    since: datetime | None = None
    for recorded in changes:
        event = recorded.event
        if not isinstance(event, QueueStateChanged):
            continue
        if event.origin is QueueState.PAUSED and event.state is not QueueState.PAUSED:
            yield since or start, recorded.at
        if event.state is QueueState.PAUSED and event.origin is not QueueState.PAUSED:
            since = recorded.at


def _common(one: Span, other: Span) -> timedelta:
    return max(timedelta(), min(one[1], other[1]) - max(one[0], other[0]))
