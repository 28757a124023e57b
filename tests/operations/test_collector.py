"""The collector of circles rests while anybody needs it to, and no longer."""

import gc

import pytest

from service.operations import collector


@pytest.fixture(autouse=True)
def collecting():
    """The collector as processes have it."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_it_begins_again_behind_the_last_who_put_it_off():
    first, second = collector.put_off(), collector.put_off()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_where_it_is_off_it_stays_off():
    gc.disable()
    with collector.put_off():
        assert not gc.isenabled()
    assert not gc.isenabled()
