"""Let pull requests enter by a rule of their queue (docs/design/rules.md 4).

One enters if a rule with `enter` applies to it, nothing keeps it from being ready, and this head
has never been in the queue. It is found by an event about it, and by a sweep.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from service import sweeping
from service.accounts.store import audit
from service.database.database import Tx
from service.memory import QUEUES_MAX
from service.mergequeue.engine import engine
from service.mergequeue.engine.inputs import Submit
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.reported import Facts
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import facts, naming, pull_requests, turn
from service.mergequeue.operations.pull_requests import Requester, SubmitOptions
from service.mergequeue.store import queues, submissions
from service.provider.errors import ProviderError
from service.provider.values import ListedPullRequest, PullRequest
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, Channel, QueueRef, Sha

LOOKED_AT_MAX = 500
"""Pull requests that one sweep of a queue reads, the last changed ones."""

READ_AT_ONCE = 20
"""Those that a sweep reads before it lets them in: what was read must not grow old meanwhile."""

LOOK_AGAIN = timedelta(minutes=10)
"""The time until one without any change is read again: its checks and rules may differ."""

LOOK_AGAIN_WANTED = timedelta(seconds=50)
"""The same for one that a rule lets in as soon as it is ready: each sweep reads it."""

log = structlog.get_logger()


class _Overtaken(Exception):
    """This head has been in the queue, or the rules are others; raised inside the turn."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The last look at one that did not enter; `is_wanted`: a rule lets it in once it is ready."""

    shown: ListedPullRequest
    at: datetime
    is_wanted: bool = False

    def is_due(self, shown: ListedPullRequest, now: datetime) -> bool:
        """Return whether it has changed since, or was read long ago."""
        pause = LOOK_AGAIN_WANTED if self.is_wanted else LOOK_AGAIN
        return self.shown != shown or self.at + pause <= now


class EntryLooks:
    """The last looks at pull requests that did not enter, by queue; for the same rules."""

    def __init__(self) -> None:
        self._looks: dict[int, dict[int, _Look]] = {}
        self._rules: dict[int, tuple[EntryRule, ...]] = {}

    def of(self, queue_id: int, rules: tuple[EntryRule, ...]) -> dict[int, _Look]:
        """Return the looks at pull requests of a queue, by number; they are changed in place."""
        if self._rules.get(queue_id) != rules:
            if len(self._rules) >= QUEUES_MAX:
                self._looks.clear()
                self._rules.clear()
            self._rules[queue_id], self._looks[queue_id] = rules, {}
        return self._looks[queue_id]


def lets_in(value: MergeQueue) -> bool:
    """Return whether a rule of the queue lets pull requests in."""
    return any(rule.enter for rule in value.config.rules)


async def enter_everywhere(runtime: Runtime) -> None:
    """Sweep: let pull requests enter every queue that has a rule for it."""
    known = await runtime.store.read(queues.all_queues)
    await sweeping.one_by_one(
        _swept(runtime, queue) for queue in known if queue.repo.host in runtime.providers
    )


async def enter_one(runtime: Runtime, queue: QueueRef, number: int, head: Sha) -> None:
    """Let one pull request enter, about which there is news. Raises the provider's errors."""
    value = await turn.value(runtime, queue.id)
    if lets_in(value) and number not in value.entries:
        await _look_at(runtime, queue, [ListedPullRequest(number, head)])


async def head_checked(runtime: Runtime, queue: QueueRef, head: Sha) -> None:
    """After a check of a head has ended: let it enter if it waited for its checks."""
    value = await turn.last_value(runtime, queue.id)
    if lets_in(value):
        looks = runtime.memory.of(EntryLooks).of(queue.id, value.config.rules)
        for look in [one for one in looks.values() if one.is_wanted and one.shown.head == head]:
            await enter_one(runtime, queue, look.shown.number, head)


async def _swept(runtime: Runtime, queue: QueueRef) -> None:
    value, now = await turn.value(runtime, queue.id), runtime.clock.now()
    if not lets_in(value):
        return
    looks = runtime.memory.of(EntryLooks).of(queue.id, value.config.rules)
    provider = runtime.providers[queue.repo.host]
    try:
        listed = await provider.open_pull_requests(queue.repo, queue.branch)
        for gone in looks.keys() - {one.number for one in listed}:
            del looks[gone]
        outside = [one for one in listed if one.number not in value.entries]
        known = ((one, looks.get(one.number)) for one in outside)
        due = [one for one, look in known if look is None or look.is_due(one, now)]
        due.sort(key=_changed_at, reverse=True)
        for start in range(0, len(due[:LOOKED_AT_MAX]), READ_AT_ONCE):
            await _look_at(runtime, queue, due[start : start + READ_AT_ONCE])
    except ProviderError as trouble:
        # GitHub did not answer; the next sweep asks again.
        log.warning("entering_postponed", queue=queue.id, why=trouble.message)


def _changed_at(one: ListedPullRequest) -> tuple[float, int]:
    return (0.0 if one.shown_at is None else one.shown_at.at.timestamp()), one.number


async def _look_at(runtime: Runtime, queue: QueueRef, listed: Sequence[ListedPullRequest]) -> None:
    """Let those of these pull requests enter that may, and remember the others."""
    heads = [(one.number, one.head) for one in listed]
    old: Collection[tuple[int, Sha]] = ()
    if heads:
        old = await runtime.store.read(submissions.submitted, queue.id, heads)
    numbers = [number for number, head in heads if (number, head) not in old]
    pulls: list[PullRequest] = []
    if numbers:
        read = await runtime.providers[queue.repo.host].pull_requests(queue.repo, numbers)
        pulls = [pull for pull in read.values() if pull is not None and _is_meant(pull)]
    config, now = (await turn.value(runtime, queue.id)).config, runtime.clock.now()
    known = await facts.facts_of_many(runtime, queue, config, pulls)
    looks = runtime.memory.of(EntryLooks).of(queue.id, config.rules)
    for one in listed:
        found = known.get(one.number)
        looks[one.number] = _Look(one, now, found is not None and bool(found.ruled.enter_rule))
    for pull in pulls:
        if known[pull.number].ruled.enter_rule:
            await enter_judged(runtime, queue, pull, known[pull.number], config.rules)


def _is_meant(pull: PullRequest) -> bool:
    """Return whether it is no draft of ours for the tests of others."""
    return pull.is_fork or not naming.is_of_test(pull.head_branch)


async def enter_judged(
    runtime: Runtime,
    queue: QueueRef,
    pull: PullRequest,
    known: Facts,
    rules: tuple[EntryRule, ...],
) -> None:
    """Submit it for its rule, unless the queue refuses it as it is now.

    By `rules` it was judged: others may say something else of it under the same name.
    """
    rule = known.ruled.enter_rule
    actor = Actor(ActorKind.SYSTEM, rule, channel=Channel.RULE)
    value, now = await turn.value(runtime, queue.id), runtime.clock.now()
    if engine.step(value, Submit(known, actor, rule=rule), now).refusal is not None:
        return
    row = pull_requests.audit_row(runtime, queue, actor, "pull_request.submit", pull.number)

    def check(session: Tx) -> None:
        # Two instances, or a person, may have submitted it since it was read.
        if submissions.has_ended(session, queue.id, pull.number, pull.head_sha):
            raise _Overtaken
        if turn.newest(session, runtime, queue.id)[1].config.rules != rules:
            raise _Overtaken
        audit.append(session, row)

    by, options = Requester(actor, check), SubmitOptions(rule=rule)
    try:
        step = await pull_requests.submit_fetched(runtime, queue, [pull], options, by)
    except _Overtaken:
        return
    if step.refusal is not None:
        # Its author's budget may be used up; the next sweep asks again.
        return
    log.info("entered_by_rule", queue=queue.id, pr=pull.number, rule=rule)
