"""Times of tests in logarithmic buckets."""

from random import Random
from statistics import quantiles

import pytest

from service.testhealth.store import bitmaps, sketches
from service.testhealth.store.sketches import Counts, UploadTimes


def some_seconds(chance, count):
    return [round(chance.lognormvariate(-2, 2), 3) for _ in range(count)]


@pytest.mark.parametrize("seconds", [0.0005, 0.001, 0.05, 0.9994, 1, 59.9, 3600, 1e7])
def test_a_time_is_read_within_5_percent(seconds):
    read = sketches.milliseconds_of(sketches.bucket_of(seconds)) / 1000
    assert read == pytest.approx(seconds, rel=0.05) or seconds == 0.0005


def test_less_than_half_a_millisecond_is_nothing_and_no_time_is_unknown():
    assert sketches.milliseconds_of(sketches.bucket_of(0.0004)) == 0
    assert sketches.bucket_of(None) == sketches.UNKNOWN
    assert sketches.packed_times(sketches.buckets_of([None, None])) is None


def counted(uploads, nos):
    """Return the counts of uploads, each with a time for every test."""
    counts = Counts()
    bits = bitmaps.bits_of(nos)
    for seconds in uploads:
        packed = sketches.packed_times(sketches.buckets_of(seconds))
        assert packed is not None
        upload = UploadTimes(bits, packed)
        for part in upload.parts():
            upload.count(counts, part)
    return counts


def stored(counts):
    """Return counts as a day stores them."""
    packed = sketches.packed(counts)
    assert packed is not None
    return packed


def test_counts_do_not_depend_on_the_order_of_uploads_and_add_up():
    chance = Random(7)
    nos = sorted(chance.sample(range(1, 9000), 400))
    uploads = [some_seconds(chance, len(nos)) for _ in range(6)]
    whole = counted(uploads, nos)
    chance.shuffle(uploads)
    parts = [stored(counted(some, nos)) for some in (uploads[:2], uploads[2:])]
    assert sketches.added(parts) == whole == counted(uploads, nos)
    assert len(parts[0]) + len(parts[1]) < 30 * len(nos)


def test_medians_and_percentiles_are_those_of_the_times_within_5_percent():
    chance = Random(11)
    seconds = some_seconds(chance, 2001)
    ((no, times),) = sketches.times_of(counted([[each] for each in seconds], [5]))
    cuts = quantiles(seconds, n=20, method="inclusive")
    assert (no, times.runs) == (5, 2001)
    assert times.median_ms == pytest.approx(cuts[9] * 1000, rel=0.06)
    assert times.p95_ms == pytest.approx(cuts[18] * 1000, rel=0.06)
    assert times.total_ms == pytest.approx(sum(seconds) * 1000, rel=0.05)


def test_tests_without_a_time_are_not_counted():
    counts = counted([[0.5, None, 0.25]], [1, 2, 3])
    assert [no for no, _ in sketches.times_of(counts)] == [1, 3]
    assert [no for no, _ in sketches.times_of(sketches.unpacked(stored(counts)))] == [1, 3]
