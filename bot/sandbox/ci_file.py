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
Condition = Literal["", "always()"]
Texts = tuple[str, ...]


class Part(BaseModel):
    """A part of the file; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Contains(Part):
    """A text that a file must contain."""

    path: str
    text: str


class Rule(Part):
    """One line of `rules`: its conclusion where all of its conditions hold.

    `needs_failed`: a job that this one needs has not succeeded. `attempt`: in this attempt of the
    run alone.
    """

    exists: Texts = ()
    contains: Contains | None = None
    flake: float | None = None
    branch: str | None = None
    needs_failed: bool = False
    attempt: int | None = None
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


class StepPlan(Part):
    """One step of a job; it fails where its rules say so.

    After a failed step only steps with `if: always()` run. With `continue-on-error` its failure
    shows as a success and fails nothing.
    """

    name: str = Field(min_length=1)
    seconds: float = 1.0
    rules: tuple[Rule, ...] = ()
    condition: Condition = Field(default="", alias="if")
    may_fail: bool = Field(default=False, alias="continue-on-error")


class CheckPlan(Part):
    """One check of the file; `seconds` in world time, `timeout_s` in real time.

    `junit` is a file that the command `run` writes; it becomes the artifact `junit-<name>`. With
    `paths` the check is skipped where no changed file matches, with `skips_drafts` on the events
    of draft pull requests, as jobs with an `if` are. With `sends` its job may ask for OIDC tokens,
    and sends its report to Headgate itself; what is not accepted becomes an artifact.

    With `steps` its job takes their seconds one after the other, and fails if one of them does.
    `needs` names other checks of the file, `test` also `test (3.12)`: its job begins when theirs
    have ended, and is skipped if one has not succeeded, unless it has `if: always()`. With
    `continue-on-error` its own failure counts for none that needs it, nor for the run. With
    `fail-fast` its failure cancels the other jobs of its matrix: `test (3.13)` of `test (3.12)`.
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
    steps: tuple[StepPlan, ...] = ()
    needs: Texts = ()
    condition: Condition = Field(default="", alias="if")
    may_fail: bool = Field(default=False, alias="continue-on-error")
    fails_fast: bool = Field(default=False, alias="fail-fast")

    @model_validator(mode="after")
    def _fits(self) -> "CheckPlan":
        of_job = {"run", "reports", "runner", "failed_steps", "steps", "needs"}
        if self.kind == "status" and of_job & self.model_fields_set:
            raise ValueError(f"{self.name}: only a check has a job, with a command and reports")
        if self.steps and self.run is not None:
            raise ValueError(f"{self.name}: a job has steps or a command")
        if self.junit is not None and self.run is None:
            raise ValueError(f"{self.name}: junit is written by a command")
        if self.needs and self.kind == "status":
            raise ValueError(f"{self.name}: only a check has a job, which may need others")
        if self.fails_fast and matrix_of(self.name) is None:
            raise ValueError(f"{self.name}: only a job of a matrix fails fast, as test (1)")
        inner = [rule for step in self.steps for rule in step.rules]
        if self.reports is not None:
            inner += [rule for test in self.reports.tests for rule in test.rules]
        if any(rule.needs_failed for rule in inner):
            raise ValueError(f"{self.name}: only a rule of a job itself has needs_failed")
        return self


class Triggers(Part):
    """The branches whose pushes start CI, and whether pull requests do."""

    push: Texts = ()
    pull_request: bool = False


class Plan(Part):
    """The whole file; with `error` it could not be read and nothing of it runs.

    With `paths` nothing starts, and so nothing reports, where no changed file matches. `delays`:
    seconds between an event and the start, by event. `workflow` is the path that its runs show,
    as of the workflow file that says the same.
    """

    triggers: Triggers = Triggers()
    paths: Texts = ()
    delays: dict[str, float] = {}
    checks: tuple[CheckPlan, ...] = ()
    workflow: str = PATH
    error: str | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _is_ordered(self) -> "Plan":
        for place, one in enumerate(self.checks):
            before = [other.name for other in self.checks[:place]]
            if not all(any(is_meant(name, other) for other in before) for name in one.needs):
                raise ValueError(f"{one.name}: list the checks that it needs before it")
        return self

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


def is_meant(name: str, check: str) -> bool:
    """Return whether `needs` means a check by a name: one of a matrix has its values behind it."""
    return check == name or check.startswith(f"{name} (")


def matrix_of(check: str) -> str | None:
    """The name of the matrix of a job, which stands before its values; None: it has none."""
    name, values, _ = check.partition(" (")
    return name if values else None


def touches(paths: Texts, changed: Iterable[str]) -> bool:
    """Return whether a path filter matches one of these changes."""
    return any(rules.matches(one, path, "") for one in paths for path in changed)


def of_attempt(rules_of_it: tuple[Rule, ...], attempt: int) -> tuple[Rule, ...]:
    """Return the rules that hold in this attempt of the run."""
    return tuple(rule for rule in rules_of_it if rule.attempt in (None, attempt))


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
