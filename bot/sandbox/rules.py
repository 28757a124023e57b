"""What a repository demands of its branches: rulesets and classic protection together.

Decides and changes nothing. The sentences are the provider's; where one is not published the
nearest known one stands. Rules: the provider's "Available rules for rulesets" and "About
protected branches".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandbox import standing
from bot.sandbox.git import ZERO, Commit
from bot.sandbox.records import Actor, Classic, Issue, Json, Pull, Repository, Ruleset
from bot.sandbox.refusal import Refusal

METHODS = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
ROLE_IDS = {2: "maintain", 4: "write", 5: "admin"}
NOT_AUTHORIZED = (
    "You're not authorized to push to this branch. Visit "
    "https://docs.github.com/articles/about-protected-branches/ for more information."
)
THROUGH_PULL = "Changes must be made through a pull request."
THROUGH_QUEUE = "Changes must be made through the merge queue."
NO_MERGES = "This branch must not contain merge commits."
SIGNED_ONLY = "Commits must have verified signatures."
RESOLVE = "All comments must be resolved."


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
    """The sentences of the rules that stand in the way."""

    rulesets: tuple[str, ...]
    classic: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.rulesets or self.classic)

    def refusal(self, status: int, branch: str, *, is_merge: bool) -> Refusal:
        """The provider's answer that says so."""
        if self.rulesets:
            said = "\n\n".join(self.rulesets)
            return Refusal(status, f"Repository rule violations found\n\n{said}\n\n")
        if is_merge:
            return Refusal(status, self.classic[0])
        first = f"Protected branch update failed for refs/heads/{branch}."
        return Refusal(status, f"{first}\n\n{self.classic[0]}")


def matches(pattern: str, ref: str, default_branch: str) -> bool:
    """Whether a ref-name condition of a ruleset means this ref."""
    if pattern == "~ALL":
        return True
    if pattern == "~DEFAULT_BRANCH":
        return ref == f"refs/heads/{default_branch}"
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    words = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(words.get(one, re.escape(one)) for one in parts), ref) is not None


def applying(repository: Repository, branch: str) -> list[Ruleset]:
    """The active rulesets that mean a branch, which need not exist."""
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
    found: dict[Required, None] = {}
    for _, rule in rules_of(repository, branch):
        if rule["type"] == "required_status_checks":
            found.update(dict.fromkeys(_required_by(rule)))
    classic = repository.protected.get(branch)
    for name, app in (classic.checks if classic else None) or ():
        found[Required(name, None if app == -1 else app)] = None
    return list(found)


def _required_by(rule: Json) -> list[Required]:
    listed = rule.get("parameters", {}).get("required_status_checks", [])
    return [Required(one["context"], one.get("integration_id")) for one in listed]


def is_strict(repository: Repository, branch: str) -> bool:
    """Whether a pull request must contain the tip of its base."""
    classic = repository.protected.get(branch)
    return bool(classic and classic.strict) or any(
        rule.get("parameters", {}).get("strict_required_status_checks_policy", False)
        for _, rule in rules_of(repository, branch)
    )


def bypasses(repository: Repository, ruleset: Ruleset, actor: Actor, *, is_merge: bool) -> bool:
    """Whether an actor may pass a ruleset by."""
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


def _classic_bypassed(repository: Repository, classic: Classic, actor: Actor) -> bool:
    return (
        actor.app is None
        and not classic.enforce_admins
        and repository.role_of(actor.account) == "admin"
    )


def _may_push(classic: Classic, actor: Actor) -> bool:
    name = actor.app.slug if actor.app is not None else actor.account.login
    return classic.pushers is None or name in classic.pushers


def broken_by_update(repository: Repository, actor: Actor, update: Update) -> Broken:
    """The rules that a direct move of a branch would break."""
    found: list[str] = []
    for ruleset, rule in rules_of(repository, update.branch):
        if not bypasses(repository, ruleset, actor, is_merge=False):
            found += _broken_rule(repository, rule, update)
    classic = repository.protected.get(update.branch)
    if classic is None or _classic_bypassed(repository, classic, actor):
        return Broken(tuple(found), ())
    return Broken(tuple(found), tuple(_broken_classic(repository, classic, actor, update)))


def _broken_rule(repository: Repository, rule: Json, update: Update) -> list[str]:
    is_creation, is_deletion = update.before == ZERO, update.after == ZERO
    kind = rule["type"]
    if is_deletion:
        return ["Cannot delete this branch"] if kind == "deletion" else []
    is_update = not is_creation
    parameters = rule.get("parameters", {})
    said = {
        "creation": is_creation and "Cannot create ref due to creations being restricted.",
        "update": is_update and "Cannot update this protected ref.",
        "non_fast_forward": update.is_forced and "Cannot force-push to this branch",
        "pull_request": is_update and THROUGH_PULL,
        "merge_queue": is_update and THROUGH_QUEUE,
        "required_linear_history": _has_merges(repository, update) and NO_MERGES,
        "required_signatures": _has_unsigned(repository, update) and SIGNED_ONLY,
    }.get(kind, False)
    if said:
        return [said]
    waived = is_creation and parameters.get("do_not_enforce_on_create", False)
    if kind == "required_status_checks" and not waived:
        return missing_checks(repository, update.after, _required_by(rule))
    return []


def _broken_classic(
    repository: Repository, classic: Classic, actor: Actor, update: Update
) -> Iterator[str]:
    if update.after == ZERO:
        if not classic.deletions:
            yield "Cannot delete a protected branch"
        return
    if update.is_forced and not classic.force_pushes:
        yield "Cannot force-push to a protected branch"
    if not _may_push(classic, actor):
        yield NOT_AUTHORIZED
    is_let_through = actor.app is not None and actor.app.slug in classic.bypass_apps
    if classic.approvals is not None and not is_let_through:
        yield THROUGH_PULL
    if classic.linear and _has_merges(repository, update):
        yield NO_MERGES
    if classic.signatures and _has_unsigned(repository, update):
        yield SIGNED_ONLY
    listed = [Required(name, None if app == -1 else app) for name, app in classic.checks or ()]
    yield from missing_checks(repository, update.after, listed)


def _has_merges(repository: Repository, update: Update) -> bool:
    return any(len(commit.parents) > 1 for commit in _arriving(repository, update))


def _has_unsigned(repository: Repository, update: Update) -> bool:
    objects = repository.git.objects
    return any(commit.sha not in objects.signed for commit in _arriving(repository, update))


def _arriving(repository: Repository, update: Update) -> list[Commit]:
    without = None if update.before == ZERO else update.before
    if without is None:
        without = repository.git.branch(repository.default_branch)
    return repository.git.objects.log(update.after, without=without)


def missing_checks(repository: Repository, sha: str, listed: list[Required]) -> list[str]:
    """One sentence about required statuses that have not passed on a commit, or none."""
    states = [(one.name, standing.of_name(repository, sha, one.name, one.app_id)) for one in listed]
    lacking = [(name, state) for name, state in states if state != "ok"]
    if not lacking:
        return []
    if len(lacking) == 1:
        name, state = lacking[0]
        return [f'Required status check "{name}" is {state}.']
    words = {state for _, state in lacking}
    if words == {"expected"}:
        return [f"{len(lacking)} of {len(listed)} required status checks are expected."]
    counts = ((sum(s == word for _, s in lacking), word) for word in sorted(words))
    parts = " and ".join(f"{count} {word}" for count, word in counts)
    said = f"{len(lacking)} of {len(listed)} required status checks have not succeeded: {parts}."
    return [said]


def approvals_needed(repository: Repository, branch: str) -> int:
    """How many approvals a pull request into a branch needs."""
    classic = repository.protected.get(branch)
    counts = [classic.approvals or 0] if classic is not None else []
    for _, rule in rules_of(repository, branch):
        if rule["type"] == "pull_request":
            counts.append(rule.get("parameters", {}).get("required_approving_review_count", 0))
    return max(counts, default=0)


def review_decision(repository: Repository, pull: Pull) -> str | None:
    """APPROVED, CHANGES_REQUESTED, REVIEW_REQUIRED, or None when no review is needed."""
    needed = approvals_needed(repository, pull.base_ref)
    if needed == 0:
        return None
    last: dict[int, str] = {}
    for review in pull.reviews:
        can_write = repository.role_of(review.author) in ("write", "maintain", "admin")
        if can_write and review.state != "COMMENTED":
            last[review.author.id] = review.state
    if "CHANGES_REQUESTED" in last.values():
        return "CHANGES_REQUESTED"
    given = sum(state == "APPROVED" for state in last.values())
    return "APPROVED" if given >= needed else "REVIEW_REQUIRED"


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


def broken_by_merge(repository: Repository, pull: Pull, actor: Actor, method: str) -> Broken:
    """The rules that merging a pull request now would break."""
    found: list[str] = []
    for ruleset, rule in rules_of(repository, pull.base_ref):
        if not bypasses(repository, ruleset, actor, is_merge=True):
            found += _broken_by_pull(repository, pull, rule, method)
    classic = repository.protected.get(pull.base_ref)
    if classic is None or _classic_bypassed(repository, classic, actor):
        return Broken(tuple(found), ())
    said = [] if _may_push(classic, actor) else [NOT_AUTHORIZED]
    said += _review_missing(repository, pull) if classic.approvals else []
    if classic.conversations and _is_discussed(pull):
        said.append(RESOLVE)
    if classic.linear and method == "merge":
        said.append(NO_MERGES)
    listed = [Required(name, None if app == -1 else app) for name, app in classic.checks or ()]
    said += missing_checks(repository, pull.head_sha, listed)
    if classic.strict and is_behind(repository, pull):
        said.append("The head branch is not up to date with the base branch.")
    return Broken(tuple(found), tuple(said))


def _broken_by_pull(repository: Repository, pull: Pull, rule: Json, method: str) -> list[str]:
    parameters = rule.get("parameters", {})
    match rule["type"]:
        case "pull_request":
            said = _review_missing(repository, pull)
            if parameters.get("required_review_thread_resolution") and _is_discussed(pull):
                said.append(RESOLVE)
            return said
        case "required_status_checks":
            said = missing_checks(repository, pull.head_sha, _required_by(rule))
            strict = parameters.get("strict_required_status_checks_policy")
            if strict and is_behind(repository, pull):
                said.append("The head branch is not up to date with the base branch.")
            return said
        case "required_linear_history" if method == "merge":
            return [NO_MERGES]
        case "required_signatures" if method == "rebase":
            return [SIGNED_ONLY]
        case "merge_queue":
            return [THROUGH_QUEUE]
        case "update":
            return ["Cannot update this protected ref."]
        case _:
            return []


def _review_missing(repository: Repository, pull: Pull) -> list[str]:
    if review_decision(repository, pull) in (None, "APPROVED"):
        return []
    needed = approvals_needed(repository, pull.base_ref)
    plural = "approving review is" if needed == 1 else "approving reviews are"
    return [f"At least {needed} {plural} required by reviewers with write access."]


def _is_discussed(pull: Pull) -> bool:
    return any(not thread.is_resolved for thread in pull.threads)


def is_behind(repository: Repository, pull: Pull) -> bool:
    """Whether the head lacks the tip of its base."""
    tip = repository.git.branch(pull.base_ref)
    return tip is not None and not repository.git.objects.is_ancestor(tip, pull.head_sha)


def merge_state(repository: Repository, issue: Issue, pull: Pull) -> str:
    """The provider's mergeStateStatus: what the merge button would say to anybody."""
    if not issue.open or pull.mergeable is None:
        return "UNKNOWN"
    if not pull.mergeable:
        return "DIRTY"
    if pull.draft:
        return "DRAFT"
    anybody = Actor(issue.author)
    broken = broken_by_merge(repository, pull, anybody, "squash")
    if is_strict(repository, pull.base_ref) and is_behind(repository, pull):
        return "BEHIND"
    if broken:
        return "BLOCKED"
    states = [standing.of_run(run) for run in standing.latest(repository.check_runs(pull.head_sha))]
    states += [
        standing.of_status(one) for one in standing.latest_statuses(repository, pull.head_sha)
    ]
    return "UNSTABLE" if any(state != "ok" for state in states) else "CLEAN"
