"""Settings: ranges, and what is not available yet."""

import pytest

from service.mergequeue.engine import config
from service.mergequeue.engine.config import ConfigValue, QueueConfig


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, None),
        ({"concurrency": 1, "merge_method": "SQUASH"}, None),
        ({"concurrency": 1000, "hedge_threshold": 0.05}, None),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1001}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": "5"}, "concurrency"),
        ({"speed": 5}, "speed"),
    ],
)
def test_the_first_setting_out_of_range_is_named(
    changes: dict[str, ConfigValue], wrong: str | None
) -> None:
    assert config.out_of_range(changes) == wrong


def test_changed_settings_leave_the_others() -> None:
    old = QueueConfig(concurrency=7)
    assert config.changed(old, {"batching_min_size": 9}) == QueueConfig(
        concurrency=7, batching_min_size=9
    )
