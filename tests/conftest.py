"""What every test has: prerequisites by name, golden text, one setting for random tests."""

import gc
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from tests.harness import expect, machine, needs

PLUGINS = ("databases", "effort", "figures", "logs", "statements", "story", "workers")
pytest_plugins = [f"tests.harness.{one}" for one in PLUGINS]

GARBAGE = (10_000, 10, 10)
"""Python looks for garbage after 700 new objects, which costs 3 % of the time of a story."""

# Before the plugins above are imported: they bring the whole product with them.
machine.keep_what_is_compiled(os.environ)
machine.work_in_memory(os.environ)

# Imports and collected tests stay for the whole run; looking at them again costs 5 % of its time.
gc.disable()

# A busy machine must not decide a test: no deadline, and the same examples every time.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Register the ledger of golden files."""
    config.pluginmanager.register(expect.Ledger(config), "golden")


def pytest_collection_finish() -> None:
    """Collect garbage from here on, seldom, and without what imports and collection have left."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()


def pytest_unconfigure() -> None:
    """Collect garbage once at the end: pytest does so five times, and what is left is none."""
    gc.collect()
    gc.freeze()


@pytest.fixture(name="needs", scope="session")
def needs_fixture() -> Callable[[str], None]:
    """`needs("git")`: skip the test when the thing is lacking, see tests/harness/needs.py."""
    return needs.needs
