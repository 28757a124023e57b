"""Make the changes of tests that time alone causes, once a minute."""

from service import sweeping
from service.runtime import Runtime
from service.testhealth.operations import (
    count_days,
    flake_costs,
    judge,
    noting,
    overrides,
    ticket_issues,
)
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import costs


async def expire(runtime: Runtime) -> None:
    """Expire what is too old; finish what a crash left; ask for issues; count; alert.

    A mistake in one of these stops no other; the first is raised at the end.
    """
    # Counted last: after midnight every repository has a day, and lists are exact without counts.
    works = (
        overrides.expire,
        _expire_evidence,
        noting.finish_all,
        judge.catch_up,
        _note_sending,
        ticket_issues.sweep,
        count_days.count_due,
        flake_costs.alert,
    )
    await sweeping.one_by_one(work(runtime) for work in works)


async def _expire_evidence(runtime: Runtime) -> None:
    now = runtime.clock.now()
    while await runtime.store.run(test_attempts.expire_impacts, now):
        pass
    while await runtime.store.run(costs.expire, now):
        pass


async def _note_sending(runtime: Runtime) -> None:
    await runtime.links.of(QueueLinks).note_sending(runtime, None)
