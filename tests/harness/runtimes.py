"""The parts of a process, as most tests and benchmarks want them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.keys import KeyRing
from service.clock import Clock, RandomIds
from service.crash_points import NoCrashes
from service.database.database import Store
from service.database.wakeups import Wakeups
from service.evidence import links
from service.notifications.addresses import Rules
from service.notifications.sender import HttpSender
from service.provider.port import Provider
from service.runtime import Options, Runtime


def a_runtime(
    store: Store, clock: Clock, providers: Mapping[str, Provider] | None = None, **differing: Any
) -> Runtime:
    """The parts around a store, with these providers by host, whose deliveries say nothing."""
    plain = Runtime(
        links=links.build_links(),
        store=store,
        providers=providers or {},
        translators={host: lambda _: () for host in providers or {}},
        clock=clock,
        ids=RandomIds(),
        wakeups=Wakeups(clock),
        crash_points=NoCrashes(),
        keys=KeyRing("a secret key for tests, long enough to be one"),
        sender=HttpSender(Rules()),
        options=Options(version="0.0.7"),
    )
    return replace(plain, **differing)
