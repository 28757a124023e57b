"""A service with tests to ask about."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from service.database.database import Store
from tests.contract.api.flaky.tested import Tested, serving

NOW = datetime(2026, 3, 2, 14, tzinfo=UTC)


@pytest.fixture
async def tested(store: Store) -> AsyncIterator[Tested]:
    """A repository with tests, on each kind of database, on a Monday at 14:00."""
    async with serving(store, NOW) as own:
        yield own
