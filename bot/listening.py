"""Where the process listens, and how it is told to stop."""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import structlog
from aiohttp import web

from bot.settings import PREFIX, Settings
from service.errors import StartRefused

log = structlog.get_logger()


async def listen(runner: web.AppRunner, settings: Settings) -> str:
    """Begin to answer; where. Raises StartRefused for a port or host that is not to be had."""
    await runner.setup()
    site = web.TCPSite(runner, settings.host, settings.port, reuse_address=True)
    try:
        await site.start()
    except socket.gaierror as unknown:
        raise StartRefused(
            f"{PREFIX}HOST: {settings.host} is no address of this machine. Use 127.0.0.1, or "
            "0.0.0.0 behind a proxy"
        ) from unknown
    except OSError as failed:
        raise StartRefused(refused_address(failed, settings)) from failed
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def refused_address(failed: OSError, settings: Settings) -> str:
    """Why the system does not let us listen there, and what to do."""
    if failed.errno == errno.EADDRINUSE:
        return (
            f"{PREFIX}PORT: {settings.port} on {settings.host} is in use. Stop what listens "
            "there, or give another --port"
        )
    if failed.errno == errno.EACCES:
        return f"{PREFIX}PORT: {settings.port} needs rights we lack. Give one above 1023"
    return f"{PREFIX}HOST: cannot listen on {settings.host} ({failed.strerror}). Give another"


@asynccontextmanager
async def until_told_to_stop() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM or SIGINT sets, once; the next signal acts as if we were not here."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def forget() -> None:
        for each in signals:
            loop.remove_signal_handler(each)

    def stop_now(number: signal.Signals) -> None:
        log.info("stopping", signal=number.name)
        forget()
        told.set()

    for each in signals:
        loop.add_signal_handler(each, partial(stop_now, each))
    try:
        yield told
    finally:
        forget()
