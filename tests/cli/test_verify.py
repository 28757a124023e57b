"""`headgate verify` refuses what was changed, and names what it cannot tell."""

import copy
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot import envelopes
from bot.cli import app

Change = Callable[[dict[str, Any]], object]

OTHER = "0123456789abcdef0123456789abcdef01234567"


class Scene:
    """A repository with one squashed pull request, a commit by hand, and signed evidence."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", "git@github.com:octo/widgets.git")
        self.base = self.commit("a.txt", "a\n")
        self.git("checkout", "-q", "-b", "topic")
        self.head = self.commit("b.txt", "b\n")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--squash", "topic")
        self.landed = self.commit("b.txt", "b\n", "Land it")
        self.by_hand = self.commit("c.txt", "c\n")
        self.key = envelopes.new_key()
        self.statement = self.stated()
        self.write(self.envelope())
        self.write_keys(self.key)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, name: str, text: str, message: str = "Change it") -> str:
        (self.folder / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def tree(self, commit: str) -> dict[str, str]:
        return {"gitTree": self.git("rev-parse", f"{commit}^{{tree}}")}

    def stated(self) -> dict[str, Any]:
        commit, tree = {"gitCommit": self.landed}, self.tree(self.landed)
        return {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "main", "digest": {**commit, **tree}}],
            "predicateType": "urn:headgate:landing:v1",
            "predicate": {
                "repository": {"host": "github.com", "owner": "octo", "name": "widgets"},
                "branch": "main",
                "base": {"gitCommit": self.base},
                "pullRequest": 1,
                "members": [{"number": 1, "head": {"gitCommit": self.head}, "isSubject": True}],
                "run": {"id": "r", "commit": {"gitCommit": OTHER}, "tree": tree},
                "reusedRun": None,
                "required": {"names": [{"name": "unit"}, {"name": "lint"}]},
                "checks": [
                    {"name": "unit", "outcome": "passed", "commit": {"gitCommit": OTHER}},
                    {"name": "lint", "outcome": "excused", "commit": {"gitCommit": OTHER}},
                ],
                "landing": {
                    "method": "SQUASH",
                    "proof": "exact_tree",
                    "parentTree": self.tree(self.base),
                    "expectedTree": tree,
                    "testedTree": tree,
                    "isTestedTree": True,
                },
                "weaknesses": ['Check "lint" failed and was excused, by a proof of kind job.'],
                "recorded": {"at": "2026-03-02T14:02:19.000Z", "clock": "headgate"},
            },
        }

    def envelope(self, change: Change | None = None, key: envelopes.Made | None = None) -> str:
        """The evidence, signed after a change of the statement."""
        changed = copy.deepcopy(self.statement)
        if change is not None:
            change(changed)
        return envelopes.signed((key or self.key).private, json.dumps(changed).encode())

    def write(self, *lines: str) -> None:
        (self.folder / "evidence.jsonl").write_text("\n".join(lines))

    def write_keys(self, *keys: envelopes.Made, **validity: str) -> None:
        shown = [
            {
                "keyid": key.id,
                "keytype": "ed25519",
                "scheme": "ed25519",
                "keyval": {"public": key.public},
                **validity,
            }
            for key in keys
        ]
        (self.folder / "keys.json").write_text(json.dumps({"keys": shown}))

    def verify(
        self, what: str | None = None, *more: str, keys: bool = True, evidence: bool = True
    ) -> int:
        words = ["verify", what or self.landed, "--checkout", str(self.folder)]
        words += ["--key", str(self.folder / "keys.json")] if keys else []
        words += ["--evidence", str(self.folder / "evidence.jsonl")] if evidence else []
        return app.run([*words, *more])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_landing_is_proved_and_its_weak_places_are_told(scene: Scene, capsys) -> None:
    assert scene.verify() == 0
    said = capsys.readouterr().out
    assert said.startswith(f"proved  {scene.landed} #1 on main\n")
    assert 'note: Check "lint" failed and was excused, by a proof of kind job.' in said
    assert "Not checked: what CI reported" in said


def test_each_byte_of_the_evidence_counts(scene: Scene, capsys) -> None:
    line = scene.envelope()
    places = sorted({*range(0, len(line), 97), *range(12), *range(len(line) - 130, len(line))})
    for place in places:
        old = line[place]
        scene.write(line[:place] + ("A" if old != "A" else "B") + line[place + 1 :])
        assert scene.verify() == 1, (place, line[place - 5 : place + 5])
    capsys.readouterr()


def _predicate(path: str, value: object) -> Change:
    """A change of one field below the predicate."""

    def change(statement: dict[str, Any]) -> None:
        holder: Any = statement["predicate"]
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for part in parents:
            holder = holder[part]
        holder[last] = value

    return change


def _without(path: str) -> Change:
    def change(statement: dict[str, Any]) -> None:
        holder: Any = statement["predicate"]
        *parents, last = path.split(".")
        for part in parents:
            holder = holder[part]
        del holder[last]

    return change


FALSE_STATEMENTS: dict[str, Change] = {
    "another tree": lambda one: one["subject"][0]["digest"].update(gitTree=OTHER),
    "another base": _predicate("base.gitCommit", "{head}"),
    "a swapped head": _predicate("members.0.head.gitCommit", "{base}"),
    "a member without its mark": _predicate("members.0.isSubject", False),
    "another pull request": _predicate("pullRequest", 2),
    "no member": _predicate("members", []),
    "no run": _without("run"),
    "no checks": _predicate("checks", []),
    "a check less": lambda one: one["predicate"]["checks"].pop(),
    "a required name less": lambda one: one["predicate"]["required"]["names"].pop(),
    "a failed check": _predicate("checks.0.outcome", "failed"),
    "an open check": _predicate("checks.0.outcome", "open"),
    "an unknown outcome": _predicate("checks.0.outcome", "fine"),
    "a check of another commit": _predicate("checks.0.commit.gitCommit", "f" * 40),
    "another tested tree": _predicate("landing.testedTree.gitTree", OTHER),
    "another expected tree": _predicate("landing.expectedTree.gitTree", OTHER),
    "a tested tree denied": _predicate("landing.isTestedTree", False),
    "another tree of the run": _predicate("run.tree", {"gitTree": OTHER}),
    "another method": _predicate("landing.method", "MERGE_COMMIT"),
    "an option as a commit": _predicate("base.gitCommit", "--output=x"),
    "fields of other types": _predicate("checks", "all passed"),
    "no landing": _without("landing"),
}


@pytest.mark.parametrize("name", FALSE_STATEMENTS)
def test_a_false_statement_is_refused_though_its_signature_fits(scene: Scene, name: str) -> None:
    def change(statement: dict[str, Any]) -> None:
        FALSE_STATEMENTS[name](statement)
        text = json.dumps(statement).replace("{head}", scene.head).replace("{base}", scene.base)
        statement.clear()
        statement.update(json.loads(text))

    scene.write(scene.envelope(change))
    assert scene.verify() == 1


@pytest.mark.parametrize("name", FALSE_STATEMENTS)
def test_a_changed_statement_under_the_old_signature_is_refused(scene: Scene, name: str) -> None:
    signature = json.loads(scene.envelope())["signatures"]
    changed = json.loads(scene.envelope(FALSE_STATEMENTS[name]))
    mixed = {**changed, "signatures": signature}
    scene.write(json.dumps(mixed, separators=(",", ":"), sort_keys=True))
    assert scene.verify() == 1


def test_an_excused_check_that_is_told_as_passed_breaks_the_signature(scene: Scene) -> None:
    signature = json.loads(scene.envelope())["signatures"]
    told = json.loads(scene.envelope(_predicate("checks.1.outcome", "passed")))
    scene.write(json.dumps({**told, "signatures": signature}, separators=(",", ":")))
    assert scene.verify() == 1


def test_evidence_that_breaks_off_is_refused(scene: Scene) -> None:
    scene.write(scene.envelope()[:-20])
    assert scene.verify() == 1


def test_evidence_of_a_key_that_nobody_named_proves_nothing(scene: Scene, capsys) -> None:
    assert scene.verify(keys=False) == 2
    assert f"signed by key {scene.key.id}, which you have not named" in capsys.readouterr().out
    stranger = envelopes.new_key()
    scene.write(scene.envelope(key=stranger))
    assert scene.verify() == 2
    assert stranger.id in capsys.readouterr().out


def test_a_key_counts_only_for_the_time_in_which_it_signed(scene: Scene) -> None:
    scene.write_keys(scene.key, validFrom="2026-01-01T00:00:00Z", validUntil="2026-03-02T14:00:00Z")
    assert scene.verify() == 0
    scene.write_keys(scene.key, validUntil="2026-02-01T00:00:00Z")
    assert scene.verify() == 1


def test_a_key_file_whose_id_is_not_that_of_its_key_is_refused(scene: Scene, capsys) -> None:
    other = envelopes.new_key()
    scene.write_keys(envelopes.Made(scene.key.id, other.public, ""))
    assert scene.verify() == 2
    assert "holds no public key of Headgate" in capsys.readouterr().err


def test_a_commit_by_hand_is_named(scene: Scene, capsys) -> None:
    assert scene.verify(f"{scene.base}..main") == 2
    said = capsys.readouterr().out
    assert f"Without evidence: {scene.by_hand}\n" in said
    assert f"proved  {scene.landed} #1" in said


def test_a_head_that_is_not_there_cannot_be_told(scene: Scene, tmp_path: Path, capsys) -> None:
    clone = tmp_path / "clone"
    scene.git("branch", "-D", "topic")
    url = f"file://{scene.folder}"
    scene.git("clone", "-q", "--single-branch", "--branch", "main", url, str(clone))
    words = ["--checkout", str(clone), "--key", str(scene.folder / "keys.json")]
    words += ["--evidence", str(scene.folder / "evidence.jsonl")]
    words += ["--repo", "github.com/octo/widgets"]
    assert app.run(["verify", scene.landed, *words]) == 2
    assert "git fetch origin refs/pull/1/head" in capsys.readouterr().out


def test_without_files_the_evidence_may_be_a_git_note(scene: Scene) -> None:
    assert scene.verify(evidence=False) == 2
    scene.git("notes", "--ref=headgate", "add", "-m", scene.envelope(), scene.landed)
    assert scene.verify(evidence=False) == 0


def test_replaced_objects_deceive_nobody(scene: Scene) -> None:
    """The replacement has the tree that a false statement names."""
    false = scene.git("commit-tree", f"{scene.base}^{{tree}}", "-p", scene.base, "-m", "x")
    scene.git("replace", scene.landed, false)
    tree = scene.tree(scene.landed)["gitTree"]
    scene.write(scene.envelope(lambda one: one["subject"][0]["digest"].update(gitTree=tree)))
    assert scene.verify() == 1


@pytest.mark.parametrize("what", ["nowhere", "--all", "main...topic", "main..main"])
def test_what_is_no_commit_is_an_error_of_use(scene: Scene, what: str, capsys) -> None:
    words = ["verify", "--checkout", str(scene.folder), "--", what]
    assert app.run(words) == 2
    assert capsys.readouterr().err.startswith("headgate: ")
