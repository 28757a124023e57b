"""Judging whether pull requests would take back merged work (docs/design/undone-work.md 6).

At submission, with each build, and again when the tip has moved. The provider reads git; what is
done with the answer is the engine's.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import structlog

from service.landed_work import LandedWork, WorkJudged
from service.mergequeue.engine.config import QueueConfig, UndoneWork
from service.mergequeue.engine.inputs import Input, LandedWorkJudged
from service.mergequeue.engine.model import Entry, MergeQueue
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.state import undone
from service.mergequeue.operations import foreseen, turn
from service.mergequeue.store import landing_evidence, runs
from service.mergequeue.store import notices as stored
from service.mergequeue.store.notices import NoticeKey, PostedNotice, Surface
from service.mergequeue.wording import undone as wording
from service.mergequeue.wording.situation import PullRequestText
from service.provider.errors import Gone, NotPermitted, Refused
from service.provider.values import GuardedWork, PullRequest, Reply
from service.runtime import Runtime
from service.vocabulary import PullRequestState, QueueRef, Sha

JUDGED_AT_ONCE = 20
"""Waiting pull requests that one move of the tip has judged anew; a sweep takes the others."""

NOT_JUDGED_MAX = 3
"""After so many that could not be judged a sweep looks again, as each may take 5 s."""

log = structlog.get_logger()


@dataclass
class Tries:
    """Attempts of this process to judge those that wait, by queue and number."""

    counts: dict[int, Counter[int]] = field(default_factory=dict)


async def guard_of(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, tip: Sha
) -> GuardedWork | None:
    """Return the landings that nothing may take back now; None if the setting is off.

    Those since the queue's own record of the target: where the first test run began within the
    days of the setting. Without one only that a pull request has landed already can be found.
    """
    if config.undone_work is UndoneWork.OFF:
        return None
    since = runtime.clock.now() - timedelta(days=config.undone_work_days)
    first = await runtime.store.read(runs.first_base_since, queue.id, since)
    return GuardedWork(first or tip, config.generated_paths)


async def judgements(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, pulls: Sequence[PullRequest]
) -> Mapping[int, WorkJudged]:
    """Return how pull requests stand to landed work if they land one after the other, by number."""
    tip = foreseen.tip_of(value, pulls)
    if tip is None or any(one.state is not PullRequestState.OPEN for one in pulls):
        return {}
    guard = await guard_of(runtime, queue, value.config, tip)
    if guard is None:
        return {}
    request = foreseen.rehearsal(runtime, queue, value.config, pulls, tip)
    found = await runtime.providers[queue.repo.host].judge(replace(request, guard=guard))
    return await with_numbers(runtime, queue, found)


async def with_numbers(
    runtime: Runtime, queue: QueueRef, found: Mapping[int, WorkJudged]
) -> dict[int, WorkJudged]:
    """Return judgements in which landings of the queue have the numbers of its own record.

    What a commit's message says counts only for landings that the queue does not know.
    """
    named = [one for work in found.values() for one in _landings_of(work)]
    if not named:
        return dict(found)
    shas = [one.commit for one in named]
    known = await runtime.store.read(landing_evidence.prs_of, queue.repository_id, shas)

    def numbered(one: LandedWork) -> LandedWork:
        return replace(one, number=known.get(one.commit, one.number))

    return {
        pr: replace(
            work,
            undone=tuple(numbered(one) for one in work.undone),
            landed_by=None if work.landed_by is None else numbered(work.landed_by),
        )
        for pr, work in found.items()
    }


def _landings_of(work: WorkJudged) -> Sequence[LandedWork]:
    return (*work.undone, *(() if work.landed_by is None else (work.landed_by,)))


async def judge_again(runtime: Runtime, queue: QueueRef) -> None:
    """Judge those that wait because of merged work, if the tip is another one by now."""
    value = await turn.value(runtime, queue.id)
    waiting = [pr for pr, one in value.entries.items() if _is_outdated(value, one)]
    counts = runtime.memory.of(Tries).counts
    if not waiting:
        counts.pop(queue.id, None)
        return
    # Some may never be judged, and others wait behind them.
    tries = counts[queue.id] = Counter({pr: counts.get(queue.id, Counter())[pr] for pr in waiting})
    waiting.sort(key=lambda pr: tries[pr])
    provider = runtime.providers[queue.repo.host]
    pulls = await provider.pull_requests(queue.repo, waiting[:JUDGED_AT_ONCE])
    inputs: list[Input] = []
    failed = 0
    for number, pull in pulls.items():
        tries[number] += 1
        if pull is None:
            continue
        found = await judgements(runtime, queue, value, [pull])
        work = found.get(pull.number)
        if work is not None and not work.trouble:
            inputs.append(LandedWorkJudged(pull.number, work))
        failed += work is None or bool(work.trouble)
        if failed == NOT_JUDGED_MAX:
            break
    if inputs:
        await turn.take(runtime, queue.id, inputs)


def _is_outdated(value: MergeQueue, entry: Entry) -> bool:
    if Reason.UNDOES_LANDED_WORK not in entry.unmet or entry.work is None or value.tip is None:
        return False
    return entry.work.tip != value.tip.sha


async def tell_landed(runtime: Runtime, queue: QueueRef, text: PullRequestText) -> None:
    """Comment once on each landed pull request whose work this one would take back, and waits.

    Only where the queue or the provider says that it is that landing: in the message of a commit
    a number may be that of an issue, or of another repository.
    """
    entry = text.entry
    is_told = text.queue.config.comments_enabled
    if Reason.UNDOES_LANDED_WORK not in entry.unmet or not is_told:
        return
    for work in undone.undeclared(entry):
        is_to_land = work.is_ahead and work.number in text.queue.entries
        if work.number is None or work.number == entry.pr or is_to_land:
            continue
        key = NoticeKey(queue.id, work.number, Surface.UNDONE, f"#{entry.pr}")
        if await runtime.store.read(stored.find, key) is not None:
            continue
        body = wording.landing_comment(text, work)
        reply = Reply(work.number, f"undone-{queue.id}-{entry.pr}", body)
        posted = None
        try:
            if await _is_its_landing(runtime, queue, work.number, work):
                posted = await runtime.providers[queue.repo.host].say(queue.repo, reply)
        except (Gone, Refused, NotPermitted) as trouble:
            # The pull request is gone or locked, or the number is of something else.
            log.info("landing_not_told", queue=queue.id, number=work.number, why=trouble.message)
        await runtime.store.run(stored.record, key, PostedNotice(posted or "dropped", ""))


async def _is_its_landing(runtime: Runtime, queue: QueueRef, number: int, work: LandedWork) -> bool:
    """Return whether a pull request of this number landed as this commit."""
    recorded = await runtime.store.read(landing_evidence.prs_of, queue.repository_id, [work.commit])
    if work.is_ahead or recorded.get(work.commit) == number:
        return True
    provider = runtime.providers[queue.repo.host]
    pull = await provider.pull_request(queue.repo, number, awaits_mergeability=False)
    return pull.merge_commit in work.commits
