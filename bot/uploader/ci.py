"""What was tested, and where: from the CI system's environment, its event file, and git."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from bot.uploader import sending
from bot.uploader.sending import Json, Unsent

GIT_TIMEOUT_S = 5
# API.md 8.4.
LINE_MAX = 255

# Events whose runs test pull requests; other runs only share their head with some.
OF_PULL_REQUESTS = ("pull_request", "pull_request_target")
BRANCHES, ANY_REF = "refs/heads/", "refs/"

# Marker of a CI system, then field → templates over its environment; the first whose variables
# are all set counts. `tag` is set where `branch` is a tag's name. `machine` only where a second
# attempt has another number: a job that runs again elsewhere would look like its own sibling
# (FLAKY.md 2.2).
SYSTEMS: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
    (
        "GITHUB_ACTIONS",
        {
            "branch": ("{GITHUB_HEAD_REF}", "{GITHUB_REF}"),
            "run_id": ("{GITHUB_RUN_ID}",),
            "run_attempt": ("{GITHUB_RUN_ATTEMPT}",),
            "run_url": ("{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",),
            "job": ("{GITHUB_WORKFLOW} / {GITHUB_JOB} @ {RUNNER_OS}-{RUNNER_ARCH}",),
            "machine": ("{RUNNER_NAME}",),
        },
    ),
    (
        "GITLAB_CI",
        {
            "sha": ("{CI_MERGE_REQUEST_SOURCE_BRANCH_SHA}", "{CI_COMMIT_SHA}"),
            "branch": ("{CI_MERGE_REQUEST_SOURCE_BRANCH_NAME}", "{CI_COMMIT_REF_NAME}"),
            "tag": ("{CI_COMMIT_TAG}",),
            "pr_number": ("{CI_MERGE_REQUEST_IID}",),
            "run_id": ("{CI_PIPELINE_ID}",),
            "run_url": ("{CI_JOB_URL}",),
            "job": ("{CI_JOB_NAME}",),
        },
    ),
    (
        "BUILDKITE",
        {
            "sha": ("{BUILDKITE_COMMIT}",),
            "branch": ("{BUILDKITE_BRANCH}",),
            "tag": ("{BUILDKITE_TAG}",),
            "pr_number": ("{BUILDKITE_PULL_REQUEST}",),
            "run_id": ("{BUILDKITE_BUILD_ID}",),
            "run_url": ("{BUILDKITE_BUILD_URL}",),
            "job": (
                "{BUILDKITE_PIPELINE_SLUG} / {BUILDKITE_LABEL}",
                "{BUILDKITE_PIPELINE_SLUG}",
            ),
        },
    ),
    (
        "CIRCLECI",
        {
            "sha": ("{CIRCLE_SHA1}",),
            "branch": ("{CIRCLE_BRANCH}",),
            "tag": ("{CIRCLE_TAG}",),
            "pr_number": ("{CIRCLE_PR_NUMBER}", "{CIRCLE_PULL_REQUEST}"),
            "run_id": ("{CIRCLE_WORKFLOW_ID}",),
            "run_url": ("{CIRCLE_BUILD_URL}",),
            "job": ("{CIRCLE_JOB}",),
        },
    ),
    (
        "JENKINS_URL",
        {
            "sha": ("{GIT_COMMIT}",),
            "branch": ("{CHANGE_BRANCH}", "{BRANCH_NAME}", "{GIT_LOCAL_BRANCH}"),
            "tag": ("{TAG_NAME}",),
            "pr_number": ("{CHANGE_ID}",),
            "run_id": ("{BUILD_TAG}",),
            "run_url": ("{BUILD_URL}",),
            "job": ("{STAGE_NAME}", "{JOB_NAME}"),
        },
    ),
    (
        "TF_BUILD",
        {
            "sha": ("{SYSTEM_PULLREQUEST_SOURCECOMMITID}", "{BUILD_SOURCEVERSION}"),
            "branch": ("{SYSTEM_PULLREQUEST_SOURCEBRANCH}", "{BUILD_SOURCEBRANCH}"),
            "pr_number": (
                "{SYSTEM_PULLREQUEST_PULLREQUESTNUMBER}",
                "{SYSTEM_PULLREQUEST_PULLREQUESTID}",
            ),
            "run_id": ("{BUILD_BUILDID}",),
            "run_attempt": ("{SYSTEM_JOBATTEMPT}",),
            "run_url": (
                "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
            ),
            "job": ("{BUILD_DEFINITIONNAME} / {SYSTEM_JOBNAME}",),
            "machine": ("{AGENT_NAME}",),
        },
    ),
)


class TriggeringRun(NamedTuple):
    """What GitHub tells of the run whose end began this one.

    `environ`: variables of this run as that one had them; `sha` and `number`: its head and its
    pull request, empty when there is none; `said`: all of it for people.
    """

    environ: Mapping[str, str]
    sha: str
    number: str
    said: str


def facts_of(environ: Mapping[str, str], matrix: str = "") -> dict[str, object]:
    """The fields of the metadata that environment and checkout know (API.md 8.4).

    `matrix`: the values of a matrix job, which become part of its name. What is not known is
    left out, `sha` as well.
    """
    before = triggering_run_of(environ)
    environ = environ if before is None else {**environ, **before.environ}
    templates = next((each for marker, each in SYSTEMS if environ.get(marker)), {})
    found = {name: filled(each, environ) for name, each in templates.items()}
    event = pull_request_of(environ)
    if before is not None:
        event = {"sha": before.sha, "number": before.number}
    job = found.get("job", "")
    number = re.search(r"[1-9]\d*$", event.get("number") or found.get("pr_number", ""))
    fields: dict[str, object] = {
        "sha": event.get("sha") or sha_of(found.get("sha", "")),
        # A run that tells of another has not checked out what that one tested.
        "tree_sha": git("rev-parse", "HEAD^{tree}") if before is None else "",
        "branch": branch_of(found),
        "pr_number": int(number[0]) if number else None,
        "run_id": found.get("run_id"),
        "run_attempt": attempt_of(environ, found.get("run_attempt", "")),
        "run_url": found.get("run_url"),
        "job": line_of(f"{job} ({matrix})" if job and matrix else job),
        "machine": found.get("machine"),
    }
    return {name: value for name, value in fields.items() if value}


def sha_of(named: str) -> str:
    """The commit as CI names it; else the checkout's, for Buildkite may name it `HEAD`."""
    return named if re.fullmatch(r"[0-9a-fA-F]{40,64}", named) else git("rev-parse", "HEAD")


def line_of(text: str) -> str:
    """The text as a field of the metadata can hold it, and still unlike any other.

    The values of a matrix may be long and have several lines; such a job would be refused.
    """
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text)
    if len(line) <= LINE_MAX:
        return line
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{line[: LINE_MAX - 17]} {digest}"


def branch_of(found: Mapping[str, str]) -> str:
    """The branch without the beginning that some systems write; else the checkout's.

    Nothing for a tag: one named like a stable branch would speak for it (FLAKY.md 2.3).
    """
    named = found.get("branch", "")
    if found.get("tag") or (named.startswith(ANY_REF) and not named.startswith(BRANCHES)):
        return ""
    named = named or git("symbolic-ref", "--short", "HEAD")
    return named[len(BRANCHES) :] if named.startswith(BRANCHES) else named


def attempt_of(environ: Mapping[str, str], named: str) -> int | None:
    """Which attempt of its run this is, from 1; Buildkite counts retries instead."""
    retries = environ.get("BUILDKITE_RETRY_COUNT", "")
    if retries.isdigit():
        return int(retries) + 1
    return int(named) if named.isdigit() else None


def filled(templates: Iterable[str], environ: Mapping[str, str]) -> str:
    """The first template whose variables are all set, filled; else nothing."""
    for template in templates:
        if all(environ.get(name) for name in re.findall(r"\{(\w+)\}", template)):
            return re.sub(r"\{(\w+)\}", lambda match: environ[match[1]], template)
    return ""


def triggering_run_of(environ: Mapping[str, str]) -> TriggeringRun | None:
    """The run whose end began this one (GitHub's event `workflow_run`); None for other events.

    Such a run stands on the default branch, whoever began the other: what it sends as its own
    would be that branch's, also the artifacts of a fork. So it speaks for the other, which the
    service looks up by its id (FLAKY.md 2.3).
    """
    if environ.get("GITHUB_EVENT_NAME") != "workflow_run":
        return None
    try:
        return read_triggering_run(event_of(environ))
    except (KeyError, TypeError):
        nowhere = {"GITHUB_REF": ANY_REF, "RUNNER_NAME": ""}
        said = "This run does not tell which run began it: its results are of no branch"
        return TriggeringRun(nowhere, "", "", said)


def read_triggering_run(event: Json) -> TriggeringRun:
    """The run of a `workflow_run` event. Raises KeyError and TypeError for another."""
    run, own = sending.member(event, "workflow_run"), sending.member(event, "repository")
    is_asked_for = run["event"] in OF_PULL_REQUESTS
    # A fork that was deleted is no repository any more.
    head = sending.member(run, "head_repository") if run["head_repository"] else {}
    is_of_fork = is_asked_for and head.get("id") != own["id"]
    branch = str(run["head_branch"])
    if is_of_fork:
        branch = f"{sending.member(head, 'owner')['login'] if head else '?'}:{branch}"[:LINE_MAX]
    pulls = sending.objects(run["pull_requests"]) if is_asked_for else []
    workflow, sha = str(sending.member(event, "workflow")["name"]), str(run["head_sha"])
    told = {
        "GITHUB_HEAD_REF": "",
        "GITHUB_REF": BRANCHES + branch,
        "GITHUB_RUN_ID": str(run["id"]),
        "GITHUB_RUN_ATTEMPT": str(run["run_attempt"]),
        "GITHUB_WORKFLOW": workflow,
        # Another machine: a job that is told of twice would look like its own sibling.
        "RUNNER_NAME": "",
    }
    said = (
        f"These count as results of run {run['id']}, attempt {run['run_attempt']}: {workflow} of"
        f" {branch} at {sha[:8]}"
    )
    said += "; a fork's are shown and change nothing" if is_of_fork else ""
    return TriggeringRun(told, sha, str(pulls[0]["number"]) if pulls else "", said)


def pull_request_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Head and number of the pull request in GitHub's event file; nothing for other events."""
    try:
        pull = sending.member(event_of(environ), "pull_request")
        return {"sha": str(sending.member(pull, "head")["sha"]), "number": str(pull["number"])}
    except (KeyError, TypeError):
        return {}


def event_of(environ: Mapping[str, str]) -> Json:
    """What GitHub's event file holds. Raises KeyError without one that can be read."""
    try:
        event = sending.json_of(Path(environ["GITHUB_EVENT_PATH"]).read_bytes())
    except OSError:
        event = None
    if event is None:
        raise KeyError("GITHUB_EVENT_PATH")
    return event


def repository_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The repository that the job belongs to. Raises Unsent outside of GitHub's CI."""
    owner, _, name = environ.get("GITHUB_REPOSITORY", "").partition("/")
    if not name:
        raise Unsent("GITHUB_REPOSITORY names no repository")
    host = urlsplit(environ.get("GITHUB_SERVER_URL", "https://github.com")).netloc
    return {"host": host, "owner": owner, "name": name}


def git(*arguments: str) -> str:
    """What git says of the checkout one stands in; nothing without one."""
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
