"""One of many submitters floods a queue (docs/design/fair-shares.md 5)."""

from service.mergequeue.engine.config import FairShares, Mode
from tests.simulation import flood


def test_turns_share_the_starts_more_evenly_than_arrival_and_people_start_sooner_beside_agents():
    whole = flood.history(2, count=200)
    found = {
        fair_shares: flood.figures(whole, flood.settings(Mode.PARALLEL, 8, fair_shares))
        for fair_shares in FairShares
    }
    off, by_turns, split = found.values()
    assert by_turns.fairness > off.fairness
    assert split.people_start_p95 < off.people_start_p95


def test_the_index_is_one_where_all_have_the_same_share():
    assert flood.jain([0.5, 0.5, 0.5]) == 1.0
    assert flood.jain([1.0, 0.0]) == 0.5
