"""A small world through the public endpoint ends as it is judged at once.

See docs/design/detector.md 13.
"""

from tests.bench.flaky import endpoint
from tests.bench.flaky.worlds import Shape

SMALL = Shape("A", tests=8, jobs=1, days=5, pr_runs=4, main_runs=2, flaky_share=0.5)


def test_uploads_shuffled_and_repeated_end_in_the_states_of_all_at_once():
    found = endpoint.sent(SMALL)
    assert found.unhealthy
    assert found.repeats
    assert found.duplicates == found.repeats
    assert found.differing == {}
