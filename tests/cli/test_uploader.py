"""What CI knows of what was tested, which files are sent together, what is written of answers."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from bot.uploader import ci, files, verdict
from bot.uploader.files import Report
from service.testhealth.api import upload_form

HEAD = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "octo/widgets",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_RUN_ID": "9",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_WORKFLOW": "ci",
    "GITHUB_JOB": "unit",
    "RUNNER_OS": "Linux",
    "RUNNER_ARCH": "X64",
    "RUNNER_NAME": "runner 4",
}

SYSTEMS = [
    (
        GITHUB,
        {
            "branch": "main",
            "run_id": "9",
            "run_attempt": 2,
            "run_url": "https://github.com/octo/widgets/actions/runs/9",
            "job": "ci / unit @ Linux-X64",
            "machine": "runner 4",
        },
    ),
    (
        {
            "GITLAB_CI": "true",
            "CI_COMMIT_SHA": HEAD,
            "CI_COMMIT_REF_NAME": "refs/merge-requests/7/head",
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_PIPELINE_ID": "9",
            "CI_JOB_URL": "https://gitlab.example.com/x/-/jobs/3",
            "CI_JOB_NAME": "unit 1/2",
        },
        {
            "sha": HEAD,
            "branch": "topic",
            "pr_number": 7,
            "run_id": "9",
            "run_url": "https://gitlab.example.com/x/-/jobs/3",
            "job": "unit 1/2",
        },
    ),
    (
        {
            "BUILDKITE": "true",
            "BUILDKITE_COMMIT": HEAD,
            "BUILDKITE_BRANCH": "main",
            "BUILDKITE_PULL_REQUEST": "false",
            "BUILDKITE_BUILD_ID": "b-9",
            "BUILDKITE_BUILD_URL": "https://buildkite.com/o/p/builds/9",
            "BUILDKITE_PIPELINE_SLUG": "p",
            "BUILDKITE_LABEL": "unit",
            "BUILDKITE_RETRY_COUNT": "0",
        },
        {
            "sha": HEAD,
            "branch": "main",
            "run_id": "b-9",
            "run_attempt": 1,
            "run_url": "https://buildkite.com/o/p/builds/9",
            "job": "p / unit",
        },
    ),
    (
        {
            "CIRCLECI": "true",
            "CIRCLE_SHA1": HEAD,
            "CIRCLE_BRANCH": "topic",
            "CIRCLE_PULL_REQUEST": "https://github.com/octo/widgets/pull/7",
            "CIRCLE_WORKFLOW_ID": "w-9",
            "CIRCLE_BUILD_URL": "https://circleci.com/x/3",
            "CIRCLE_JOB": "unit",
        },
        {
            "sha": HEAD,
            "branch": "topic",
            "pr_number": 7,
            "run_id": "w-9",
            "run_url": "https://circleci.com/x/3",
            "job": "unit",
        },
    ),
    (
        {
            "JENKINS_URL": "https://jenkins/",
            "GIT_COMMIT": HEAD,
            "BRANCH_NAME": "PR-7",
            "CHANGE_BRANCH": "topic",
            "CHANGE_ID": "7",
            "BUILD_TAG": "jenkins-widgets-9",
            "BUILD_URL": "https://jenkins/job/widgets/9/",
            "JOB_NAME": "widgets",
        },
        {
            "sha": HEAD,
            "branch": "topic",
            "pr_number": 7,
            "run_id": "jenkins-widgets-9",
            "run_url": "https://jenkins/job/widgets/9/",
            "job": "widgets",
        },
    ),
    (
        {
            "TF_BUILD": "True",
            "BUILD_SOURCEVERSION": HEAD,
            "BUILD_SOURCEBRANCH": "refs/heads/release/2",
            "BUILD_BUILDID": "9",
            "BUILD_DEFINITIONNAME": "ci",
            "SYSTEM_JOBNAME": "unit",
            "SYSTEM_JOBATTEMPT": "3",
            "SYSTEM_COLLECTIONURI": "https://dev.azure.com/octo/",
            "SYSTEM_TEAMPROJECT": "widgets",
            "AGENT_NAME": "agent 1",
        },
        {
            "sha": HEAD,
            "branch": "release/2",
            "run_id": "9",
            "run_attempt": 3,
            "run_url": "https://dev.azure.com/octo/widgets/_build/results?buildId=9",
            "job": "ci / unit",
            "machine": "agent 1",
        },
    ),
    ({}, {}),
]


@pytest.mark.parametrize(("environ", "facts"), SYSTEMS, ids=lambda value: next(iter(value), ""))
def test_each_ci_system_says_what_was_tested(environ, facts):
    assert ci.metadata_of(environ) == facts


@pytest.fixture
def workflow_run(tmp_path):
    """The environment of a run that the end of a pull request's run began."""

    def begun(**differences):
        own = {"id": 1, "owner": {"login": "octo"}}
        run = {"id": 8, "run_attempt": 3, "head_sha": HEAD, "head_branch": "topic"}
        run |= {"event": "pull_request", "pull_requests": [], "head_repository": own}
        event = {"workflow_run": run | differences, "workflow": {"name": "ci"}, "repository": own}
        file = tmp_path / "event.json"
        file.write_text(json.dumps(event))
        named = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": str(file)}
        return {**GITHUB, "GITHUB_WORKFLOW": "reports", "GITHUB_JOB": "report", **named}

    return begun


def test_a_matrix_is_part_of_the_jobs_name():
    assert ci.metadata_of(GITHUB, "3.12, linux")["job"] == "ci / unit @ Linux-X64 (3.12, linux)"


def test_the_head_of_a_pull_request_comes_from_the_event(tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": HEAD}}}))
    environ = {**GITHUB, "GITHUB_EVENT_PATH": str(event), "GITHUB_HEAD_REF": "topic"}
    facts = ci.metadata_of(environ)
    assert (facts["sha"], facts["pr_number"], facts["branch"]) == (HEAD, 7, "topic")
    for other in ("", "[]", '{"pull_request": null}', "{"):
        event.write_text(other)
        assert "pr_number" not in ci.metadata_of(environ)


@pytest.mark.parametrize(
    "environ",
    [
        {**GITHUB, "GITHUB_REF": "refs/tags/main"},
        {"GITLAB_CI": "true", "CI_COMMIT_REF_NAME": "main", "CI_COMMIT_TAG": "main"},
        {"BUILDKITE": "true", "BUILDKITE_BRANCH": "main", "BUILDKITE_TAG": "main"},
        {"CIRCLECI": "true", "CIRCLE_TAG": "main"},
        {"JENKINS_URL": "https://jenkins/", "BRANCH_NAME": "main", "TAG_NAME": "main"},
        {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/tags/main"},
    ],
    ids=lambda environ: next(iter(environ)),
)
def test_a_tag_is_no_branch_whatever_its_name(environ):
    subprocess.run(["git", "init", "-b", "main"], check=True, capture_output=True)
    assert "branch" not in ci.metadata_of(environ)


def said_of(environ):
    """What is said of the run whose end began this one."""
    before = ci.triggering_run_of(environ)
    assert before is not None
    return before.description


def test_a_run_begun_by_the_end_of_another_sends_that_ones_results(workflow_run):
    environ = workflow_run(event="push", head_branch="main", pull_requests=[{"number": 7}])
    assert ci.metadata_of(environ) == {
        "sha": HEAD,
        "branch": "main",
        "run_id": "8",
        "run_attempt": 3,
        "run_url": "https://github.com/octo/widgets/actions/runs/8",
        "job": "ci / report @ Linux-X64",
    }
    assert said_of(environ) == (
        f"These count as results of run 8, attempt 3: ci of main at {HEAD[:8]}"
    )


def test_what_a_pull_request_began_is_that_pull_requests(workflow_run):
    environ = workflow_run(head_branch="topic", pull_requests=[{"number": 7}])
    facts = ci.metadata_of(environ)
    assert (facts["branch"], facts["pr_number"]) == ("topic", 7)
    assert "pr_number" not in ci.metadata_of(workflow_run(pull_requests=[]))


@pytest.mark.parametrize(
    ("head", "branch"),
    [({"id": 2, "owner": {"login": "mallory"}}, "mallory:main"), (None, "?:main")],
)
def test_the_branch_of_a_fork_is_not_ours_of_that_name(workflow_run, head, branch):
    environ = workflow_run(head_branch="main", head_repository=head)
    assert ci.metadata_of(environ)["branch"] == branch
    assert said_of(environ) == (
        f"These count as results of run 8, attempt 3: ci of {branch} at {HEAD[:8]}; a fork's are "
        "shown and change nothing"
    )


@pytest.mark.parametrize("event", ["", "[]", '{"workflow_run": {}}', '{"workflow_run": null}'])
def test_what_began_a_run_and_cannot_be_read_is_nobodys_branch(workflow_run, event):
    environ = workflow_run()
    Path(environ["GITHUB_EVENT_PATH"]).write_text(event)
    assert "branch" not in ci.metadata_of(environ)
    assert "names no triggering run" in said_of(environ)


def git(*arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_a_checkout_knows_its_commit_its_tree_and_its_branch():
    git("init", "-b", "trunk")
    git("commit", "--allow-empty", "-m", "x")
    facts = ci.metadata_of({})
    assert sorted(facts) == ["branch", "sha", "tree_sha"]
    assert (facts["branch"], facts["tree_sha"]) == (
        "trunk",
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    )


def test_a_checkout_of_other_code_than_the_tested_commit_names_no_tree():
    git("init", "-b", "trunk")
    commits = []
    for _ in range(2):
        git("commit", "--allow-empty", "-m", "x")
        commits.append(git("rev-parse", "HEAD"))
    assert ci.tested_tree(commits[1].upper()) == git("rev-parse", "HEAD^{tree}")
    for other in (commits[0], "a" * 40, "trunk", ""):
        assert ci.tested_tree(other) == ""
    assert ci.metadata_of({}, sha=commits[0]) == {"sha": commits[0]}
    assert ci.metadata_of({}, sha=commits[1])["branch"] == "trunk"
    buildkite = {"BUILDKITE": "true", "BUILDKITE_COMMIT": "a" * 40}
    assert "tree_sha" not in ci.metadata_of(buildkite)
    assert "tree_sha" in ci.metadata_of(buildkite, sha=commits[1])


def test_the_head_of_a_pull_request_is_tested_with_the_tree_of_its_merge():
    git("init", "-b", "trunk")
    git("commit", "--allow-empty", "-m", "x")
    git("checkout", "-b", "topic")
    git("commit", "--allow-empty", "-m", "y")
    head = git("rev-parse", "HEAD")
    git("checkout", "trunk")
    Path("a.txt").write_text("1")
    git("add", "a.txt")
    git("commit", "-m", "z")
    git("merge", "--no-ff", "-m", "merge", "topic")
    assert (
        ci.tested_tree(head)
        == git("rev-parse", "HEAD^{tree}")
        != git("rev-parse", f"{head}^{{tree}}")
    )


def test_globs_find_files_once_and_in_order():
    for name in ("b/x.xml", "a.xml", "b/c/y.xml", "b/z.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("dir.xml").mkdir()
    told: list[str] = []
    found = files.find_reports(["**/*.xml", "a.xml", "nothing*"], 0, told.append)
    assert [each.name for each in found.readable] == ["a.xml", "b/c/y.xml", "b/x.xml"]
    assert [gzip.decompress(each.packed).decode() for each in found.readable] == [
        *("a.xml", "b/c/y.xml", "b/x.xml"),
    ]
    assert told == []


def test_a_packed_file_is_sent_as_it_is():
    packed = gzip.compress(b"<testsuite/>")
    Path("a.xml.gz").write_bytes(packed)
    (report,) = files.find_reports(["*.gz"], 0, print).readable
    assert report.packed == packed


def test_an_upload_keeps_every_limit(monkeypatch):
    monkeypatch.setattr(files, "PACKED_BYTES_MAX", 10)
    monkeypatch.setattr(files, "PLAIN_BYTES_MAX", 100)
    sizes = [(4, 4), (6, 6), (1, 99), (1, 1), (1, 1), (50, 500), (1, 1)]
    reports = [Report(str(n), b"x" * packed, plain) for n, (packed, plain) in enumerate(sizes)]
    found = [[int(each.name) for each in batch] for batch in files.batches(reports)]
    assert found == [[0, 1], [2, 3], [4], [5], [6]]


def test_a_form_is_read_as_it_was_written():
    name = 'odd "name"\\\n é.xml'
    kind, body = files.form({"sha": HEAD}, [Report(name, b"\r\n--\0", 5)], b"* @a")
    assert files.form({"sha": HEAD}, [Report(name, b"\r\n--\0", 5)], b"* @a") == (kind, body)
    boundary = upload_form.boundary_of(kind)
    assert boundary is not None
    assert [
        (each.name, each.filename, each.content) for each in upload_form.parts(body, boundary)
    ] == [
        ("metadata", None, json.dumps({"sha": HEAD}).encode()),
        ("file", 'odd "name"\\? é.xml', b"\r\n--\0"),
        ("codeowners", None, b"* @a"),
    ]


def test_many_names_are_cut():
    assert (
        verdict.listed([str(n) for n in range(12)], 30)
        == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more"
    )


def test_what_is_no_file_is_not_read():
    os.mkfifo("a.xml")
    assert files.find_reports(["a.xml"], 0, print) == ([], [])


def test_links_that_lead_in_a_circle_are_not_followed():
    Path("a/b/.hidden").mkdir(parents=True)
    for name in ("a/x.xml", "a/b/y.xml", "a/b/.hidden/z.xml"):
        Path(name).write_text(name)
    Path("a/b/up").symlink_to("..")
    Path("a/b/top").symlink_to("../..")
    Path("again.xml").symlink_to("a/x.xml")
    Path("linked").symlink_to("a/b")
    top = Path.cwd()
    for patterns, names in (
        (["**/*.xml"], ["a/b/y.xml", "a/x.xml"]),
        (["**/*.xml", "again.xml"], ["a/b/y.xml", "a/x.xml"]),
        (["linked/**/*.xml"], ["linked/y.xml"]),
        (["a/**"], ["a/b/y.xml", "a/x.xml"]),
        (["**/b/**/y.xml"], ["a/b/y.xml"]),
        ([f"{top}/**/y.xml"], [f"{top}/a/b/y.xml"]),
    ):
        found = files.find_reports(patterns, 0, print)
        assert [each.name for each in found.readable] == names, patterns


def test_packed_files_are_counted_as_what_they_hold(monkeypatch):
    monkeypatch.setattr(files, "PLAIN_BYTES_MAX", 1_500)
    for name in ("a.gz", "b.gz"):
        Path(name).write_bytes(gzip.compress(b"x" * 1_000))
    found = files.find_reports(["*.gz"], 0, print).readable
    assert [[each.name for each in batch] for batch in files.batches(found)] == [["a.gz"], ["b.gz"]]


def test_a_name_that_is_no_text_is_sent_as_some():
    Path(os.fsdecode(b"\xff.xml")).write_text("<testsuite/>")
    told: list[str] = []
    (report,) = files.find_reports(["*.xml"], 0, told.append).readable
    assert report.name == "\ufffd.xml"
    files.find_reports(["*.xml"], 4e9, told.append)
    assert told == ["\ufffd.xml is older than this run and was ignored"]


def test_a_commit_that_ci_does_not_name_by_its_id_is_the_checkouts():
    environ = {"BUILDKITE": "true", "BUILDKITE_COMMIT": "HEAD", "BUILDKITE_BRANCH": "main"}
    assert ci.metadata_of(environ) == {"branch": "main"}


def test_long_values_of_a_matrix_keep_jobs_apart_within_the_limit():
    names = [str(ci.metadata_of(GITHUB, "x\n" * 200 + each)["job"]) for each in "ab"]
    assert [len(each) for each in names] == [255, 255]
    assert names[0] != names[1]
    assert all(each.startswith("ci / unit @ Linux-X64 (x x x ") for each in names)
