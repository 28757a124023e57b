"""Find what was tested, and where: from the CI system's environment, its event file, and git.

CI may also give the job a token of its own (OpenID Connect), in place of an API token.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from bot.uploader import transport
from bot.uploader.transport import Json, RequestFailed, Transient

GIT_TIMEOUT_S = 5
# Longest text that a field of the metadata may have.
LINE_MAX = 255

# Events whose runs test pull requests; other runs only share their head with some.
OF_PULL_REQUESTS = ("pull_request", "pull_request_target")
BRANCHES, ANY_REF = "refs/heads/", "refs/"

# Marker of a CI system, then field → templates over its environment; the first template counts
# whose variables are all set. `tag` is set where `branch` is a tag's name. `machine` is only named
# where a second attempt has another number: a job that is repeated on another machine would look
# like two jobs.
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

URL, TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
GIVEN = "HEADGATE_OIDC_TOKEN"
_TIMEOUT_S = 10.0


class TriggeringRun(NamedTuple):
    """The run whose end started this one, from GitHub's event.

    `environ`: variables of this run as that run had them; `sha` and `number`: its head and its
    pull request, empty without one; `description`: all of it for people.
    """

    environ: Mapping[str, str]
    sha: str
    number: str
    description: str


def metadata_of(environ: Mapping[str, str], matrix: str = "", sha: str = "") -> dict[str, object]:
    """Return the metadata of an upload that environment and checkout know.

    `matrix`: the values of a matrix job, which become part of the job's name. `sha`: the commit
    under test, if somebody names it. Unknown fields are left out, also `sha`.
    """
    earlier = triggering_run_of(environ)
    environ = environ if earlier is None else {**environ, **earlier.environ}
    templates = next((each for marker, each in SYSTEMS if environ.get(marker)), {})
    values = {name: filled(each, environ) for name, each in templates.items()}
    pull = pull_request_of(environ)
    if earlier is not None:
        pull = {"sha": earlier.sha, "number": earlier.number}
    job = values.get("job", "")
    number = re.search(r"[1-9]\d*$", pull.get("number") or values.get("pr_number", ""))
    sha = sha or pull.get("sha") or sha_of(values.get("sha", ""))
    fields: dict[str, object] = {
        "sha": sha,
        # A run that reports for another has not checked out what that one tested.
        "tree_sha": tested_tree(sha) if earlier is None else "",
        "branch": branch_of(values, sha),
        "pr_number": int(number[0]) if number else None,
        "run_id": values.get("run_id"),
        "run_attempt": attempt_of(environ, values.get("run_attempt", "")),
        "run_url": values.get("run_url"),
        "job": _one_line(f"{job} ({matrix})" if job and matrix else job),
        "machine": values.get("machine"),
    }
    return {name: value for name, value in fields.items() if value}


def sha_of(value: str) -> str:
    """Return the commit that CI names, else the checkout's: Buildkite may say `HEAD`."""
    return value if re.fullmatch(r"[0-9a-fA-F]{40,64}", value) else git("rev-parse", "HEAD")


def tested_tree(sha: str) -> str:
    """Return the tree of the checkout if that is the commit or a merge of it; else empty.

    A job may have checked out another commit, or another repository with its tests alone, whose
    tree stays the same while the code under test changes.
    """
    # A shallow checkout has the parents of a merge here alone.
    shown = git("cat-file", "commit", "HEAD").partition("\n\n")[0].splitlines()
    parents = [line for line in shown if line.startswith("parent ")]
    is_merge = len(parents) > 1 and f"parent {sha.lower()}" in parents
    if git("rev-parse", "HEAD") != sha.lower() and not is_merge:
        return ""
    return git("rev-parse", "HEAD^{tree}")


def _one_line(text: str) -> str:
    """Return the text as one line of at most 255 characters that no other text has.

    The values of a matrix may be long and have several lines; the service would refuse them.
    """
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text)
    if len(line) <= LINE_MAX:
        return line
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{line[: LINE_MAX - 17]} {digest}"


def branch_of(values: Mapping[str, str], sha: str) -> str:
    """Return the branch without `refs/heads/`; else the checkout's, if the commit is checked out.

    Empty for a tag: the results of a tag named `main` would count as results of that branch.
    """
    ref = values.get("branch", "")
    if values.get("tag") or (ref.startswith(ANY_REF) and not ref.startswith(BRANCHES)):
        return ""
    if not ref and git("rev-parse", "HEAD") == sha.lower():
        ref = git("symbolic-ref", "--short", "HEAD")
    return ref[len(BRANCHES) :] if ref.startswith(BRANCHES) else ref


def attempt_of(environ: Mapping[str, str], value: str) -> int | None:
    """Return which attempt of its run this is, from 1; Buildkite counts retries instead."""
    retries = environ.get("BUILDKITE_RETRY_COUNT", "")
    if retries.isdigit():
        return int(retries) + 1
    return int(value) if value.isdigit() else None


def filled(templates: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the first template whose variables are all set, filled; else an empty text."""
    for template in templates:
        if all(environ.get(name) for name in re.findall(r"\{(\w+)\}", template)):
            return re.sub(r"\{(\w+)\}", lambda match: environ[match[1]], template)
    return ""


def triggering_run_of(environ: Mapping[str, str]) -> TriggeringRun | None:
    """Return the run whose end started this one (event `workflow_run`); None for other events.

    Such a run belongs to the default branch, whoever started the other run. Its results would
    count for that branch, also those from a fork's artifacts, so it reports for the other run,
    which the service looks up by its id.
    """
    if environ.get("GITHUB_EVENT_NAME") != "workflow_run":
        return None
    try:
        return _parse_triggering_run(event_of(environ))
    except (KeyError, TypeError):
        unknown = {"GITHUB_REF": ANY_REF, "RUNNER_NAME": ""}
        description = "The event names no triggering run: the results count for no branch"
        return TriggeringRun(unknown, "", "", description)


def _parse_triggering_run(event: Json) -> TriggeringRun:
    """Return the run of a `workflow_run` event. Raises KeyError and TypeError for another."""
    run = transport.member(event, "workflow_run")
    repository = transport.member(event, "repository")
    tests_pull_request = run["event"] in OF_PULL_REQUESTS
    # A deleted fork has no repository.
    head = transport.member(run, "head_repository") if run["head_repository"] else {}
    is_of_fork = tests_pull_request and head.get("id") != repository["id"]
    branch = str(run["head_branch"])
    if is_of_fork:
        owner = transport.member(head, "owner")["login"] if head else "?"
        branch = f"{owner}:{branch}"[:LINE_MAX]
    pulls = transport.objects(run["pull_requests"]) if tests_pull_request else []
    workflow, sha = str(transport.member(event, "workflow")["name"]), str(run["head_sha"])
    environ = {
        "GITHUB_HEAD_REF": "",
        "GITHUB_REF": BRANCHES + branch,
        "GITHUB_RUN_ID": str(run["id"]),
        "GITHUB_RUN_ATTEMPT": str(run["run_attempt"]),
        "GITHUB_WORKFLOW": workflow,
        # This machine is another one: a job that is reported twice would look like two jobs.
        "RUNNER_NAME": "",
    }
    description = (
        f"These count as results of run {run['id']}, attempt {run['run_attempt']}: {workflow} of"
        f" {branch} at {sha[:8]}"
    )
    description += "; a fork's are shown and change nothing" if is_of_fork else ""
    number = str(pulls[0]["number"]) if pulls else ""
    return TriggeringRun(environ, sha, number, description)


def pull_request_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return head and number of the pull request in GitHub's event file; empty without one."""
    try:
        pull = transport.member(event_of(environ), "pull_request")
        return {"sha": str(transport.member(pull, "head")["sha"]), "number": str(pull["number"])}
    except (KeyError, TypeError):
        return {}


def event_of(environ: Mapping[str, str]) -> Json:
    """Return the content of GitHub's event file. Raises KeyError if it cannot be read."""
    try:
        event = transport.json_object(Path(environ["GITHUB_EVENT_PATH"]).read_bytes())
    except OSError:
        event = None
    if event is None:
        raise KeyError("GITHUB_EVENT_PATH")
    return event


def repository_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the job's repository. Raises RequestFailed outside of GitHub's CI."""
    owner, _, name = environ.get("GITHUB_REPOSITORY", "").partition("/")
    if not name:
        raise RequestFailed("GITHUB_REPOSITORY names no repository")
    host = urlsplit(environ.get("GITHUB_SERVER_URL", "https://github.com")).netloc
    return {"host": host, "owner": owner, "name": name}


def git(*arguments: str) -> str:
    """Return the line that git prints in the current folder; empty if git fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def given_token(environ: Mapping[str, str]) -> str:
    """Return the token that a job of another CI system has asked for; empty without one.

    Raises RequestFailed for what is no such token.
    """
    token = environ.get(GIVEN, "").strip()
    if token and not is_oidc(token):
        raise RequestFailed(f"{GIVEN} is not an OIDC token")
    return token


def fetch_token(environ: Mapping[str, str], service_url: str) -> str:
    """Return a fresh token for the service at this address; empty where GitHub offers none.

    GitHub offers one to a job with `permissions: id-token: write`. Raises RequestFailed.
    """
    url, bearer = environ.get(URL, ""), environ.get(TOKEN, "")
    if not url or not bearer:
        return ""
    audience = transport.root_of(service_url)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestFailed(f"{URL} is not an http address")
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        f"{url}{'&' if parts.query else '?'}audience={quote(audience, safe='')}",
        headers={"Authorization": f"Bearer {transport.header_token(bearer)}"},
    )
    token = None
    try:
        response = transport.open_within(f"{parts.scheme}://{parts.netloc}", request, _TIMEOUT_S)
        if response.status == HTTPStatus.OK:
            token = (transport.json_object(response.body) or {}).get("value")
    except Transient:
        pass
    if not isinstance(token, str) or not is_oidc(token):
        raise RequestFailed("GitHub gave this job no OIDC token")
    return token


def is_oidc(token: str) -> bool:
    """Return whether the token is a JSON web token, which no API token is."""
    return token.startswith("eyJ") and token.count(".") == 2
