"""Python's collector of circles, put off while very many values are made that lie in none.

A report of 100,000 cases is some 500,000 values. The collector would look through all of them
several times while they are made and find nothing, for longer than all the rest takes, and the
event loop would stand meanwhile.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Put it off for as long as this lasts; where it is off already, nothing happens.

    So it is never off for longer than one upload takes: of those that overlap, the first alone
    puts it off.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
