"""The part of the conformance suite that the provider made of values keeps to."""

from dataclasses import replace

import pytest

from tests.harness.values import ValuesProvider
from tests.provider import contract_tickets


class Stage:
    """The provider, and people who act on its issues."""

    def __init__(self) -> None:
        self.provider = ValuesProvider()
        self.repo = self.provider.ref

    async def close_issue(self, number: int) -> None:
        """Somebody closes an issue."""
        issue = self.provider.tickets[number]
        self.provider.tickets[number] = replace(issue, closed_at=self.provider.now)

    async def delete_issue(self, number: int) -> None:
        """Somebody deletes an issue."""
        del self.provider.tickets[number]


@pytest.fixture
def stage() -> Stage:
    """Nothing has happened yet."""
    return Stage()


class TestTickets(contract_tickets.Kept):
    pass
