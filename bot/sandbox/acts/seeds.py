"""Worlds from values: people, repositories, files and rules, as the control plane sends them.

Every repository gets alice (maintain), bob (write) and carol (read) unless it names its own
collaborators; dave exists and has no role anywhere.

The example to begin with has two repositories with pull requests. Its CI runs no command:
`.sandbox/ci.yml` says which tests fail on which files.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from bot.sandbox.acts import actions_by_people, repositories
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

WIDGETS, WEBSITE = "octo/widgets", "octo/website"

# On pull requests only quick tests run: what breaks a slow one shows on the test branch.
_WIDGETS_CI = """\
triggers: {push: [main], pull_request: true}
checks:
  - {name: lint, seconds: 1}
  - name: test
    seconds: 3
    sends: true
    reports:
      tests:
        - {name: test_upload, classname: tests.test_uploads, file: tests/test_uploads.py}
        - name: test_total
          classname: tests.test_cart
          file: tests/test_cart.py
          rules:
            - branch: "headgate/merge/**"
              contains: {path: widgets/cart.py, text: "+ 0.01"}
              conclusion: failure
        - name: test_sunshine
          classname: tests.test_picnics
          file: tests/test_picnics.py
          rules:
            - {exists: [widgets/picnics.py], flake: 0.3, conclusion: failure}
"""
_WEBSITE_CI = """\
triggers: {push: [main], pull_request: true}
checks:
  - {name: build, seconds: 2}
"""

_UPLOADS = 'def upload(path):\n    return post("/upload", path)\n'
_TOTAL = "def total(prices):\n    return round(sum(prices), 2)\n"
_RETRY = (
    "def upload(path, tries=3):\n"
    '    return post("/upload", path) or (upload(path, tries - 1) if tries else None)\n'
)

_REPOSITORIES: tuple[Json, ...] = (
    {
        "full_name": WIDGETS,
        "files": {
            "README.md": "# Widgets\n",
            "widgets/uploads.py": _UPLOADS,
            "widgets/cart.py": _TOTAL,
            ".sandbox/ci.yml": _WIDGETS_CI,
        },
        "required_checks": ["lint", "test"],
    },
    {
        "full_name": WEBSITE,
        "files": {"README.md": "# Website\n", ".sandbox/ci.yml": _WEBSITE_CI},
        "required_checks": ["build"],
    },
)

_PULLS: tuple[Json, ...] = (
    {
        "repo": WIDGETS,
        "as": "alice",
        "head": "retry-uploads",
        "title": "Retry uploads",
        "body": "Good: it can be merged.",
        "files": {"widgets/uploads.py": _RETRY},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "wish-list",
        "title": "Keep a wish list",
        "body": "Good, too: merge it together with the first one.",
        "files": {"widgets/wishes.py": "WISHES = []\n"},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "round-up",
        "title": "Round totals up",
        "body": "It breaks `test_total`, which only runs on test branches.",
        "files": {"widgets/cart.py": _TOTAL.rstrip() + " + 0.01\n"},
    },
    {
        "repo": WIDGETS,
        "as": "alice",
        "head": "picnics",
        "title": "List picnics",
        "body": "Its test `test_sunshine` is flaky: it fails in three of ten runs.",
        "files": {"widgets/picnics.py": "PICNICS = []\n"},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "rename-route",
        "title": "Rename the upload route",
        "body": "It conflicts with the first one.",
        "files": {"widgets/uploads.py": _UPLOADS.replace("/upload", "/files")},
    },
    {
        "repo": WEBSITE,
        "as": "carol",
        "fork": True,
        "head": "prices",
        "title": "Show prices",
        "body": "From a fork: somebody with write access submits it.",
        "files": {"prices.html": "<h1>Prices</h1>\n"},
    },
)

_NEWER: Json = {"as": "alice", "branch": "main", "message": "Begin a change log", "bypass": True}


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


async def fill(world: World) -> None:
    """Make the repositories with their pull requests, none of which is up to date."""
    await seed(world, {"repositories": list(_REPOSITORIES)})
    for pull in _PULLS:
        await actions_by_people.act(world, {"act": "open", **pull})
    for repository in _REPOSITORIES:
        files = {"CHANGELOG.md": "Nothing yet.\n"}
        pushed = {"act": "push", "repo": repository["full_name"], "files": files, **_NEWER}
        await actions_by_people.act(world, pushed)
