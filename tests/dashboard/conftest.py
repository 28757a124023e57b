"""A world whose pages people sign in to with GitHub."""

import pytest

from tests.harness.machine import free_port
from tests.harness.world import WorldOptions

ALICE = "9001"
"""The sandbox's id of alice, the first account that it makes."""


@pytest.fixture
def world_options():
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    given = {"port": port, "public_url": address, "dashboard_auth": "github", "admins": ALICE}
    receivers = {"webhook_ports": "1024-65535", "webhook_allow_networks": "127.0.0.0/8"}
    return WorldOptions(settings={**given, **receivers})


@pytest.fixture
async def pages(world):
    """That world, with a queue for `main`."""
    await world.settle()
    await world.make_queue()
    return world
