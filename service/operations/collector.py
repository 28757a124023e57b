"""Python's collector of circles, put off while very many values are made that lie in none.

A report of 100,000 cases is some 500,000 values. The collector would look through all of them
several times while they are made and find nothing, for longer than all the rest takes, and the
event loop would stand meanwhile.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_waiting = [0]
"""How many are at it now: the collector begins again behind the last of them."""


@contextmanager
def put_off() -> Iterator[None]:
    """Put it off until everybody who asked for that is through; for a few seconds at most.

    Where it is off already it stays so.
    """
    with _lock:
        was_on = gc.isenabled() or _waiting[0] > 0
        _waiting[0] += was_on
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _waiting[0] -= was_on
            if was_on and not _waiting[0]:
                gc.enable()
