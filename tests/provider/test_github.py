"""The conformance suite on the GitHub adapter, before the sandbox."""

import pytest

from tests.provider import (
    contract,
    contract_branches,
    contract_ci,
    contract_faults,
    contract_labels,
    contract_landing,
    contract_lines,
    contract_own_work,
    contract_reverts,
    contract_tickets,
    contract_trees,
)
from tests.provider.stage import on_sandbox


@pytest.fixture
async def stage():
    async with on_sandbox() as made:
        yield made


class TestReads(contract.Reads):
    pass


class TestCi(contract_ci.Ci):
    pass


class TestLabels(contract_labels.Labels):
    pass


class TestDeliveries(contract.Deliveries):
    pass


class TestNotices(contract.Notices):
    pass


class TestBranches(contract_branches.Branches):
    pass


class TestScratchBranches(contract_branches.ScratchBranches):
    pass


class TestLines(contract_lines.Lines):
    line_writes = (
        ("POST", "*/git/refs", 1),
        ("POST", "*/merges", 1),
        ("POST", "*/git/commits", 1),
        ("PATCH", "*/git/refs/*", 1),
        ("POST", "*/merges", 2),
        ("POST", "*/git/commits", 2),
        ("PATCH", "*/git/refs/*", 2),
        ("POST", "*/merges", 3),
        ("POST", "*/rename", 1),
        ("POST", "*/pulls", 1),
    )


class TestScratchLines(contract_lines.ScratchLines):
    pass


class TestOwnWork(contract_own_work.OwnWork):
    pass


class TestLanding(contract_landing.Landing):
    pass


class TestReverts(contract_reverts.Reverts):
    """Reverts over the sandbox."""


class TestFiles(contract_trees.Files):
    pass


class TestTrees(contract_trees.Trees):
    pass


class TestTickets(contract_tickets.Kept):
    @pytest.fixture(autouse=True)
    async def granted(self, stage):
        """Our App may write issues."""
        await stage.permit(issues="write")


class TestTicketsWritten(contract_tickets.Written):
    pass


class TestFaults(contract_faults.Faults):
    pass


class TestBudget(contract_faults.Budget):
    pass
