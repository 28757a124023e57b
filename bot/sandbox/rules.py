"""The rules of a repository's branches: rulesets and classic protection together.

Decides and changes nothing. Rules: the provider's "Available rules for rulesets" and "About
protected branches".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandbox import standing
from bot.sandbox.git import ZERO, Commit
from bot.sandbox.records import Actor, Classic, Json, Ruleset
from bot.sandbox.refusal import RULE_PREFIX, Refusal, refused, say
from bot.sandbox.world import Repository

METHODS = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
ROLE_IDS = {2: "maintain", 4: "write", 5: "admin"}
PAGE = "https://docs.github.com/articles/about-protected-branches/"


@dataclass(frozen=True, slots=True)
class Required:
    """One required status: its name, and the App it must come from."""

    name: str
    app_id: int | None


@dataclass(frozen=True, slots=True)
class Update:
    """One branch about to move; ZERO for absent."""

    branch: str
    before: str
    after: str
    is_forced: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """The sentences of the rules that refuse; `is_behind`: strict checks refuse as well."""

    rulesets: tuple[str, ...]
    classic: tuple[str, ...]
    is_behind: bool = False

    def __bool__(self) -> bool:
        return bool(self.rulesets or self.classic or self.is_behind)

    def refusal(self, status: int) -> Refusal:
        """GitHub's answer: every ruleset's sentence, else every classic one.

        Which of both kinds GitHub shows first when both refuse is not known.
        """
        if self.rulesets:
            said = "\n\n".join(dict.fromkeys(self.rulesets))
            return RuleRefusal(status, f"{RULE_PREFIX}{said}\n\n", self)
        if self.classic:
            return RuleRefusal(status, " ".join(self.classic), self)
        return refused("merge.head_out_of_date")


class RuleRefusal(Refusal):
    """A refusal by rules. A push is answered in another form than a call."""

    def __init__(self, status: int, message: str, broken: Broken) -> None:
        super().__init__(status, message)
        self.broken = broken


def matches(pattern: str, ref: str, default_branch: str) -> bool:
    """Return whether a ref-name condition of a ruleset applies to this ref."""
    if pattern == "~ALL":
        return True
    if pattern == "~DEFAULT_BRANCH":
        return ref == f"refs/heads/{default_branch}"
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    words = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(words.get(one, re.escape(one)) for one in parts), ref) is not None


def applying(repository: Repository, branch: str) -> list[Ruleset]:
    """The active rulesets for a branch, which need not exist."""
    ref, default = f"refs/heads/{branch}", repository.default_branch
    return [
        one
        for one in repository.rulesets
        if one.enforcement == "active"
        and any(matches(pattern, ref, default) for pattern in one.include)
        and not any(matches(pattern, ref, default) for pattern in one.exclude)
    ]


def rules_of(repository: Repository, branch: str) -> Iterator[tuple[Ruleset, Json]]:
    """Every rule for a branch, with the ruleset it comes from."""
    for ruleset in applying(repository, branch):
        for rule in ruleset.rules:
            yield ruleset, rule


def required(repository: Repository, branch: str) -> list[Required]:
    """The required statuses of a branch from both sources, each (name, App) once."""
    required: dict[Required, None] = {}
    for _, rule in rules_of(repository, branch):
        if rule["type"] == "required_status_checks":
            required.update(dict.fromkeys(required_by(rule)))
    classic = repository.protected.get(branch)
    if classic is not None:
        required.update(dict.fromkeys(classic_required(classic)))
    return list(required)


def classic_required(classic: Classic) -> list[Required]:
    """The required statuses of classic protection; an App of -1 means any."""
    return [Required(name, None if app == -1 else app) for name, app in classic.checks or ()]


def required_by(rule: Json) -> list[Required]:
    """The required statuses of one rule."""
    listed = rule.get("parameters", {}).get("required_status_checks", [])
    return [Required(one["context"], one.get("integration_id")) for one in listed]


def is_strict(repository: Repository, branch: str) -> bool:
    """Return whether a pull request must contain its base's tip; only with a required check."""
    classic = repository.protected.get(branch)
    return bool(classic and classic.strict and classic.checks) or any(
        rule.get("parameters", {}).get("strict_required_status_checks_policy", False)
        and bool(required_by(rule))
        for _, rule in rules_of(repository, branch)
    )


def bypasses(repository: Repository, ruleset: Ruleset, actor: Actor, *, is_merge: bool) -> bool:
    """Return whether an actor may bypass a ruleset."""
    role = repository.role_of(actor.account) if actor.app is None else None
    for one in ruleset.bypass_actors:
        if one.get("bypass_mode", "always") == "pull_request" and not is_merge:
            continue
        kind, number = one["actor_type"], one.get("actor_id")
        if kind == "Integration" and actor.app is not None and actor.app.id == number:
            return True
        if kind == "RepositoryRole" and role is not None and ROLE_IDS.get(number or 0) == role:
            return True
        if kind == "OrganizationAdmin" and role == "admin":
            return True
    return False


def is_classic_bypassed(repository: Repository, classic: Classic, actor: Actor) -> bool:
    """Return whether an actor may bypass classic protection: admins, unless it binds them too."""
    return (
        actor.app is None
        and not classic.enforce_admins
        and repository.role_of(actor.account) == "admin"
    )


def may_push(classic: Classic, actor: Actor) -> bool:
    """Return whether push restrictions let an actor through."""
    name = actor.app.slug if actor.app is not None else actor.account.login
    return classic.pushers is None or name in classic.pushers


def is_let_through(classic: Classic, actor: Actor) -> bool:
    """Return whether an actor is an App that may bypass the rules about pull requests."""
    return actor.app is not None and actor.app.slug in classic.bypass_apps


def broken_by_update(repository: Repository, actor: Actor, update: Update) -> Broken:
    """The rules that a direct move of a branch would break."""
    sentences: list[str] = []
    for ruleset, rule in rules_of(repository, update.branch):
        if not bypasses(repository, ruleset, actor, is_merge=False):
            sentences += _broken_rule(repository, rule, update)
    classic = repository.protected.get(update.branch)
    if classic is None or is_classic_bypassed(repository, classic, actor):
        return Broken(tuple(sentences), ())
    return Broken(tuple(sentences), tuple(_broken_classic(repository, classic, actor, update)))


def _broken_rule(repository: Repository, rule: Json, update: Update) -> list[str]:
    is_creation, is_deletion = update.before == ZERO, update.after == ZERO
    kind = rule["type"]
    if is_deletion:
        return [say("ref.delete_rule")] if kind == "deletion" else []
    is_update = not is_creation
    parameters = rule.get("parameters", {})
    names = {
        "creation": is_creation and "ref.create_rule",
        "update": is_update and "rule.update",
        "non_fast_forward": update.is_forced and "ref.force",
        "pull_request": is_update and "rule.through_pull",
        "merge_queue": is_update and "rule.through_queue",
        "required_linear_history": _has_merges(repository, update) and "method.linear",
        "required_signatures": _has_unsigned(repository, update) and "rule.signatures",
    }
    name = names.get(kind, False)
    if name:
        return [say(name)]
    waived = is_creation and parameters.get("do_not_enforce_on_create", False)
    if kind == "required_status_checks" and not waived:
        return missing_checks(repository, update.after, required_by(rule))
    return []


def _broken_classic(
    repository: Repository, classic: Classic, actor: Actor, update: Update
) -> Iterator[str]:
    if update.after == ZERO:
        if not classic.deletions:
            yield say("ref.delete_classic")
        return
    if update.is_forced and not classic.force_pushes:
        yield say("ref.force")
    if not may_push(classic, actor):
        yield say("rule.not_authorized", PAGE)
    if classic.approvals is not None and not is_let_through(classic, actor):
        yield say("rule.through_pull")
    if classic.queue:
        yield say("rule.through_queue")
    if classic.linear and _has_merges(repository, update):
        yield say("method.linear")
    if classic.signatures and _has_unsigned(repository, update):
        yield say("rule.signatures")
    yield from missing_checks(repository, update.after, classic_required(classic))


def _has_merges(repository: Repository, update: Update) -> bool:
    return any(len(commit.parents) > 1 for commit in arriving(repository, update))


def _has_unsigned(repository: Repository, update: Update) -> bool:
    objects = repository.git.objects
    return any(commit.sha not in objects.signed for commit in arriving(repository, update))


def arriving(repository: Repository, update: Update) -> list[Commit]:
    """Return the commits that an update adds; for a new branch, beyond the default branch."""
    default = repository.git.branch(repository.default_branch)
    without = default if update.before == ZERO else update.before
    return repository.git.objects.log(update.after, without=without)


def missing_checks(repository: Repository, sha: str, listed: list[Required]) -> list[str]:
    """One sentence about required statuses that have not passed on a commit, or none.

    The name is given only where one status is required. Of several, the running ones are counted
    among those that have not succeeded and left out of the list.
    """
    states = [(one.name, standing.of_name(repository, sha, one.name, one.app_id)) for one in listed]
    missing = [(name, state) for name, state in states if state != "ok"]
    if not missing:
        return []
    if len(listed) == 1:
        name, state = missing[0]
        return [say(f"checks.{state}", name)]
    words = {state for _, state in missing}
    if words == {"in_progress"}:
        return [say("checks.all_in_progress", len(missing), len(listed))]
    if len(words) == 1 and len(missing) == len(listed) and words <= {"expected", "pending"}:
        return [say(f"checks.all_{words.pop()}", len(listed), len(listed))]
    return [_mixed(len(missing), len(listed), [state for _, state in missing])]


def _mixed(missing: int, of: int, states: list[str]) -> str:
    """The sentence for a mixture; a third kind of state is left out of it."""
    named = ["expected" if state == "wrong_source" else state for state in states]
    counts = [
        (named.count(word), word) for word in ("expected", "failing", "pending") if word in named
    ]
    if len(counts) == 1:
        return say("checks.mixed/one", missing, of, *counts[0])
    return say("checks.mixed", missing, of, *counts[0], *counts[1])


def merge_methods(repository: Repository, branch: str) -> set[str]:
    """The methods that both the repository and its rules allow."""
    chosen = repository.settings
    listed = {"merge": chosen.merge_commit, "squash": chosen.squash, "rebase": chosen.rebase}
    allowed = {name for name, is_on in listed.items() if is_on}
    for _, rule in rules_of(repository, branch):
        named = rule.get("parameters", {}).get("allowed_merge_methods")
        if rule["type"] == "pull_request" and named is not None:
            allowed &= set(named)
    return allowed
