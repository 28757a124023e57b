"""`upload-impacted-targets`: tell the service what a pull request touches (UX.md 8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bot.uploader import ci, touched
from bot.uploader.sending import Request, Service, Unsent
from bot.uploader.touched import ALL, Targets, ToolFailed

NAMES_MAX = 200_000
BODY_BYTES_MAX = 20 * 1024 * 1024
PATHS = "paths"


class Wish(NamedTuple):
    """What is asked for: the tool, the globs for `paths`, the base or nothing, what errors do."""

    tool: str
    paths: str
    base: str
    fails: bool


def upload(
    wish: Wish, environ: Mapping[str, str], service: Service, say: Callable[[str], object]
) -> int:
    """Find the targets, and send them for the head; the exit code.

    An answer other than success fails the job: the pull request would wait for its targets
    and nobody would know.
    """
    pull = ci.pull_request_of(environ)
    if not pull:
        say("This run is not of a pull request: there is nothing to tell.")
        return 0
    branch = environ.get("GITHUB_BASE_REF", "")
    try:
        found = targets_of(wish, wish.base or f"origin/{branch}", pull["sha"])
    except ToolFailed as failed:
        say(f"What is touched cannot be told: {failed}")
        if wish.fails:
            return 1
        found = ALL
    except ValueError as wrong:
        say(str(wrong))
        return 1
    try:
        about = {
            "repo": ci.repository_of(environ),
            "targetBranch": branch,
            "pr": {"number": int(pull["number"]), "sha": pull["sha"]},
        }
        body = body_of(about, found)
        answer = service.ask(Request("/setImpactedTargets", body, "application/json"))
    except Unsent as refused:
        say(f"The targets were not taken: {refused.said or refused.why}")
        return 1
    what = "everything" if answer.get("impactsAll") else f"{answer.get('targetCount')} targets"
    say(f"#{pull['number']} at {pull['sha'][:8]} touches {what}.")
    return 0


def targets_of(wish: Wish, base: str, head: str) -> Targets:
    """What lies between merge base and head; nothing changed: no target.

    Raises ToolFailed, and ValueError for a wish that cannot be meant.
    """
    rules = touched.rules_in(wish.paths) if wish.tool == PATHS else {}
    change = touched.change_between(base, head)
    if not change.paths:
        return []
    if wish.tool == PATHS:
        return touched.by_paths(change, rules)
    return touched.TOOLS[wish.tool](change)


def body_of(about: Mapping[str, object], targets: Targets) -> bytes:
    """The request, with everything where the names are too many to say."""
    if targets != ALL and len(targets) <= NAMES_MAX:
        body = json.dumps({**about, "impactedTargets": targets}).encode()
        if len(body) <= BODY_BYTES_MAX:
            return body
    return json.dumps({**about, "impactedTargets": ALL}).encode()
