"""The collector of circles rests while one upload is taken in, and no longer."""

import gc

import pytest

from service.testhealth.operations import collector


@pytest.fixture(autouse=True)
def collecting():
    """The collector as processes have it."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


def test_of_those_that_overlap_the_first_alone_puts_it_off():
    first, second = collector.put_off(), collector.put_off()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_it_begins_again_behind_what_fails():
    with pytest.raises(ValueError, match="no report"), collector.put_off():
        raise ValueError("no report")
    assert gc.isenabled()


def test_where_it_is_off_it_stays_off():
    gc.disable()
    with collector.put_off():
        assert not gc.isenabled()
    assert not gc.isenabled()
