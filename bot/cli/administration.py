"""Open the deployment's database for one command, beside a running service."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from bot import settings, wiring
from bot.cli import output
from bot.cli.exits import sentence
from service.runtime import Runtime
from service.vocabulary import Actor, ActorKind

T = TypeVar("T")


def administer(
    act: Callable[[Runtime, str], Awaitable[T]], database_url: str | None, data_dir: Path | None
) -> T:
    """Return what `act` returns for the deployment's database and its main host."""
    chosen = settings.read(database_url=database_url, data_dir=data_dir)
    path = Path(chosen.database_address.removeprefix("sqlite:///"))
    is_new = chosen.is_sqlite and not path.exists()

    async def open_and_act() -> T:
        async with wiring.open_administration(chosen) as runtime:
            if is_new:
                output.log(sentence(f"a new database was created at {path}"))
            return await act(runtime, chosen.github_host)

    return asyncio.run(open_and_act())


def operator() -> Actor:
    """Return the person at this machine, as the audit log names them."""
    return Actor(ActorKind.PERSON, login=f"{getpass.getuser()} (command line)")
