"""`upload-impacted-targets`: send which targets a pull request touches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from bot.uploader import ci, touched
from bot.uploader.touched import ALL, Targets, ToolFailed
from bot.uploader.transport import Request, RequestFailed, Service

NAMES_MAX = 200_000
BODY_BYTES_MAX = 20 * 1024 * 1024
PATHS = "paths"


class Options(NamedTuple):
    """The tool, the globs for `paths`, the base or an empty text, and what a failed tool does."""

    tool: str
    paths: str
    base: str
    fails: bool


def upload(options: Options, environ: Mapping[str, str], service: Service) -> int:
    """Find the targets and send them for the head; return the exit code.

    A refusal fails the job: otherwise the pull request would wait for its targets in silence.
    """
    pull = ci.pull_request_of(environ)
    if not pull:
        service.log("This run tests no pull request: there are no targets to upload.")
        return 0
    branch = environ.get("GITHUB_BASE_REF", "")
    try:
        targets = _find_targets(options, options.base or f"origin/{branch}", pull["sha"])
    except ToolFailed as failed:
        service.log(f"The touched targets cannot be found: {failed}")
        if options.fails:
            return 1
        targets = ALL
    except ValueError as invalid:
        service.log(str(invalid))
        return 1
    try:
        about = {
            "repo": ci.repository_of(environ),
            "targetBranch": branch,
            "pr": {"number": int(pull["number"]), "sha": pull["sha"]},
        }
        headers = {"Content-Type": "application/json"}
        answer = service.send(Request("/setImpactedTargets", headers, body_of(about, targets)))
    except RequestFailed as refused:
        service.log(f"The service refused the targets: {refused.text or refused.reason}")
        return 1
    what = "everything" if answer.get("impactsAll") else f"{answer.get('targetCount')} targets"
    service.log(f"#{pull['number']} at {pull['sha'][:8]} touches {what}.")
    return 0


def _find_targets(options: Options, base: str, head: str) -> Targets:
    """Return the targets touched between merge base and head; none if nothing changed.

    Raises ToolFailed, and ValueError for invalid options.
    """
    rules = touched.parse_rules(options.paths) if options.tool == PATHS else {}
    change = touched.change_between(base, head)
    if not change.paths:
        return []
    if options.tool == PATHS:
        return touched.by_paths(change, rules)
    return touched.TOOLS[options.tool](change)


def body_of(about: Mapping[str, object], targets: Targets) -> bytes:
    """Return the request's body; too many names become `ALL`."""
    if targets != ALL and len(targets) <= NAMES_MAX:
        body = json.dumps({**about, "impactedTargets": targets}).encode()
        if len(body) <= BODY_BYTES_MAX:
            return body
    return json.dumps({**about, "impactedTargets": ALL}).encode()
