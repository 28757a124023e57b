"""The order of landing with the fewest rebases: docs/design/conflicts.md 4."""

import random
from itertools import permutations

from service.mergequeue.conflict_pairs import EXACT_MAX, orders


def rebases(order, pairs):
    """How many land after one that they conflict with."""
    place = {number: at for at, number in enumerate(order)}
    late = {max(pair, key=lambda number: place[number]) for pair in pairs}
    return len(late)


def test_one_pull_request_in_the_way_of_many_lands_last():
    (found,) = orders([(4, 7), (4, 9)], [])
    assert (found.first, found.rebased, found.otherwise) == ((7, 9), (4,), 2)
    assert found.text == "Land #7 and #9 first, then rebase #4: 1 rebase instead of 2."


def test_of_two_the_older_one_lands_first():
    (found,) = orders([(4, 7)], [])
    assert found.text == "Land #4 first, then rebase #7: 1 rebase."


def test_of_two_the_one_in_the_queue_lands_first():
    (found,) = orders([(4, 7)], [7])
    assert found.text == "Land #7 first, then rebase #4: 1 rebase."


def test_each_group_has_its_own_order():
    found = orders([(1, 2), (5, 6), (6, 7)], [])
    assert [(one.first, one.rebased) for one in found] == [((1,), (2,)), ((5, 7), (6,))]
    assert orders([], []) == ()


def test_no_order_needs_fewer_rebases():
    chance = random.Random(7)
    for _ in range(200):
        numbers = range(1, chance.randint(3, 7))
        pairs = [(a, b) for a in numbers for b in numbers if a < b and chance.random() < 0.5]
        found = orders(pairs, [])
        met = {number for pair in pairs for number in pair}
        least = min(rebases(each, pairs) for each in permutations(met)) if pairs else 0
        assert sum(len(one.rebased) for one in found) == least
        together = [n for one in found for n in one.first] + [
            n for one in found for n in one.rebased
        ]
        assert rebases(together, pairs) == least
        assert sum(one.otherwise for one in found) == rebases(sorted(met), pairs)


def test_a_large_group_is_ordered_quickly_and_needs_no_more_than_by_number():
    chance = random.Random(3)
    numbers = range(1, 10 * EXACT_MAX)
    pairs = [(a, b) for a in numbers for b in numbers if a < b and chance.random() < 0.05]
    for found in orders(pairs, []):
        assert len(found.rebased) <= found.otherwise
        assert not any(a in found.first and b in found.first for a, b in pairs)
