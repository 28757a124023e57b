"""Count how long pull requests in the queue waited for failures that turned out flaky."""

from datetime import timedelta

from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.store import queue_waits
from service.testhealth.store.days import OpenDay
from service.testhealth.store.queue_waits import Wait


def count(session: Tx, runtime: Runtime, day: OpenDay) -> bool:
    """Count the waits that ended on a day from the beginning; False: the day has changed."""
    flaked = runtime.links.of(QueueLinks).flaked_runs
    span = day.span
    waits = [
        Wait(each.sha, sum(each.waits, timedelta()))
        for each in flaked(session, day.place.repository_id, span.since, span.until)
    ]
    return queue_waits.write(session, day, waits)
