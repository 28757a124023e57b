"""What a queue does, in sentences made from its settings."""

from dataclasses import replace
from enum import StrEnum

import pytest

from service.mergequeue.engine.config import SETTINGS, BatchingRule, QueueConfig, Toggle
from service.mergequeue.wording import settings
from service.text import markdown
from service.text.phrases import Phrase
from service.vocabulary import ConflictRule, Resolution
from tests.harness.expect import expect

BATCHES = QueueConfig(batch=True)
"""Settings of which all others have an effect."""


def others(name):
    """Other values of a setting than it has in `BATCHES`."""
    value = getattr(BATCHES, name)
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, StrEnum):
        return [each for each in type(value) if each is not value]
    if isinstance(value, int | float):
        return [0.5] if name == "hedge_threshold" else [each for each in (0, 7) if each != value]
    if name == "batching_rules":
        return [(BatchingRule("db/*"),)]
    if name == "conflict_rules":
        return [(ConflictRule(("a",), each),) for each in Resolution]
    if isinstance(value, str) or name in ("commit_title", "commit_body"):
        return ["another"]
    return [("a", "b")] if value != () else [("a",), ("a", "b")]


def told(config):
    return [markdown.plain(each.text) for each in settings.sentences(config)]


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - settings.NOT_TOLD))
def test_every_value_of_every_setting_changes_what_is_said(name):
    said = [told(BATCHES), *(told(replace(BATCHES, **{name: one})) for one in others(name))]
    assert all(each for texts in said for each in texts)
    assert len({tuple(each) for each in said}) == len(said)


def test_sentences_end_and_name_no_setting_as_the_api_does():
    for name in SETTINGS:
        for one in others(name):
            for text in told(replace(BATCHES, **{name: one})):
                assert text[0].isupper()
                assert text.endswith((".", ".)"))
                assert "_" not in text.replace("merge_group", "")


def test_what_a_queue_with_the_default_settings_does():
    first = QueueConfig(concurrency=5, bisection_concurrency=5, direct_merge_mode=Toggle.ALWAYS)
    lines = ["defaults:", *told(QueueConfig()), "", "changed by the first /merge:"]
    lines += [each for each in told(first) if each not in told(QueueConfig())]
    expect("\n".join(lines)).matches("settings.txt")


def test_labels_and_values_are_words():
    assert settings.label("batching_min_size") == "Batch size"
    assert [settings.word(each) for each in ("true", "false", "MERGE_COMMIT")] == [
        "Yes",
        "No",
        "Merge commit",
    ]
    assert isinstance(settings.sentences(QueueConfig())[0].text, Phrase)
