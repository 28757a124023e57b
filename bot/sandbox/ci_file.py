"""`.sandbox/ci.yml`: its grammar as models, and the conclusion of a check of it for a tree.

Pure but for reading the tree.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bot.sandbox import rules
from bot.sandbox.git import Objects

PATH = ".sandbox/ci.yml"
Conclusion = Literal[
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
]
Texts = tuple[str, ...]


class Part(BaseModel):
    """A part of the file; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Contains(Part):
    """A text that a file must contain."""

    path: str
    text: str


class Rule(Part):
    """One line of `rules`: its conclusion where all of its conditions hold."""

    exists: Texts = ()
    contains: Contains | None = None
    flake: float | None = None
    branch: str | None = None
    conclusion: Conclusion


class CasePlan(Part):
    """One test of a made-up report; it fails where its rules say so."""

    name: str
    classname: str | None = None
    file: str = ""
    rules: tuple[Rule, ...] = ()


class ReportPlan(Part):
    """The artifact of a check: files of its commit, and a made-up report."""

    artifact: str | None = None
    files: Texts = ()
    tests: tuple[CasePlan, ...] = ()


class CheckPlan(Part):
    """One check of the file; `seconds` in world time, `timeout_s` in real time.

    `junit` is a file that the command `run` writes; it becomes the artifact `junit-<name>`. With
    `paths` the check is skipped where no changed file matches, with `skips_drafts` on the events
    of draft pull requests, as jobs with an `if` are. With `sends` its job may ask for OIDC tokens,
    and sends its report to Headgate itself; what is not accepted becomes an artifact.
    """

    name: str = Field(min_length=1)
    kind: Literal["check", "status"] = "check"
    app: str = "sandbox-ci"
    seconds: float = 1.0
    rules: tuple[Rule, ...] = ()
    run: str | None = None
    timeout_s: float = 60.0
    junit: str | None = None
    reports: ReportPlan | None = None
    runner: str = "sandbox"
    failed_steps: int = 1
    paths: Texts = ()
    skips_drafts: bool = False
    sends: bool = False

    @model_validator(mode="after")
    def _fits(self) -> "CheckPlan":
        if self.kind == "status" and {"run", "reports", "runner", "failed_steps"} & (
            self.model_fields_set
        ):
            raise ValueError(f"{self.name}: only a check has a job, with a command and reports")
        if self.junit is not None and self.run is None:
            raise ValueError(f"{self.name}: junit is written by a command")
        return self


class Triggers(Part):
    """The branches whose pushes start CI, and whether pull requests do."""

    push: Texts = ()
    pull_request: bool = False


class Plan(Part):
    """The whole file; with `error` it could not be read and nothing of it runs.

    With `paths` nothing starts, and so nothing reports, where no changed file matches. `delays`:
    seconds between an event and the start, by event.
    """

    triggers: Triggers = Triggers()
    paths: Texts = ()
    delays: dict[str, float] = {}
    checks: tuple[CheckPlan, ...] = ()
    error: str | None = Field(default=None, exclude=True)

    def runs_on_push(self, branch: str) -> bool:
        """Return whether a push to a branch starts it."""
        return any(rules.matches(pattern, branch, "") for pattern in self.triggers.push)


def read(objects: Objects, commit: str) -> Plan | None:
    """The plan of a commit's tree; None without the file.

    A broken file runs on every trigger and reports its `error`.
    """
    body = objects.file_at(commit, PATH)
    return None if body is None else parse(body)


@cache
def parse(body: bytes) -> Plan:
    """The plan of a file's bytes."""
    try:
        return Plan.model_validate(yaml.safe_load(body))
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        return Plan(triggers=Triggers(push=("**",), pull_request=True), error=str(error))


def touches(paths: Texts, changed: Iterable[str]) -> bool:
    """Return whether a path filter matches one of these changes."""
    return any(rules.matches(one, path, "") for one in paths for path in changed)


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
        body = objects.file_at(commit, rule.contains.path) or b""
        if rule.contains.text.encode() not in body:
            return False
    if rule.branch is not None and not rules.matches(rule.branch, branch, ""):
        return False
    if rule.flake is None:
        return True
    digest = hashlib.sha256(draw.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < rule.flake
