"""The composite action: its shell run as a runner runs it, in a checkout that is in the way."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cli import service
from tests.cli.service import an_upload
from tests.tidy.tree import ROOT

UPLOAD = "/flaky-tests/upload-test-results"
FOLDER = ROOT / "action/upload-test-results"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
(STEP,) = ACTION["runs"]["steps"]
INPUTS = {"INPUT_ORG": "octo", "INPUT_JUNIT": "*.xml\nmore/*.xml\n", "INPUT_MATRIX": "null"}


@pytest.fixture(name="checkout")
def _checkout(tmp_path):
    """A checkout with a report, and with packages named like ours and the library's."""
    for name in ("bot", "json", "argparse"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "a.xml").write_bytes(b"<testsuite><testcase name='a'/></testsuite>")
    return tmp_path


def run(checkout, **given):
    environment = {
        **{name: value for name, value in os.environ.items() if name == "PATH"},
        **dict.fromkeys(STEP["env"], ""),
        **INPUTS,
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(FOLDER),
        "GITHUB_REPOSITORY": "octo/widgets",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
        "GITHUB_OUTPUT": str(checkout / "output"),
        **given,
    }
    shell = [shutil.which("bash"), "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]]
    return subprocess.run(
        shell, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


def standing_alone(name, scratch):
    """The folder of an action that `make actions` made, where nothing of ours is around it."""
    make = ["make", "-s", "actions", f"DIST={scratch / 'dist'}"]
    subprocess.run(make, cwd=ROOT, check=True)
    alone = shutil.move(scratch / "dist/action" / name, scratch / "alone")
    shutil.rmtree(scratch / "dist")
    return alone


def a_checkout_commit(checkout):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init"], [*identity, "commit", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *arguments], cwd=checkout, check=True, capture_output=True)


def test_every_input_is_handed_on():
    handed = " ".join(str(value) for value in STEP["env"].values())
    assert all(f"inputs.{name} }}" in handed for name in ACTION["inputs"])
    assert set(ACTION["outputs"]) == {"failed", "forgiven"}


@pytest.mark.parametrize(("failed", "excused", "code"), [(3, 3, 0), (3, 2, 1), (0, 0, 0)])
def test_reports_are_uploaded_and_the_job_page_says_so(checkout, failed, excused, code):
    a_checkout_commit(checkout)
    matrix = '{"python": "3.12", "os": "linux", "more": {"x": 1}}'
    with service.served() as api:
        api.says(UPLOAD, an_upload(failed, excused, code))
        done = run(
            checkout,
            INPUT_URL=api.url,
            HEADGATE_TOKEN=service.TOKEN,
            INPUT_VARIANT="linux",
            INPUT_MATRIX=matrix,
            GITHUB_WORKFLOW="ci",
            GITHUB_JOB="unit",
            RUNNER_OS="Linux",
            RUNNER_ARCH="X64",
        )
    assert (done.returncode, done.stderr) == (code, "")
    asked = api.asked[0][1]
    assert (asked["org_url_slug"], asked["variant"], list(asked["files"])) == (
        *("octo", "linux"),
        ["a.xml"],
    )
    assert asked["job"] == "ci / unit @ Linux-X64 (3.12, linux)"
    assert asked["repo"] == {"host": "github.com", "owner": "octo", "name": "widgets"}
    assert Path(checkout / "output").read_text() == f"failed={failed}\nforgiven={excused}\n"
    summary = Path(checkout / "summary.md").read_text()
    assert f"| 412 | {failed - excused} | {excused} | [upload](http://x/uploads" in summary


def test_a_copy_of_the_action_needs_no_file_outside_its_folder(checkout, tmp_path_factory):
    a_checkout_commit(checkout)
    alone = standing_alone(FOLDER.name, tmp_path_factory.mktemp("made"))
    assert (alone / "action.yml").read_bytes() == (FOLDER / "action.yml").read_bytes()
    with service.served() as api:
        api.says(UPLOAD, an_upload())
        given = {"INPUT_URL": api.url, "HEADGATE_TOKEN": service.TOKEN}
        done = run(checkout, GITHUB_ACTION_PATH=str(alone), **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(api.asked[0][1]["files"]) == ["a.xml"]


def test_without_a_token_there_is_a_notice_and_no_request(checkout):
    done = run(checkout, INPUT_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (
        0,
        "::notice::Headgate: there is no token, so no test results were uploaded.\n",
    )


@pytest.mark.parametrize(("strict", "code"), [("false", 0), ("true", 70)])
def test_a_refused_upload_fails_a_strict_job_alone(checkout, strict, code):
    a_checkout_commit(checkout)
    with service.served() as api:
        api.refuses(UPLOAD, 403, "missing_role", "too small a role")
        done = run(checkout, INPUT_URL=api.url, HEADGATE_TOKEN=service.TOKEN, INPUT_STRICT=strict)
    assert done.returncode == code
    assert done.stdout.startswith("::warning::headgate: the upload of test results failed (too")
    assert "failed=0" in Path(checkout / "output").read_text()


def test_no_report_is_a_warning(checkout):
    done = run(checkout, INPUT_JUNIT="nothing", INPUT_URL="http://x", HEADGATE_TOKEN="t")
    assert (done.returncode, done.stdout) == (
        0,
        "::warning::headgate: No test report matched: exit code 0.\n",
    )


@pytest.mark.parametrize(("strict", "code"), [("false", 0), ("true", 70)])
def test_a_machine_without_python_says_so(checkout, strict, code):
    done = run(checkout, INPUT_STRICT=strict, PATH="/nowhere")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith("::warning::headgate: there is no Python on this runner")


def test_no_input_is_run_as_a_command(checkout):
    hostile = "$(touch ran)`touch ran`\"; touch ran; '--strict\n--url=http://127.0.0.1:1"
    a_checkout_commit(checkout)
    with service.served() as api:
        api.says(UPLOAD, an_upload())
        done = run(
            checkout,
            INPUT_URL=api.url,
            HEADGATE_TOKEN=service.TOKEN,
            INPUT_VARIANT=hostile,
            INPUT_ORG=hostile,
            INPUT_MATRIX=hostile,
            INPUT_JUNIT=f"*.xml\n{hostile}",
            GITHUB_HEAD_REF=hostile,
            GITHUB_WORKFLOW=hostile,
            GITHUB_JOB="unit",
            RUNNER_OS="Linux",
            RUNNER_ARCH="X64",
        )
    assert (done.returncode, done.stderr) == (0, "")
    asked = api.asked[0][1]
    assert (asked["variant"], asked["org_url_slug"], asked["branch"]) == (hostile,) * 3
    assert not (checkout / "ran").exists()
