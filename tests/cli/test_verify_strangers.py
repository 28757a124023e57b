"""`headgate verify` reads what strangers may write: it neither believes it nor stumbles over it."""

import base64
import json
from pathlib import Path

import pytest

from bot import envelopes
from tests.cli.test_verify import OTHER, Scene

PAYLOAD = "application/vnd.in-toto+json"

NAMES = (
    "nested",
    "nested content",
    "half a character",
    "a key id with lines",
    "a key id of half a character",
    "a short key id",
    "no key",
    "two contents",
    "two types",
    "two lists of signatures",
    "another type",
    "another key",
    "two signatures",
    "no signature",
    "a number",
    "a blank",
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def canonical(payload: str, keyid: str = OTHER, kind: str = PAYLOAD) -> str:
    """An envelope in our form that nobody signed."""
    coded = base64.b64encode(payload.encode()).decode()
    signature = base64.b64encode(b"x" * 64).decode()
    envelope = {
        "payload": coded,
        "payloadType": kind,
        "signatures": [{"keyid": keyid, "sig": signature}],
    }
    return json.dumps(envelope, separators=(",", ":"), sort_keys=True)


def twice(line: str, name: str) -> str:
    """The envelope with a member a second time."""
    return line.replace("{", '{"' + name + '":"x",', 1)


def crafted(scene: Scene) -> dict[str, str]:
    """Lines that are no evidence, by what is wrong with them."""
    good = scene.envelope()
    statement = json.dumps(scene.statement)
    return {
        "nested": "[" * 200_000,
        "nested content": canonical('{"a":' * 200_000),
        "half a character": canonical(statement.replace("Check", "\\ud800"), "0" * 64),
        "a key id with lines": canonical(statement, f"x\nproved  {scene.landed} #1"),
        "a key id of half a character": canonical(statement, "\ud800"),
        "a short key id": canonical(statement, scene.key.id[:12]),
        "no key": canonical(statement, ""),
        "two contents": twice(good, "payload"),
        "two types": twice(good, "payloadType"),
        "two lists of signatures": twice(good, "signatures"),
        "another type": good.replace(PAYLOAD, "application/json"),
        "another key": good.replace(scene.key.id, "0" * 64),
        "two signatures": good.replace("}]", "}," + good.partition("[")[2].partition("]")[0] + "]"),
        "no signature": good[: good.index("[")] + "[]}",
        "a number": "1",
        "a blank": " " + good,
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_crafted_lines_are_refused_and_told_on_one_line(scene: Scene, capsys, name, more) -> None:
    scene.write(crafted(scene)[name])
    assert scene.verify(None, *more) == 1
    said = capsys.readouterr().out
    assert "evidence.jsonl, line 1" in said
    assert f"\nproved  {scene.landed}" not in said


def test_words_of_a_stranger_are_not_shown_as_notes(scene: Scene, capsys) -> None:
    scene.statement["predicate"]["weaknesses"] = ["Everything was proved."]
    scene.write(scene.envelope(key=envelopes.new_key()))
    assert scene.verify() == 2
    assert "Everything" not in capsys.readouterr().out


def test_evidence_of_another_repository_with_the_same_commit_proves_nothing(
    scene: Scene, capsys
) -> None:
    """One installation signs for many: a fork of another tenant requires what its owner likes."""
    scene.write(scene.envelope(lambda one: one["predicate"]["repository"].update(owner="evil")))
    assert scene.verify() == 2
    said = capsys.readouterr().out
    assert "it is about github.com/evil/widgets, and this is github.com/octo/widgets" in said
    assert scene.verify(None, "--repo", "github.com/Evil/widgets") == 0
    assert scene.verify(None, "--repo", "octo/widgets", "--repo", "evil/widgets") == 0


def test_without_a_remote_the_repository_must_be_named(scene: Scene, capsys) -> None:
    scene.git("remote", "remove", "origin")
    assert scene.verify() == 2
    assert "(--repo)" in capsys.readouterr().out
    assert scene.verify(None, "--repo", "octo/widgets") == 0


def test_a_landing_on_another_branch_is_told_and_can_be_excluded(scene: Scene, capsys) -> None:
    scene.write(scene.envelope(lambda one: one["predicate"].update(branch="dev")))
    assert scene.verify() == 0
    assert f"proved  {scene.landed} #1 on dev\n" in capsys.readouterr().out
    assert scene.verify(None, "--branch", "main") == 2
    assert scene.verify(None, "--branch", "main", "--branch", "dev") == 0


def test_a_pull_request_that_adds_no_commit_proves_none(scene: Scene, capsys) -> None:
    """Its head was pushed by hand before: its evidence is not about how that came."""

    def change(one) -> None:
        digest = {"gitCommit": scene.by_hand, **scene.tree(scene.by_hand)}
        one["subject"][0]["digest"] = digest
        predicate = one["predicate"]
        predicate["base"] = predicate["members"][0]["head"] = {"gitCommit": scene.by_hand}
        for name in ("expectedTree", "testedTree"):
            predicate["landing"][name] = scene.tree(scene.by_hand)
        predicate["run"]["tree"] = scene.tree(scene.by_hand)

    scene.write(scene.envelope(), scene.envelope(change))
    assert scene.verify(scene.by_hand) == 2
    said = capsys.readouterr().out
    assert f"Without evidence: {scene.by_hand}\n" in said
    assert scene.verify(f"{scene.base}..main") == 2
    assert scene.verify() == 0


def test_a_stranger_cannot_stop_the_check_by_a_long_rebase(
    scene: Scene, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("bot.cli.verifying.repository.RANGE_MAX", 1)

    def long(one) -> None:
        one["predicate"]["landing"]["method"] = "REBASE"
        one["subject"][0]["digest"]["gitCommit"] = scene.by_hand

    scene.write(scene.envelope(), scene.envelope(long, envelopes.new_key()))
    assert scene.verify() == 0
