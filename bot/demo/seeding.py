"""The repository `octo/widgets` as it begins: files, people, rules, pull requests."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import aiohttp
from pydantic import JsonValue

from bot.demo import story, widgets
from bot.demo.story import Change
from bot.sandbox.world import GITHUB_LIMITS

BRANCHES = tuple(each.branch for each in story.STORIES)

# The sandbox imitates how long GitHub takes; the demo need not show that.
KNOBS = {**GITHUB_LIMITS, "mergeable_delay_s": 0.2, "rename_delay_s": 0.2}

Json = dict[str, JsonValue]


async def all_stories(
    session: aiohttp.ClientSession, sandbox: str, machine: Path
) -> tuple[dict[int, str], dict[str, str]]:
    """Make the repository of all stories; return heads of pull requests, and target branches."""
    ci_file = widgets.ci_file(machine, story.WEATHER.branch)
    await post(session, f"{sandbox}/_sandbox/seed", repository(ci_file, BRANCHES))
    for branch in BRANCHES[1:]:
        await act(session, sandbox, push(branch, {}, f"Begin {branch}"))
    heads = {}
    for each in story.STORIES:
        heads.update(await open_all(session, sandbox, each.changes, each.branch))
    return heads, await move_on(session, sandbox, BRANCHES)


async def open_all(
    session: aiohttp.ClientSession, sandbox: str, changes: Iterable[Change], branch: str
) -> dict[int, str]:
    """Open these pull requests; return their heads by number."""
    heads: dict[int, str] = {}
    for change in changes:
        start: Json = {} if change.onto is None else {"from": heads[change.onto]}
        opened = await act(session, sandbox, {**_opening(change, branch), **start})
        heads[int(str(opened["number"]))] = str(opened["head"])
    return heads


async def move_on(
    session: aiohttp.ClientSession, sandbox: str, branches: Iterable[str]
) -> dict[str, str]:
    """Push to each branch, so that no pull request is based on its tip; return the new tips."""
    tips = {}
    for branch in branches:
        pushed = await act(session, sandbox, push(branch, widgets.LATER, "Begin a change log"))
        tips[branch] = str(pushed["sha"])
    return tips


def repository(ci_file: str, branches: Sequence[str]) -> Json:
    """Return the repository: its files, its people, and the check that each branch requires."""
    statuses: Json = {
        "required_status_checks": [{"context": widgets.CHECK}],
        "strict_required_status_checks_policy": False,
    }
    required: Json = {
        "name": "tests pass",
        "include": [f"refs/heads/{branch}" for branch in branches],
        "rules": [{"type": "required_status_checks", "parameters": statuses}],
    }
    made: Json = {
        "full_name": story.SLUG,
        "default_branch": branches[0],
        "files": {**widgets.FILES, ".sandbox/ci.yml": ci_file},
        "collaborators": dict(story.PEOPLE),
        "rulesets": [required],
    }
    return {"repositories": [made], "knobs": dict(KNOBS)}


def _opening(change: Change, branch: str) -> Json:
    """Return the act that opens a pull request."""
    return {
        "as": change.author,
        "act": "open",
        "head": change.branch,
        "base": branch,
        "title": change.title,
        "files": dict(change.files),
    }


def push(branch: str, files: Mapping[str, str], message: str) -> Json:
    """Return the act that pushes a commit to a target branch, past its rules."""
    return {
        "as": "alice",
        "act": "push",
        "branch": branch,
        "files": dict(files),
        "message": message,
        "bypass": True,
    }


async def act(session: aiohttp.ClientSession, sandbox: str, body: Json) -> Json:
    """Act as a person in the repository, over the sandbox's control plane."""
    return await post(session, f"{sandbox}/_sandbox/acts", {"repo": story.SLUG, **body})


async def post(session: aiohttp.ClientSession, url: str, body: Json) -> Json:
    """Return the answer of the sandbox's control plane. Raises ClientResponseError.

    The message of the error is the sandbox's reason.
    """
    async with session.post(url, json=body) as response:
        if response.status == 200:
            answer: Json = await response.json()
            return answer
        said = await response.json()
        raise aiohttp.ClientResponseError(
            response.request_info, (), status=response.status, message=str(said.get("error"))
        )
