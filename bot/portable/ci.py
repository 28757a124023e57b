"""What was tested, and where: from the CI system's environment, its event file, and git."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bot.portable.sending import Unsent

GIT_TIMEOUT_S = 5
# API.md 8.4.
LINE_MAX = 255

# Marker of a CI system, then field → templates over its environment; the first whose variables
# are all set counts. `machine` only where a second attempt has another number: a job that runs
# again elsewhere would look like its own sibling (FLAKY.md 2.2).
SYSTEMS: tuple[tuple[str, Mapping[str, tuple[str, ...]]], ...] = (
    (
        "GITHUB_ACTIONS",
        {
            "branch": ("{GITHUB_HEAD_REF}", "{GITHUB_REF_NAME}"),
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


def facts_of(environ: Mapping[str, str], matrix: str = "") -> dict[str, object]:
    """The fields of the metadata that environment and checkout know (API.md 8.4).

    `matrix`: the values of a matrix job, which become part of its name. What is not known is
    left out, `sha` as well.
    """
    templates = next((each for marker, each in SYSTEMS if environ.get(marker)), {})
    found = {name: filled(each, environ) for name, each in templates.items()}
    event = pull_request_of(environ)
    job = found.get("job", "")
    number = re.search(r"[1-9]\d*$", event.get("number") or found.get("pr_number", ""))
    fields: dict[str, object] = {
        "sha": event.get("sha") or sha_of(found.get("sha", "")),
        "tree_sha": git("rev-parse", "HEAD^{tree}"),
        "branch": branch_of(found.get("branch", "")),
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


def branch_of(named: str) -> str:
    """The branch without the beginning that some systems write; else the checkout's."""
    start = "refs/heads/"
    named = named or git("symbolic-ref", "--short", "HEAD")
    return named[len(start) :] if named.startswith(start) else named


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


def pull_request_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Head and number of the pull request in GitHub's event file; nothing for other events."""
    try:
        event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        pull = event["pull_request"]
        return {"sha": str(pull["head"]["sha"]), "number": str(pull["number"])}
    except (KeyError, OSError, ValueError, TypeError):
        return {}


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
