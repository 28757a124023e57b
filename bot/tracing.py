"""Traces for a collector, if a setting names one (docs/how-to/operate.md)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from bot.uploader.proxies import Proxies
from service.errors import StartRefused
from service.tracing import OFF, Traces

STOP_WITHIN_S = 2.0
"""The end waits so long until the last spans are sent."""


@asynccontextmanager
async def opened(
    url: str | None, instance: str, proxies: Proxies, now: Callable[[], datetime]
) -> AsyncIterator[Traces]:
    """Send spans to the collector at this address until the end; None: none are noted.

    Raises StartRefused without the packages of the extra `tracing`.
    """
    if url is None:
        yield OFF
        return
    try:
        from bot import otlp  # noqa: PLC0415 - its packages are an extra
    except ModuleNotFoundError as missing:
        raise StartRefused(
            f"HEADGATE_TRACES_URL is set, and the package {missing.name} is not installed. "
            "Install `headgate[tracing]`, or remove the setting"
        ) from missing
    sender = otlp.Sender(url, instance, proxies.of(url))
    try:
        yield Traces(sender, now, instance)
    finally:
        # A collector that does not answer holds up no stop: the thread ends with the process.
        ending = threading.Thread(target=sender.close, daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, STOP_WITHIN_S)
        sender.give_up()
