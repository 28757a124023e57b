"""`headgate import` on a realistic repository of each other queue."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from bot.cli import app
from service.mergequeue.operations import repository_file
from tests.harness.expect import expect
from tests.moving import examples

OWN = ".github/headgate.yml"


@pytest.mark.parametrize("name", examples.NAMES)
def test_what_is_printed_names_every_change_and_every_loss(name, tmp_path, capsys):
    folder = examples.checkout(name, tmp_path)
    before = examples.contents(folder)
    assert app.run(examples.arguments(folder)) == 0
    expect(capsys.readouterr().out.replace(f"{folder}/", "")).matches(f"{name}.txt")
    assert examples.contents(folder) == before, "it was a dry run"


@pytest.mark.parametrize("name", examples.NAMES)
def test_the_files_are_valid_keep_their_comments_and_a_second_import_changes_nothing(
    name, tmp_path, capsys
):
    folder = examples.checkout(name, tmp_path)
    before = examples.contents(folder)
    assert app.run([*examples.arguments(folder), "--write"]) == 0
    after = examples.contents(folder)
    assert repository_file.check(after.pop(OWN).encode()).faults == ()
    assert after.keys() == before.keys()
    for path, text in after.items():
        assert comments_in(text) == comments_in(before[path])
        if path.startswith(".github/workflows/"):
            assert jobs_in(text) == jobs_in(before[path])
    capsys.readouterr()
    assert app.run([*examples.arguments(folder), "--write", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == []
    assert examples.contents(folder) == {**after, OWN: (folder / OWN).read_text()}


def comments_in(text: str) -> list[str]:
    return re.findall(r"(?:^|\s)(#.*)", text)


def jobs_in(text: str) -> object:
    """Everything that jobs do, without their conditions and what was added to expressions."""
    found = yaml.safe_load(re.sub(r" \|\| startsWith\([^)]*headgate/merge/'\)", "", text))["jobs"]
    for job in found.values():
        for each in (job, *job["steps"]):
            each.pop("if", None)
    return found


def imported(*arguments: str) -> int:
    return app.run(["import", "--branch", "main", *arguments])


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path, monkeypatch) -> Path:
    folder = examples.checkout("kodiak", tmp_path)
    monkeypatch.chdir(folder)
    return folder


def test_a_file_of_ours_is_replaced_only_if_that_is_asked_for(checkout, capsys):
    own = checkout / OWN
    own.write_text("version: 1\n")
    assert imported("--write") == 6
    assert "headgate.yml is there already. Nothing was written." in capsys.readouterr().err
    assert own.read_text() == "version: 1\n"
    assert imported("--write", "--overwrite") == 0
    assert f"  replace {OWN}\n" in capsys.readouterr().out
    assert "mergeMethod" in own.read_text()


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (".kodiak.toml", "version = 1\n[merge\n", ".kodiak.toml:2: This is not TOML: "),
        (".kodiak.toml", "version = \n", ".kodiak.toml:1: This is not TOML: Invalid value"),
        (".kodiak.toml", "a = [1,\n", ".kodiak.toml:2: This is not TOML: "),
        (".mergify.yml", "queue_rules:\n  - name: [\n", ".mergify.yml:3: This is not YAML: "),
        (".mergify.yml", "a: 1\na: 2\n", ".mergify.yml:2: `a` is set on line 1 already."),
        (".mergify.yml", "a:\n  <<: {b: 1}\n", ".mergify.yml:2: Merge keys (`<<`) are not"),
        ("bors.toml", 'status = ["a"]\nstatus = ["b"]\n', "bors.toml:2: This is not TOML: "),
        ("bors.toml", "a = " + "[" * 9000, "bors.toml: It has a number or a nesting"),
        ("bors.toml", "a" + ".a" * 900 + " = 1", "bors.toml: It has a number or a nesting"),
        ("bors.toml", "a = " + "9" * 5000, "bors.toml: It has a number or a nesting"),
    ],
)
def test_settings_that_cannot_be_read_are_refused_with_their_line(
    checkout, capsys, path, text, said
):
    (checkout / path).write_text(text)
    assert imported("--write") == 6
    assert said in capsys.readouterr().err
    assert not (checkout / OWN).exists()


def test_a_link_that_leads_out_of_the_checkout_is_not_written(checkout, tmp_path, capsys):
    away = tmp_path / "away"
    (checkout / ".github").rename(away)
    (checkout / ".github").symlink_to(away)
    before = examples.contents(away)
    assert imported("--write") == 6
    assert f"{OWN} is a symbolic link. Nothing was written." in capsys.readouterr().err
    (checkout / ".github").unlink()
    (checkout / ".github").mkdir()
    (checkout / OWN).symlink_to(away / "new")
    assert imported("--write") == 6
    assert examples.contents(away) == before


@pytest.mark.parametrize("content", [b"\xff = 1\n", b"# x\n\xff = 1\n"])
def test_settings_that_are_no_text_are_refused_with_their_line(checkout, capsys, content):
    (checkout / "bors.toml").write_bytes(content)
    assert imported() == 6
    line = content.count(b"\n")
    assert f"bors.toml:{line}: The file is not UTF-8 text." in capsys.readouterr().err


def test_a_workflow_that_cannot_be_read_is_named_and_left_as_it_is(checkout, capsys):
    broken = checkout / ".github/workflows/broken.yml"
    broken.write_bytes(b"on: merge_group\njobs: {a: \xff}\n")
    assert imported("--write", "--json") == 0
    left = json.loads(capsys.readouterr().out)["left"]
    assert [(each["line"], each["why"]) for each in left if "broken" in each["file"]] == [
        (
            2,
            "Headgate cannot read this file, so it was not changed. Line 2: The file is not UTF-8 "
            "text. Save it as UTF-8.",
        )
    ]
    assert broken.read_bytes() == b"on: merge_group\njobs: {a: \xff}\n"


def test_a_workflow_with_tabs_is_named_and_left_as_it_is(checkout, capsys):
    tabs = checkout / ".github/workflows/tabs.yml"
    tabs.write_text("on: {push: {branches: [\tmain]}}\njobs: {a: {steps: [{run: x}]}}\n")
    assert imported("--json") == 0
    left = json.loads(capsys.readouterr().out)["left"]
    assert [each["why"] for each in left if "tabs" in each["file"]] == [
        "Headgate could not change this file without breaking it."
    ]


def test_rules_that_are_no_rules_are_refused(checkout, capsys):
    (checkout / "rules.json").write_text('"x"')
    assert imported("--rules", "rules.json") == 6
    assert "rules.json:1: This is neither a ruleset nor a list" in capsys.readouterr().err


def test_a_ruleset_is_read_like_the_rules_of_a_branch(tmp_path, capsys):
    folder = examples.checkout("github", tmp_path)
    rules = json.loads((folder / examples.RULES).read_text())
    (folder / examples.RULES).write_text(json.dumps({"name": "main", "rules": rules}))
    assert app.run([*examples.arguments(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    settings = {each["setting"]: each["to"] for each in answer["carried"]}
    assert (settings["concurrency"], settings["testingTimeoutMinutes"]) == (8, 45)
    assert answer["testBranchKind"] == "PUSH"


def test_without_the_rules_a_queue_of_github_is_asked_for_them(tmp_path, capsys):
    folder = examples.checkout("github", tmp_path)
    assert imported(str(folder)) == 0
    assert "`headgate import --rules rules.json`" in capsys.readouterr().out


def test_files_that_are_not_read_are_named(checkout, capsys):
    (checkout / ".bulldozer.yml").write_text("version: 1\n")
    (checkout / ".github/.kodiak.toml").write_text("version = 1\n")
    assert imported() == 0
    out = capsys.readouterr().out
    assert "  .bulldozer.yml\n    Headgate reads no settings of Bulldozer from this file.\n" in out
    assert "  .github/.kodiak.toml\n    Kodiak reads another of its files first" in out


def test_a_file_of_trunks_other_tools_is_not_about_a_queue(tmp_path, capsys):
    folder = examples.checkout("trunk", tmp_path)
    (folder / ".trunk/trunk.yaml").write_text("version: 0.1\nlint: {}\n")
    (folder / ".github/workflows/pr.yml").write_text("on: pull_request\njobs: {a: {steps: []}}\n")
    assert imported(str(folder)) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "No settings of another queue, for main"
    assert "Files: nothing to change" in out


def test_the_default_branch_of_the_checkout_is_imported(checkout, capsys, git_checkout):
    git_checkout(checkout, "trunk-line")
    assert app.run(["import"]) == 0
    assert capsys.readouterr().out.startswith("Kodiak, for trunk-line\n")
    assert app.run(["import", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["branch"] == "trunk-line"


@pytest.fixture(name="git_checkout")
def _git_checkout():
    def make(folder: Path, branch: str) -> None:
        subprocess.run(["git", "init", "-q", "-b", branch, str(folder)], check=True)

    return make


def test_what_is_no_folder_is_a_mistake_of_usage(tmp_path, capsys):
    assert imported(str(tmp_path / "none")) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        (".mergify.yml", "Mergify"),
        ("bors.toml", "bors"),
        ("rust-bors.toml", "rust-bors"),
        (".kodiak.toml", "Kodiak"),
        (".trunk/trunk.yaml", "Trunk"),
    ],
)
def test_a_check_of_another_queues_file_says_whose_it_is(tmp_path, monkeypatch, capsys, path, tool):
    monkeypatch.chdir(tmp_path)
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("a: 1\n")
    assert app.run(["config", "validate", path]) == 1
    said = f"{path}: This is the settings file of {tool}. `headgate import` takes it over.\n"
    assert capsys.readouterr().out == said
