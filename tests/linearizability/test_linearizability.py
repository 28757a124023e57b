"""Calls about a queue at the same time, on one and on three instances.

The name of a test that fails plays its seed again:

    HEADGATE_SOAK=1 .venv/bin/python -m pytest -n 0 \
        "tests/linearizability/test_linearizability.py::test_calls_at_once_are_answered...[417]"
"""

import pytest
from sqlalchemy import bindparam, select

from service.mergequeue.operations import turn
from service.mergequeue.store import queues
from service.mergequeue.store.tables_queues import MergeQueueRow
from tests.harness import databases, effort
from tests.linearizability import playing

pytestmark = pytest.mark.jumping

SEEDS = range(3000 if effort.IS_SOAK else 12)
PLANTED_SEEDS = range(60)
"""Histories of which one must show the planted fault; one in five does."""


@pytest.mark.parametrize("seed", SEEDS)
async def test_calls_at_once_are_answered_as_if_one_came_after_another(seed, sqlite_url):
    history = await playing.played(sqlite_url, 1, seed)
    assert history.is_explained(), history.text()


@pytest.mark.parametrize("seed", SEEDS[::2])
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.soak), 3])
async def test_instances_answer_calls_at_once_as_if_one_came_after_another(
    seed, count, postgres_url
):
    history = await playing.played(postgres_url, count, seed)
    assert history.is_explained(), history.text()


def deleted_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A turn is taken on a deleted queue as on any other."""
    table = MergeQueueRow.__table__
    head = select(table.c.version, table.c.epoch).where(table.c.id == bindparam("of_queue"))
    patch.setattr(queues, "SELECT_HEAD", head)
    patch.setattr(queues, "LOCK_HEAD", head.with_for_update(key_share=True))
    patch.setattr(turn, "value", turn.last_value)


async def test_the_planted_fault_that_deleted_is_not_looked_at_is_found(tmp_path, monkeypatch):
    deleted_is_not_looked_at(monkeypatch)
    for seed in PLANTED_SEEDS:
        url = databases.sqlite_at(tmp_path / f"{seed}.db")
        if not (await playing.played(url, 1, seed)).is_explained():
            return
    pytest.fail(f"not found in {len(PLANTED_SEEDS)} histories")
