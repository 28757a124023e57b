"""Make the changes of tests that time alone causes, once a minute."""

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
    """Expire what is too old; finish what a crash left; ask for issues; count; alert."""
    await overrides.expire(runtime)
    now = runtime.clock.now()
    while await runtime.store.run(test_attempts.expire_impacts, now):
        pass
    while await runtime.store.run(costs.expire, now):
        pass
    await noting.finish_all(runtime)
    await judge.catch_up(runtime)
    await runtime.links.of(QueueLinks).note_sending(runtime, None)
    await ticket_issues.sweep(runtime)
    # Last: after midnight every repository has a day, and lists are exact without its counts.
    await count_days.count_due(runtime)
    await flake_costs.alert(runtime)
