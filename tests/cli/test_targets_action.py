"""The composite action for impacted targets: what each tool is asked, and what is sent of it."""

import json
import os
import shutil
import subprocess

import pytest
import yaml

from bot.uploader import targets
from bot.uploader.targets import Change
from tests.cli import service
from tests.cli.test_action import standing_alone
from tests.tidy.tree import ROOT

SET = "/setImpactedTargets"
FOLDER = ROOT / "action/upload-impacted-targets"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
(STEP,) = ACTION["runs"]["steps"]
TAKEN = {"prNumber": 7, "prSha": "a" * 40, "impactsAll": False, "targetCount": 2}
RULES = "web: web/** shared/*\n//api:all: api/** *.proto\ndocs: **/*.md\n"


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.quotepath=on"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def written(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "--allow-empty", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory):
    """A branch that left `main` before its newest commit, with folders named like ours."""
    folder = tmp_path_factory.mktemp("checkout")
    git(folder, "init", "-b", "main")
    written(folder, {"web/a.js": "1", "api/b.go": "1", "json/__init__.py": "raise SystemExit(9)"})
    git(folder, "switch", "-c", "topic")
    git(folder, "switch", "main")
    written(folder, {"api/of-main.go": "1"})
    git(folder, "switch", "topic")
    return folder


@pytest.fixture(name="checkout")
def _checkout(tmp_path, made):
    """That checkout, to be changed."""
    return shutil.copytree(made, tmp_path / "checkout")


def run(checkout, head, tools=None, **given):
    """The action's shell as a runner runs it; `tools` are programs: name → what they do."""
    path = checkout.parent / "bin"
    path.mkdir(exist_ok=True)
    for name, shell in (tools or {}).items():
        (path / name).write_text(f"#!/bin/sh\n{shell}\n")
        (path / name).chmod(0o755)
    event = {"pull_request": {"number": 7, "head": {"sha": head}}}
    (checkout.parent / "event.json").write_text(json.dumps(event))
    environment = {
        "PATH": f"{path}:{os.environ['PATH']}",
        **dict.fromkeys(STEP["env"], ""),
        "HEADGATE_TOKEN": service.TOKEN,
        "INPUT_TOOL": "paths",
        "INPUT_PATHS": RULES,
        "INPUT_BASE": "main",
        "INPUT_ON_ERROR": "all",
        "GITHUB_ACTION_PATH": str(FOLDER),
        "GITHUB_REPOSITORY": "octo/widgets",
        "GITHUB_BASE_REF": "main",
        "GITHUB_RUN_ID": "991",
        "GITHUB_EVENT_PATH": str(checkout.parent / "event.json"),
        **given,
    }
    shell = [shutil.which("bash"), "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]]
    return subprocess.run(
        shell, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


def sent(checkout, head, tools=None, **given):
    """The targets that are sent, by an action that succeeds."""
    with service.served() as api:
        api.says(SET, TAKEN)
        done = run(checkout, head, tools, INPUT_URL=api.url, **given)
    assert (done.returncode, done.stderr) == (0, "")
    ((path, asked, _),) = api.asked
    assert (path, asked["pr"]["sha"]) == (SET, head)
    return asked["impactedTargets"]


def test_every_input_is_handed_on():
    handed = " ".join(str(value) for value in STEP["env"].values())
    assert all(f"inputs.{name} }}" in handed for name in ACTION["inputs"])


def test_the_globs_that_match_a_changed_path_name_the_targets(checkout):
    head = written(checkout, {"web/deep/c.js": "1", "x é.md": "1"})
    with service.served() as api:
        api.says(SET, TAKEN)
        done = run(checkout, head, INPUT_URL=api.url)
    assert (done.returncode, done.stdout) == (
        0,
        f"headgate: #7 at {head[:8]} touches 2 targets.\n",
    )
    assert api.asked[0][1] == {
        "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
        "targetBranch": "main",
        "pr": {"number": 7, "sha": head},
        "impactedTargets": ["web", "docs"],
    }


def test_a_copy_of_the_action_needs_no_file_outside_its_folder(checkout, tmp_path_factory):
    alone = standing_alone(FOLDER.name, tmp_path_factory.mktemp("made"))
    head = written(checkout, {"web/c.js": "1"})
    assert sent(checkout, head, GITHUB_ACTION_PATH=str(alone)) == ["web"]


def test_what_the_target_branch_did_meanwhile_is_not_touched(checkout):
    assert sent(checkout, written(checkout, {})) == []


def test_a_moved_file_touches_where_it_was_and_where_it_is(checkout):
    (checkout / "shared").mkdir()
    (checkout / "api/b.go").rename(checkout / "shared/b.go")
    assert sent(checkout, written(checkout, {})) == ["web", "//api:all"]


def test_a_fork_names_its_run_instead_of_a_token(checkout):
    head = written(checkout, {"web/a.js": "2"})
    with service.served() as api:
        api.says(SET, TAKEN)
        run(checkout, head, INPUT_URL=api.url, HEADGATE_TOKEN="")
    headers = {name.lower(): value for name, value in api.asked[0][2].items()}
    assert headers["x-forked-workflow-run-id"] == "991"
    assert "x-api-token" not in headers


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('echo "NX warns"; echo \'["web", "api"]\'', ["web", "api"]),
        ("echo '[]'", []),
        ("echo nothing", "ALL"),
        ("echo '[1]'", "ALL"),
        ("exit 3", "ALL"),
    ],
)
def test_nx_says_what_is_affected(checkout, said, found):
    head = written(checkout, {"web/a.js": "2"})
    base = git(checkout, "merge-base", "main", head)
    checked = f'[ "$*" = "nx show projects --affected --json --base={base} --head={head}" ]'
    tools = {"npx": f"{checked} || exit 9\n{said}"}
    assert sent(checkout, head, tools, INPUT_TOOL="nx") == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('echo \'[{"name": "web"}, {"name": "api", "path": "x"}, {}]\'', ["web", "api"]),
        ('echo "No projects matched the filters"', []),
        ("exit 1", "ALL"),
    ],
)
def test_pnpm_lists_what_changed_and_what_depends_on_it(checkout, said, found):
    head = written(checkout, {"web/a.js": "2"})
    base = git(checkout, "merge-base", "main", head)
    checked = f'[ "$*" = "--filter ...[{base}] list --depth -1 --json" ]'
    tools = {"pnpm": f"{checked} || exit 9\n{said}"}
    assert sent(checkout, head, tools, INPUT_TOOL="pnpm") == found


BAZEL = """\
file=${2#--query_file=}
cat "$file" >> "$QUERIES"; echo >> "$QUERIES"
case $(cat "$file") in
  kind*) printf '//api:lib\\n//web:app\\n' ;;
  *) printf '//api:b.go\\n//api:lib\\n//web:a.js\\n' ;;
esac
"""


FOUND = ["//api:lib", "//web:app"]


@pytest.mark.parametrize(
    ("files", "asked", "found"),
    [
        ({"api/b.go": "2"}, ["//api:b.go"], FOUND),
        ({"api/unknown.txt": "1"}, ["//api:*"], FOUND),
        ({"api/BUILD": "2", "web/a.js": "2"}, ["//api:*", "//web:a.js"], FOUND),
        ({"api/in/deep.go": "1"}, ["//api:*"], FOUND),
        ({"nowhere.txt": "1"}, None, []),
        ({"tools/rule.bzl": "1"}, None, "ALL"),
        ({"MODULE.bazel": "1"}, None, "ALL"),
        ({".bazelrc": "1"}, None, "ALL"),
    ],
)
def test_bazel_is_asked_what_depends_on_a_change(checkout, tmp_path, files, asked, found):
    git(checkout, "switch", "main")
    written(checkout, {"api/BUILD": "1", "web/BUILD.bazel": "1"})
    git(checkout, "switch", "-C", "topic")
    head = written(checkout, files)
    queries = tmp_path / "queries"
    more = {"INPUT_TOOL": "bazel", "QUERIES": str(queries)}
    assert sent(checkout, head, {"bazel": BAZEL}, **more) == found
    if asked is None:
        assert not queries.exists()
        return
    words = " ".join(f'"{each}"' for each in asked)
    assert queries.read_text().splitlines()[-1] == f"kind(rule, rdeps(//..., set({words})))"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"INPUT_ON_ERROR": "fail", "INPUT_BASE": "nowhere"}, 1, "cannot be found: git merge-base"),
        ({"INPUT_PATHS": "web web/**"}, 1, "`paths` has the line 'web web/**'"),
        ({"INPUT_PATHS": ""}, 1, "`paths` names no target"),
        ({"GITHUB_EVENT_PATH": "/nowhere"}, 0, "tests no pull request"),
        ({"PATH": "/nowhere"}, 1, "::error::headgate: there is no Python on this runner"),
    ],
)
def test_what_ends_without_a_request(checkout, given, code, said):
    done = run(checkout, written(checkout, {"web/a.js": "2"}), INPUT_URL="http://x", **given)
    assert done.returncode == code
    assert said in done.stdout


def test_a_base_that_is_not_there_is_everything(checkout):
    head = written(checkout, {"web/a.js": "2"})
    assert sent(checkout, head, INPUT_BASE="nowhere") == "ALL"


def test_a_refusal_fails_and_is_printed(checkout):
    head = written(checkout, {"web/a.js": "2"})
    with service.served() as api:
        api.refuses(SET, 404, "pull_request_not_found", "octo/widgets has no pull request 7.")
        done = run(checkout, head, INPUT_URL=api.url)
    assert done.returncode == 1
    assert '"code": "pull_request_not_found"' in done.stdout


def test_too_many_names_are_everything(monkeypatch):
    monkeypatch.setattr(targets, "NAMES_MAX", 2)
    monkeypatch.setattr(targets, "BODY_BYTES_MAX", 60)
    for found, said in (
        (["a", "b"], ["a", "b"]),
        (["a", "b", "c"], "ALL"),
        (["a" * 60], "ALL"),
        ("ALL", "ALL"),
    ):
        assert json.loads(targets.body_of({}, found))["impactedTargets"] == said


@pytest.mark.parametrize(
    ("path", "glob", "fits"),
    [
        ("web/a/b.js", "web/*", True),
        ("web/a/b.js", "web/**", True),
        ("web2/a.js", "web/**", False),
        ("a.md", "**/*.md", True),
        ("docs/a.md", "**/*.md", True),
        ("Web/a.js", "web/**", False),
    ],
)
def test_a_glob_of_paths(path, glob, fits):
    assert targets.is_match(path, glob) is fits


def test_no_tool_on_the_machine_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(targets.ToolFailed, match="there is no pnpm on this machine"):
        targets.by_pnpm(Change("a", "b", ("x",), frozenset()))
