"""Worlds from values: people, repositories, files and rules, as the control plane sends them.

Every repository gets alice (maintain), bob (write) and carol (read) unless it names its own
collaborators; dave exists and has no role anywhere.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from bot.sandbox.acts import repositories
from bot.sandbox.acts.actions_by_people import as_files
from bot.sandbox.acts.repositories import NewRepository
from bot.sandbox.records import Actor, Classic, Json, Ruleset, Settings
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import Knobs, Repository, World

PEOPLE = {"alice": "maintain", "bob": "write", "carol": "read"}
STRANGER = "dave"
Chosen = TypeVar("Chosen", Settings, Classic, Knobs)
RULESET_KEYS = frozenset(
    {"name", "enforcement", "include", "exclude", "rules", "bypass_actors", "bypass_app"}
)


async def seed(world: World, value: Json) -> Json:
    """Add what the value lists; the repositories that were made.

    Keys: `people` (logins), `repositories`, `knobs`. Raises Refusal(400) for anything else.
    """
    unknown = set(value) - {"people", "repositories", "knobs"}
    if unknown:
        raise Refusal(400, f"seed knows no {', '.join(sorted(unknown))}")
    for login in value.get("people", ()):
        world.add_account(login)
    if "knobs" in value:
        set_knobs(world, value["knobs"])
    made = [_repository(world, one) for one in value.get("repositories", ())]
    return {"repositories": [{"id": one.id, "full_name": one.full_name} for one in made]}


def set_knobs(world: World, value: Mapping[str, Any]) -> None:
    """Change some delays. Raises Refusal(400) for an unknown one."""
    floats = {name: float(one) for name, one in value.items()}
    world.knobs = _changed(world.knobs, floats)


def _repository(world: World, value: Json) -> Repository:
    new = NewRepository(
        value["full_name"],
        value.get("default_branch", "main"),
        bool(value.get("private", False)),
        as_files(value.get("files", {})),
        value.get("collaborators", PEOPLE),
    )
    made = repositories.create(world, new)
    world.add_account(STRANGER)
    set_rules(made, value)
    return made


def set_rules(repository: Repository, value: Json) -> None:
    """Settings and rules of a repository.

    Keys: `settings`, `rulesets` (a list; one of a known name is replaced, `{name, delete: true}`
    removed), `protection` (`{branch: {…} or null}`), `required_checks` (a list of names for the
    default branch, as a ruleset called "required"). Raises Refusal(400).
    """
    actor = Actor(repository.owner)
    if "settings" in value:
        repository.settings = _changed(repository.settings, value["settings"])
    for one in value.get("rulesets", ()):
        new = None if one.get("delete", False) else _ruleset(repository.world, one)
        repositories.set_ruleset(repository, actor, new, one["name"])
    for branch, one in value.get("protection", {}).items():
        classic = None if one is None else _classic(one)
        repositories.set_classic(repository, actor, branch, classic)
    if "required_checks" in value:
        listed = [{"context": name} for name in value["required_checks"]]
        rule = {
            "type": "required_status_checks",
            "parameters": {
                "required_status_checks": listed,
                "strict_required_status_checks_policy": False,
            },
        }
        named = {"name": "required", "include": ["~DEFAULT_BRANCH"], "rules": [rule]}
        made = _ruleset(repository.world, named)
        repositories.set_ruleset(repository, actor, made, "required")


def _ruleset(world: World, value: Json) -> Ruleset:
    unknown = set(value) - RULESET_KEYS
    if unknown:
        raise Refusal(400, f"a ruleset knows no {', '.join(sorted(unknown))}")
    passing = list(value.get("bypass_actors", ()))
    if value.get("bypass_app", False):
        if world.app is None:
            raise Refusal(400, "no App is registered here")
        number = world.app.id
        passing.append({"actor_id": number, "actor_type": "Integration", "bypass_mode": "always"})
    return Ruleset(
        world.new_id(),
        value["name"],
        value.get("enforcement", "active"),
        list(value.get("include", ["~DEFAULT_BRANCH"])),
        list(value.get("exclude", [])),
        [_with_parameters(rule) for rule in value.get("rules", [])],
        passing,
        world.now(),
    )


def _classic(value: Json) -> Classic:
    given = dict(value)
    if given.get("checks") is not None:
        given["checks"] = [
            (one, None) if isinstance(one, str) else (one["context"], one.get("app_id"))
            for one in given["checks"]
        ]
    return _changed(Classic(), given)


def _changed(start: Chosen, value: Json) -> Chosen:
    """Return the value with some fields changed. Raises Refusal(400) for an unknown field."""
    names = {one.name for one in fields(start)}
    if not set(value) <= names:
        raise Refusal(400, f"{type(start).__name__.lower()} are {', '.join(sorted(names))}")
    return replace(start, **value)


PARAMETERS: Json = {
    "merge_queue": {
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "MERGE",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    },
    "pull_request": {
        "dismiss_stale_reviews_on_push": False,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_approving_review_count": 0,
        "required_review_thread_resolution": False,
    },
    "required_status_checks": {
        "required_status_checks": [],
        "strict_required_status_checks_policy": False,
    },
    "update": {"update_allows_fetch_and_merge": False},
    "required_deployments": {"required_deployment_environments": []},
    "code_scanning": {"code_scanning_tools": []},
    "workflows": {"workflows": []},
}
"""Parameters that GitHub gives every rule of these types ("Create a repository ruleset")."""


def _with_parameters(rule: Json) -> Json:
    defaults = PARAMETERS.get(rule["type"])
    if defaults is None:
        return rule
    return {**rule, "parameters": {**defaults, **rule.get("parameters", {})}}
