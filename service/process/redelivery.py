"""Deliveries that never arrived, asked for again (docs/design/transactions.md 8)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from service.database import inbox
from service.mergequeue.store import cursors
from service.provider.errors import ProviderError
from service.provider.signals import FailedDelivery, Lost
from service.runtime import Runtime
from service.troubles import Part, Trouble, TroubleName

ASKED_MAX = 100
"""In one sweep of one host; what is left waits for the next."""
PAUSE_S = 1.0
LOG_KEPT = timedelta(days=3)
"""The time for which the provider keeps its log of deliveries."""
UNDER_WAY = timedelta(minutes=1)
"""A try begun this long before a sweep may have failed only after it."""
ORDER = (Lost.COMMAND, Lost.FACT)
"""The order of requests. Lost.SWEPT is not asked for at all: the sweeps read it anyway."""

log = structlog.get_logger()


class _Asked(dict[str, set[str]]):
    """The tries of each host that were asked for since a sweep last asked for everything.

    What says nothing to us is not stored when it arrives, so nothing else tells that it has come.
    """


async def ask_again(runtime: Runtime) -> None:
    """Sweep: have every provider send again what failed and never came in."""
    for host in runtime.providers:
        try:
            await _ask_again(runtime, host)
        except ProviderError as trouble:
            # GitHub did not tell which webhooks were lost; it is asked at the next sweep.
            log.warning("redelivery_postponed", host=host, why=trouble.message)


async def _ask_again(runtime: Runtime, host: str) -> None:
    """Ask for the lost deliveries of one host, commands first, the oldest first of each kind.

    Only a sweep that asked for everything moves the look back forward, also over a restart.
    Whatever fails again is in the log as a newer try by then, and whatever arrived is in the
    inbox, or was asked for.
    """
    provider = runtime.providers[host]
    asked_before = runtime.memory.of(_Asked).setdefault(host, set())
    started = runtime.clock.now()
    failed = await provider.failed_deliveries(await _since(runtime, host, started))
    new = [one for one in failed if one.lost in ORDER and one.attempt not in asked_before]
    lost = await _never_arrived(runtime, host, new)
    lost.sort(key=lambda one: ORDER.index(one.lost))
    now = runtime.clock.now()
    if not lost:
        runtime.troubles.end(Part.WEBHOOKS, host)
    else:
        # The next delivery that arrives ends it, such as one that is sent again now.
        runtime.troubles.report(Trouble(TroubleName.WEBHOOKS_FAIL, now, host=host))
    asked = lost[:ASKED_MAX]
    for place, one in enumerate(asked):
        if place:
            await runtime.clock.sleep(PAUSE_S)
        await provider.redeliver(one.attempt)
        asked_before.add(one.attempt)
    if asked:
        log.info("redelivered", host=host, deliveries=len(asked), left=len(lost) - len(asked))
    if len(lost) == len(asked):
        await runtime.store.run(cursors.store_position, _name(host), started)
        asked_before.clear()


async def _never_arrived(
    runtime: Runtime, host: str, failed: Sequence[FailedDelivery]
) -> list[FailedDelivery]:
    ids = [one.id for one in failed]
    known = await runtime.store.read(inbox.stored_ids, host, ids) if ids else frozenset()
    return [one for one in failed if one.id not in known]


async def _since(runtime: Runtime, host: str, now: datetime) -> datetime:
    """The start of the last completed sweep and a minute; three days when there was none."""
    oldest = now - LOG_KEPT
    swept = await runtime.store.read(cursors.read_position, _name(host))
    return oldest if swept is None else max(oldest, swept - UNDER_WAY)


def _name(host: str) -> str:
    return f"redelivery/{host}"
