"""What is counted across numbers is what would be counted one by one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from service.testhealth.detector.index_passes import DailyPasses

TESTS = 5
uploads = st.tuples(st.integers(1, 3), st.integers(0, 2**TESTS - 1))


@given(st.lists(st.tuples(uploads, st.booleans(), st.integers(0, TESTS - 1)), max_size=40))
def test_passes_are_counted_by_day_while_uploads_come_and_go(steps):
    counted = DailyPasses()
    kept: list[tuple[int, int]] = []
    for upload, is_leaving, asked in steps:
        if is_leaving and kept:
            counted.take(*kept.pop(0))
        else:
            kept.append(upload)
            counted.add(*upload)
        wanted = Counter(day for day, tests in kept if tests >> asked & 1)
        assert counted.by_day(asked) == wanted
