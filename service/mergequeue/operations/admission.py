"""Read what a submission is judged by: the past of its head, the budgets of its submitter.

See docs/design/budgets.md.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from service.accounts.store import access
from service.database.database import Tx
from service.mergequeue.engine import submitters
from service.mergequeue.engine.inputs import Input, Restart, Submit
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.engine.past import NO_PAST, Limits, Past
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import queues, submissions
from service.provider.errors import ProviderError
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind, QueueRef, Sha

ASK_S = 20.0
"""The longest time for the question whether a failure is explained by now."""

TESTS_MAX = 20
"""Failed tests that a refusal names."""

log = structlog.get_logger()


async def taken_back(runtime: Runtime, queue: QueueRef, head: Sha) -> str | None:
    """Return the failed run of this head whose failures are explained by now, None if none is.

    While the provider does not answer, nothing is explained.
    """
    found = await runtime.store.read(submissions.blamed_run, queue.id, head)
    if found is None:
        return None
    blamed, run = found
    try:
        async with asyncio.timeout(ASK_S):
            failures = runtime.links.of(RunFailures)
            is_explained = await failures.explained_by_now(runtime, queue, run)
    except (ProviderError, TimeoutError) as trouble:
        # GitHub did not answer, so the failure stays unexplained.
        log.warning("failure_not_asked_about", queue=queue.id, why=str(trouble))
        return None
    return blamed.run if is_explained else None


def with_past(
    session: Tx, runtime: Runtime, queue: MergeQueue, inputs: Sequence[Input], now: datetime
) -> tuple[Input, ...]:
    """Return the inputs, with what the store knows of each submission and restart.

    In the transaction that decides, so that two submissions at once do not both find room.
    """
    found: list[Input] = []
    for one in inputs:
        match one:
            case Submit():
                found.append(_with_past(session, runtime, queue, one, now))
            case Restart(pr=pr) if pr in queue.entries:
                entry = queue.entries[pr]
                past = _budget_of(session, queue, entry.submitted_by, entry.facts.author, now)
                found.append(replace(one, past=past))
            case _:
                found.append(one)
    return tuple(found)


def _with_past(
    session: Tx, runtime: Runtime, queue: MergeQueue, one: Submit, now: datetime
) -> Submit:
    below = tuple(_with_past(session, runtime, queue, each, now) for each in one.below)
    known = queue.entries.get(one.facts.pr)
    if known is not None and known.head == one.facts.head:
        return replace(one, below=below)
    past = _budget_of(session, queue, one.actor, one.facts.author, now)
    found = submissions.blamed_run(session, queue.id, one.facts.head)
    if found is not None:
        blamed, run = found
        ref = queues.ref_by_id(session, queue.id)
        failures = runtime.links.of(RunFailures)
        listed = () if ref is None else failures.listed_in(session, ref, run)
        names = tuple(dict.fromkeys(each.name for each in listed))[:TESTS_MAX]
        past = replace(past, blamed=replace(blamed, tests=names))
    return replace(one, below=below, past=past)


def _budget_of(session: Tx, queue: MergeQueue, actor: Actor, author: str, now: datetime) -> Past:
    """Return the limits of its token, and what its submitter uses if anything limits that."""
    limits = Limits()
    if actor.kind is ActorKind.TOKEN:
        limits = Limits(*access.lock_limits(session, actor.id))
    config = queue.config
    if limits == Limits() and not config.ci_minutes_per_submitter:
        return NO_PAST
    submitter = submitters.identity_of(actor, author)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    used = submissions.spent(session, queue.id, submitter, midnight, now)
    return Past(token=limits, spent=used)
