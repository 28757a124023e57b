"""Time passes for tests: overrides end, pull requests hit long ago count no more.

Queues hear of repositories that send results no more. What a crash left uncounted is counted,
and what passed is added to the days of tests. Tests that stay unhealthy get an issue.
"""

from service.runtime import Runtime
from service.testhealth.operations import (
    judging,
    overrides,
    tallying,
    ticket_issues,
    upload_counting,
)
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.store import uploads_rows


async def expire(runtime: Runtime) -> None:
    """Let the present time count; once a minute is often enough (FLAKY.md 7.3, 8, 10)."""
    await overrides.expire(runtime)
    now = runtime.clock.now()
    while await runtime.store.run(uploads_rows.expire_impacts, now):
        pass
    await upload_counting.finish_all(runtime)
    await judging.catch_up(runtime)
    await runtime.links.of(QueueLinks).note_sending(runtime, None)
    await ticket_issues.sweep(runtime)
    # Last: after midnight all repositories have a day, and nothing shows how far this is.
    await tallying.add_up(runtime)
