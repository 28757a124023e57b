"""The two parts of `made`, which each file of tests makes for itself: a table and its client."""

import pytest


@pytest.fixture
def table(made):
    return made[0]


@pytest.fixture
def client(made):
    return made[1]
