"""`.sandbox/ci.yml`: its grammar, and what a check of it comes to for a tree.

Pure but for reading the tree. The fields are those of `CheckPlan` and `Rule`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from bot.sandbox import rules
from bot.sandbox.git import Objects

PATH = ".sandbox/ci.yml"
RULE_CONCLUSIONS = frozenset(
    {
        "success",
        "failure",
        "neutral",
        "cancelled",
        "skipped",
        "timed_out",
        "action_required",
        "stale",
        "error",
        "startup_failure",
        "never",
        "hang",
    }
)
CHECK_KEYS = frozenset(
    {
        "name",
        "kind",
        "app",
        "seconds",
        "rules",
        "run",
        "timeout_s",
        "junit",
        "reports",
        "runner",
        "failed_steps",
        "paths",
        "skips_drafts",
    }
)
REPORT_KEYS = frozenset({"artifact", "files", "tests"})
TEST_KEYS = frozenset({"name", "classname", "file", "rules"})
RULE_KEYS = frozenset({"exists", "contains", "flake", "branch", "conclusion"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of `rules`; all of its conditions must hold."""

    exists: tuple[str, ...]
    contains: tuple[str, str] | None
    flake: float | None
    branch: str | None
    conclusion: str


@dataclass(frozen=True, slots=True)
class TestPlan:
    """One test of a made-up report; it fails where its rules say so."""

    name: str
    classname: str
    file: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class ReportPlan:
    """The artifact of a check: files of its commit, and a made-up report."""

    artifact: str
    files: tuple[str, ...]
    tests: tuple[TestPlan, ...]


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """One check of the file; `seconds` in world time, `timeout_s` in real time.

    `junit` is a file that the command writes; it becomes the artifact `junit-<name>`. With
    `paths` the check is skipped where no changed file matches, with `skips_drafts` on the events
    of draft pull requests, as jobs with an `if` are.
    """

    name: str
    kind: str
    app: str
    seconds: float
    rules: tuple[Rule, ...]
    command: str | None
    timeout_s: float
    junit: str | None
    reports: ReportPlan | None
    runner: str
    failed_steps: int
    paths: tuple[str, ...]
    skips_drafts: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole file; with `error` it could not be read and nothing of it runs.

    With `paths` nothing starts, and so nothing reports, where no changed file matches. `delays`:
    seconds between an event and the start, by event.
    """

    push: tuple[str, ...] = ()
    on_pull_request: bool = False
    paths: tuple[str, ...] = ()
    delays: Mapping[str, float] = field(default_factory=dict)
    checks: list[CheckPlan] = field(default_factory=list)
    error: str | None = None

    def runs_on_push(self, branch: str) -> bool:
        """Return whether a push to a branch starts it."""
        return any(rules.matches(pattern, branch, "") for pattern in self.push)


class Unreadable(Exception):
    """The file breaks its grammar; the message says where."""


def read(objects: Objects, commit: str) -> Plan | None:
    """The plan of a commit's tree; None without the file.

    A broken file runs on every trigger and says so by its `error`.
    """
    item = objects.item_at(commit, PATH)
    body = objects.blob(item.sha) if item is not None else None
    return parse(body) if body is not None else None


@cache
def parse(body: bytes) -> Plan:
    """The plan of a file's bytes."""
    try:
        return _plan(yaml.safe_load(body))
    except (yaml.YAMLError, Unreadable, UnicodeDecodeError, TypeError, ValueError) as found:
        return Plan(push=("**",), on_pull_request=True, error=str(found))


def _plan(value: Any) -> Plan:
    known = _keys(value, {"triggers", "checks", "paths", "delays"}, "the file")
    triggers = _keys(known.get("triggers", {}), {"push", "pull_request"}, "triggers")
    push = triggers.get("push", ())
    checks = [_check(one) for one in known.get("checks", ())]
    delays = _keys(known.get("delays", {}), {"push", "pull_request"}, "delays")
    return Plan(
        tuple(str(one) for one in push),
        bool(triggers.get("pull_request")),
        tuple(str(one) for one in known.get("paths", ())),
        {str(event): float(seconds) for event, seconds in delays.items()},
        checks,
    )


def _check(value: Any) -> CheckPlan:
    known = _keys(value, CHECK_KEYS, "a check")
    name, kind = known.get("name"), known.get("kind", "check")
    if not isinstance(name, str) or not name:
        raise Unreadable("a check needs a name")
    if kind not in ("check", "status"):
        raise Unreadable(f"{name}: kind is check or status, not {kind!r}")
    if kind == "status" and {"run", "reports", "runner", "failed_steps"} & set(known):
        raise Unreadable(f"{name}: only a check has a job, with a command and reports")
    if "junit" in known and "run" not in known:
        raise Unreadable(f"{name}: junit is written by a command")
    return CheckPlan(
        name,
        kind,
        str(known.get("app", "sandbox-ci")),
        float(known.get("seconds", 1)),
        tuple(_rule(one, name) for one in known.get("rules", ())),
        str(known["run"]) if "run" in known else None,
        float(known.get("timeout_s", 60)),
        str(known["junit"]) if "junit" in known else None,
        _reports(known["reports"], name) if "reports" in known else None,
        str(known.get("runner", "sandbox")),
        int(known.get("failed_steps", 1)),
        tuple(str(one) for one in known.get("paths", ())),
        bool(known.get("skips_drafts", False)),
    )


def _reports(value: Any, check: str) -> ReportPlan:
    known = _keys(value, REPORT_KEYS, f"reports of {check}")
    return ReportPlan(
        str(known.get("artifact", f"junit-{check}")),
        tuple(str(one) for one in known.get("files", ())),
        tuple(_test(one, check) for one in known.get("tests", ())),
    )


def _test(value: Any, check: str) -> TestPlan:
    known = _keys(value, TEST_KEYS, f"a test of {check}")
    if not isinstance(known.get("name"), str):
        raise Unreadable(f"{check}: a test needs a name")
    return TestPlan(
        known["name"],
        str(known.get("classname", check)),
        str(known.get("file", "")),
        tuple(_rule(one, f"{check}/{known['name']}") for one in known.get("rules", ())),
    )


def _rule(value: Any, check: str) -> Rule:
    known = _keys(value, RULE_KEYS, f"a rule of {check}")
    conclusion = known.get("conclusion")
    if conclusion not in RULE_CONCLUSIONS:
        raise Unreadable(f"{check}: no conclusion is called {conclusion!r}")
    contains = known.get("contains")
    found = _keys(contains, {"path", "text"}, "contains") if contains is not None else None
    return Rule(
        tuple(str(one) for one in known.get("exists", ())),
        (str(found["path"]), str(found["text"])) if found is not None else None,
        float(known["flake"]) if "flake" in known else None,
        str(known["branch"]) if "branch" in known else None,
        conclusion,
    )


def _keys(value: Any, allowed: set[str] | frozenset[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Unreadable(f"{where} is not a mapping")
    unknown = {str(key) for key in value} - allowed
    if unknown:
        raise Unreadable(f"{where} knows no {', '.join(sorted(unknown))}")
    return value


def touches(paths: tuple[str, ...], changed: Iterable[str]) -> bool:
    """Return whether a path filter lets these changes through; an empty one lets all."""
    return not paths or any(rules.matches(one, path, "") for one in paths for path in changed)


def conclusion_of(
    objects: Objects, rules_of_it: tuple[Rule, ...], commit: str, branch: str, draw: str
) -> str:
    """Return the conclusion of a check or test: of the first rule that holds, else success.

    `draw` names the chance of a `flake`: equal draws give equal results.
    """
    for rule in rules_of_it:
        if _holds(objects, rule, commit, branch, draw):
            return rule.conclusion
    return "success"


def _holds(objects: Objects, rule: Rule, commit: str, branch: str, draw: str) -> bool:
    if any(objects.item_at(commit, path) is None for path in rule.exists):
        return False
    if rule.contains is not None:
        body = objects.file_at(commit, rule.contains[0]) or b""
        if rule.contains[1].encode() not in body:
            return False
    if rule.branch is not None and not rules.matches(rule.branch, branch, ""):
        return False
    if rule.flake is None:
        return True
    digest = hashlib.sha256(draw.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < rule.flake
