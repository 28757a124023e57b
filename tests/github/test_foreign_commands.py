"""Commands of other queues: which lines are some, and what they mean here."""

import pytest

from bot import commands
from service.provider.signals import AskCancel, AskForeign, AskRetry, AskStatus, AskSubmit


@pytest.mark.parametrize(
    ("line", "queue", "meant"),
    [
        ("bors r+", "bors", AskSubmit()),
        ("Bors: merge", "bors", AskSubmit()),
        ("@bors r=alice,bob", "bors", AskSubmit()),
        ("bors r-", "bors", AskCancel()),
        ("bors cancel", "bors", AskCancel()),
        ("bors retry", "bors", AskRetry()),
        ("bors try", "bors", None),
        ("@bors r+ rollup=never", "bors", None),
        ("bors r+ p=10", "bors", None),
        ("bors d+", "bors", None),
        ("bors delegate=alice", "bors", None),
        ("bors try-", "bors", None),
        ("bors single on", "bors", None),
        ("bors p=1 r+", "bors", None),
        ("@bors squash", "bors", None),
        ("@bors try @rust-timer", "bors", None),
        ("@bors rollup=iffy p=3", "bors", None),
        ("@mergifyio queue", "Mergify", AskSubmit()),
        ("@Mergify queue urgent", "Mergify", AskSubmit()),
        ("@mergifyio requeue", "Mergify", AskSubmit()),
        ("@mergifyio dequeue", "Mergify", AskCancel()),
        ("@mergifyio unqueue", "Mergify", AskCancel()),
        ("@mergifyio refresh", "Mergify", AskStatus()),
        ("/trunk merge", "Trunk", AskSubmit()),
        ("/trunk merge --priority=high", "Trunk", None),
        ("/trunk cancel", "Trunk", AskCancel()),
        ("@kodiakhq merge", "Kodiak", AskSubmit()),
        ("@kodiakhq[bot] help", "Kodiak", None),
    ],
)
def test_a_line_of_another_queue_is_known_with_what_it_means_here(line, queue, meant):
    assert commands.parse(line) == AskForeign(queue, line, meant)
    assert commands.parse(f"Looks good.\n\n{line}") == AskForeign(queue, line, meant)


@pytest.mark.parametrize(
    "body",
    [
        "/lgtm",
        "/approve",
        "/retest",
        "bors is gone, so write r+ no more",
        "I wrote bors r+ and nothing happened",
        "bors squash the bug",
        "bors merge the two branches",
        "bors try again later",
        "bors ping me when it is done",
        "bors r+ is not known here",
        "bors tryhard",
        "@kodiakhq is great",
        "@mergifyio backport v1",
        "@mergifyio rebase",
        "@mergifyio update",
        "/trunk help",
        "/trunk mergequeue",
        "> bors r+",
        "`bors r+`",
        "```\nbors r+\n```",
        "<details>\n\nbors r+\n\n</details>",
        "bors r\u200b+",
        f"bors r={'a' * 300}",
    ],
)
def test_what_only_looks_like_one_is_none(body):
    assert commands.parse(body) is None


def test_a_command_of_ours_counts_beside_one_of_another_queue():
    assert commands.parse("bors r+\n\n/merge") == AskSubmit()


def test_the_first_of_several_counts_or_the_first_that_cancels():
    assert commands.parse("bors r+\n\nbors retry") == AskForeign("bors", "bors r+", AskSubmit())
    assert commands.parse("bors r+\n\nbors r-") == AskForeign("bors", "bors r-", AskCancel())
