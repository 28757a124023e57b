"""What the stand-in keeps is bounded by bytes and numbers, however fast its clock runs."""

import pytest
from cachetools import Cache

from bot.sandbox import deliver, git, world
from bot.sandbox.git import LINES_MAX
from bot.sandbox.graph import endpoint
from tests.sandbox.client import REPO


async def commented(sandbox, times):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    for number in range(times):
        await sandbox.act("comment", "bob", REPO, number=pull["number"], body=f"words {number}")
    await sandbox.settle()


@pytest.mark.fault(
    "deliveries without end", holds="the oldest leave the log of the stand-in", within="32 MiB"
)
async def test_the_log_of_deliveries_is_bounded_by_bytes(sandbox, receiver, monkeypatch):
    monkeypatch.setattr(deliver, "LOG_BYTES_MAX", 8_000)
    await commented(sandbox, 20)
    kept = sandbox.world.attempts
    assert 0 < len(kept) < 20
    assert sum(len(one.packed) for one in kept) == sandbox.world.attempts_bytes <= 8_000
    assert kept[-1].guid == receiver.received[-1][0]["X-GitHub-Delivery"]


async def test_the_log_of_deliveries_is_bounded_by_number(sandbox, receiver, monkeypatch):
    monkeypatch.setattr(deliver, "LOG_MAX", 5)
    await commented(sandbox, 20)
    assert len(sandbox.world.attempts) == 5


async def test_a_kept_delivery_is_sent_again_as_it_was(sandbox, jwt_client, receiver):
    await commented(sandbox, 1)
    last = sandbox.world.attempts[-1]
    await jwt_client.call("POST", f"/app/hook/deliveries/{last.id}/attempts")
    await sandbox.settle()
    (before, body), (after, again) = receiver.received[-2:]
    assert body == again == last.body
    assert before["X-Hub-Signature-256"] == after["X-Hub-Signature-256"]


async def test_an_old_call_is_kept_without_its_body(sandbox, app, monkeypatch):
    monkeypatch.setattr(world, "CALL_BODIES_KEPT", 300)
    path = f"/repos/{REPO}/issues"
    for number in range(5):
        await app.call("POST", path, {"title": f"{number} {'x' * 100}"})
    bodies = [call["body"] for call in sandbox.world.calls if call["path"].endswith("/issues")]
    assert [body is not None for body in bodies] == [False, False, False, True, True]
    assert sandbox.world.bodies_bytes <= 300


async def test_parsed_documents_are_bounded_by_their_length(app):
    texts = [f"query {{ repository(owner: \"o\", name: \"{'x' * 50_000}{number}\") {{ id }} }}"
             for number in range(15)]  # fmt: skip
    for text in texts:
        await app.graphql(text)
    kept = endpoint._read.cache
    assert isinstance(kept, Cache)
    assert kept.currsize <= endpoint.DOCUMENTS_MAX
    assert len(kept) < 15


def test_parsed_trees_are_bounded_by_their_lines(tmp_path):
    objects = git.create(tmp_path, "main").objects
    blob = objects.write("blob", b"x")
    trees = [
        objects.write_tree(
            git.TreeItem("100644", "blob", blob, f"{number}-{line}.txt") for line in range(40_000)
        )
        for number in range(4)
    ]
    assert [len(objects.tree(tree) or ()) for tree in trees] == [40_000] * 4
    assert objects._trees.currsize <= LINES_MAX
