"""A fixture that lays out a story for a real runner."""

from collections.abc import Callable

import pytest

from tests.plugins.runs import Runner


@pytest.fixture(name="lay_out")
def _lay_out(tmp_path, needs) -> Callable[..., Runner]:
    """`lay_out("jest", "newest", "plain", "broken")`, with the runner's settings by their names."""
    needs("runners")

    def lay_out(name: str, age: str, *stories: str, suspects=(), **configuration) -> Runner:
        runner = Runner(name, age, tmp_path, list(suspects))
        runner.install(stories, configuration)
        return runner

    return lay_out
