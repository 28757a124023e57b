"""The rules that apply when a pull request is merged, and the merge state that follows.

Decides and changes nothing. Rules: the provider's "Available rules for rulesets" and "About
protected branches"; sentences: refusal.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandbox import rules, standing
from bot.sandbox.records import Account, Actor, Issue, Json, Kind, Pull, Review
from bot.sandbox.refusal import say
from bot.sandbox.rules import Broken
from bot.sandbox.world import Repository

WRITERS = ("write", "maintain", "admin")
CODE_OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")


@dataclass(frozen=True, slots=True)
class Reviewing:
    """The review requirements of one source."""

    approvals: int
    code_owners: bool
    last_push: bool
    resolved: bool


def _by_rule(rule: Json) -> Reviewing:
    parameters = rule.get("parameters", {})
    return Reviewing(
        parameters.get("required_approving_review_count", 0),
        parameters.get("require_code_owner_review", False),
        parameters.get("require_last_push_approval", False),
        parameters.get("required_review_thread_resolution", False),
    )


def _reviewing(repository: Repository, branch: str) -> list[Reviewing]:
    """Return the review requirements of every source; empty when there are none."""
    found = [
        _by_rule(rule)
        for _, rule in rules.rules_of(repository, branch)
        if rule["type"] == "pull_request"
    ]
    classic = repository.protected.get(branch)
    if classic is not None and classic.approvals is not None:
        found.append(
            Reviewing(classic.approvals, classic.code_owners, classic.last_push_approval, False)
        )
    return found


def _opinions(repository: Repository, pull: Pull) -> list[Review]:
    """The newest review of each person or App with write access, comments left out."""
    last: dict[int, Review] = {}
    for review in pull.reviews:
        if repository.role_of(review.author) in WRITERS and review.state != "COMMENTED":
            last[review.author.id] = review
    return list(last.values())


def review_decision(repository: Repository, pull: Pull) -> str | None:
    """APPROVED, CHANGES_REQUESTED, REVIEW_REQUIRED, or None when no rule speaks of reviews."""
    asked = _reviewing(repository, pull.base_ref)
    if not asked:
        return None
    if any(one.state == "CHANGES_REQUESTED" for one in _opinions(repository, pull)):
        return "CHANGES_REQUESTED"
    if any(_review_missing(repository, pull, one) for one in asked):
        return "REVIEW_REQUIRED"
    is_asked = any(one.approvals or one.code_owners or one.last_push for one in asked)
    return "APPROVED" if is_asked else None


def _review_missing(repository: Repository, pull: Pull, asked: Reviewing) -> list[str]:
    opinions = _opinions(repository, pull)
    against = sum(one.state == "CHANGES_REQUESTED" for one in opinions)
    if against:
        form = "review.changes_requested" if against == 1 else "review.changes_requested/many"
        return [say(form, against)]
    approved = [one for one in opinions if one.state == "APPROVED"]
    if asked.code_owners:
        owners = _owners_missing(repository, pull, [one.author for one in approved])
        if owners:
            return [say("review.code_owner", owners)]
    if len(approved) < asked.approvals:
        form = "review.approvals" if asked.approvals == 1 else "review.approvals/many"
        return [say(form, asked.approvals)]
    if asked.last_push:
        return _last_push_missing(pull, approved)
    return []


def _last_push_missing(pull: Pull, approved: list[Review]) -> list[str]:
    fresh = [one for one in approved if one.commit == pull.head_sha]
    if any(one.author is not pull.pusher for one in fresh):
        return []
    if pull.pusher is None or pull.pusher.kind is Kind.BOT:
        return [say("review.last_pusher_unknown")]
    return [say("review.last_push")]


def _owners_missing(repository: Repository, pull: Pull, approvers: list[Account]) -> str:
    """The owners of changed files of whom none approved, as the sentence names them; or ""."""
    lines = _owner_lines(repository, pull.base_ref)
    logins = {one.login.lower() for one in approvers}
    missing: dict[str, None] = {}
    for path in changed_paths(repository, pull):
        owners = next((owners for pattern, owners in lines if _owns(pattern, path)), ())
        names = [_named(repository, owner) for owner in owners]
        if names and not any(logins & members for _, members in names):
            missing.update((name, None) for name, _ in names)
    listed = list(missing)
    if len(listed) > 2:
        return f"{', '.join(listed[:-1])}, and/or {listed[-1]}"
    return " and/or ".join(listed)


def _named(repository: Repository, owner: str) -> tuple[str, set[str]]:
    """An owner without `@`, and the logins it stands for."""
    name = owner.removeprefix("@")
    organization, slash, team = name.partition("/")
    if not slash:
        return name, {name.lower()}
    is_own = organization.lower() == repository.owner.login.lower()
    return name, repository.owner.teams.get(team, set()) if is_own else set()


def _owner_lines(repository: Repository, branch: str) -> list[tuple[str, list[str]]]:
    """Patterns with their owners, the last line first: it wins."""
    tip = repository.git.branch(branch)
    for path in CODE_OWNERS:
        body = repository.git.objects.file_at(tip, path) if tip is not None else None
        if body is not None:
            words = [line.partition("#")[0].split() for line in body.decode().splitlines()]
            return [(line[0], line[1:]) for line in reversed(words) if line]
    return []


def _owns(pattern: str, path: str) -> bool:
    if pattern == "*":
        return True
    anchored = pattern.removeprefix("/")
    if anchored.endswith("/"):
        return path.startswith(anchored)
    if "/" not in pattern:
        return rules.matches(pattern, path.rpartition("/")[2], "")
    return rules.matches(anchored, path, "") or path.startswith(f"{anchored}/")


def changed_paths(repository: Repository, pull: Pull) -> list[str]:
    """The paths that a pull request adds, changes or removes, sorted."""
    objects = repository.git.objects
    tip = repository.git.branch(pull.base_ref) or pull.base_sha
    start = objects.merge_base(tip, pull.head_sha)
    return sorted(path for path, _, _ in objects.changed(start, pull.head_sha))


def broken_by_merge(
    repository: Repository, pull: Pull, actor: Actor | None, method: str | None
) -> Broken:
    """The rules that merging a pull request now would break.

    `actor` None: nobody who may pass a rule by; `method` None: whichever would do.
    """
    found: list[str] = []
    for ruleset, rule in rules.rules_of(repository, pull.base_ref):
        if actor is None or not rules.bypasses(repository, ruleset, actor, is_merge=True):
            found += _broken_by_rule(repository, pull, rule, method)
    is_behind = rules.is_strict(repository, pull.base_ref) and _is_behind(repository, pull)
    return Broken(tuple(found), tuple(_broken_classic(repository, pull, actor, method)), is_behind)


def _broken_classic(
    repository: Repository, pull: Pull, actor: Actor | None, method: str | None
) -> Iterator[str]:
    classic = repository.protected.get(pull.base_ref)
    if classic is None:
        return
    if actor is not None and rules.is_classic_bypassed(repository, classic, actor):
        return
    if actor is not None and not rules.may_push(classic, actor):
        yield say("rule.not_authorized", rules.PAGE)
    app = actor.app.slug if actor is not None and actor.app is not None else None
    is_let_through = app is not None and app in classic.bypass_apps
    if classic.approvals is not None and not is_let_through:
        asked = Reviewing(classic.approvals, classic.code_owners, classic.last_push_approval, False)
        yield from _review_missing(repository, pull, asked)
    if classic.conversations and is_discussed(pull):
        yield say("review.conversation")
    if classic.queue and not is_let_through:
        yield say("rule.through_queue")
    yield from _lacks(repository, pull, method, classic.linear, classic.signatures)
    yield from _deployments_missing(repository, pull, classic.deployments or [])
    yield from rules.missing_checks(repository, pull.head_sha, rules.classic_required(classic))


def _lacks(
    repository: Repository, pull: Pull, method: str | None, linear: bool, signed: bool
) -> Iterator[str]:
    if linear and method == "merge":
        yield say("method.linear")
    objects = repository.git.objects
    tip = repository.git.branch(pull.base_ref)
    if signed and method != "squash":
        arriving = objects.log(pull.head_sha, without=tip)
        if any(commit.sha not in objects.signed for commit in arriving):
            yield say("rule.signatures")


def _broken_by_rule(
    repository: Repository, pull: Pull, rule: Json, method: str | None
) -> list[str]:
    parameters = rule.get("parameters", {})
    match rule["type"]:
        case "pull_request":
            asked = _by_rule(rule)
            said = _review_missing(repository, pull, asked)
            if asked.resolved and is_discussed(pull):
                said.append(say("review.conversation"))
            return said
        case "required_status_checks":
            listed = rules.required_by(rule)
            return rules.missing_checks(repository, pull.head_sha, listed)
        case "required_linear_history":
            return list(_lacks(repository, pull, method, True, False))
        case "required_signatures":
            return list(_lacks(repository, pull, method, False, True))
        case "merge_queue":
            return [say("rule.through_queue")]
        case "update":
            return [say("rule.update")]
        case "required_deployments":
            named = parameters.get("required_deployment_environments", [])
            return list(_deployments_missing(repository, pull, named))
        case "code_scanning" if pull.head_sha not in repository.scanned:
            tools = parameters.get("code_scanning_tools", [])
            return [say("rule.code_scanning", one["tool"], pull.head_sha[:7]) for one in tools]
        case _:
            return []


def _deployments_missing(repository: Repository, pull: Pull, named: list[str]) -> Iterator[str]:
    missing = [one for one in named if (pull.head_sha, one) not in repository.deployed]
    if len(missing) == 1:
        yield say("rule.deployment", missing[0])
    elif missing:
        yield say("rule.deployment/many", ", ".join(missing[:-1]), missing[-1])


def is_discussed(pull: Pull) -> bool:
    """Return whether a conversation on the code is open."""
    return any(not thread.is_resolved for thread in pull.threads)


def has_queue(repository: Repository, branch: str) -> bool:
    """Whether the provider's own merge queue owns a branch, by a rule or by classic protection."""
    classic = repository.protected.get(branch)
    return bool(classic and classic.queue) or any(
        rule["type"] == "merge_queue" for _, rule in rules.rules_of(repository, branch)
    )


def _is_behind(repository: Repository, pull: Pull) -> bool:
    tip = repository.git.branch(pull.base_ref)
    return tip is not None and not repository.git.objects.is_ancestor(tip, pull.head_sha)


def merge_state(repository: Repository, issue: Issue, pull: Pull) -> str:
    """The provider's mergeStateStatus: what the merge button would say to anybody.

    DIRTY comes before BLOCKED, and BLOCKED before BEHIND. Neither a merge queue that holds the
    pull request nor a native stack shows in it.
    """
    if not issue.open or pull.mergeable is None:
        return "UNKNOWN"
    if not pull.mergeable:
        return "DIRTY"
    if pull.draft:
        return "DRAFT"
    broken = broken_by_merge(repository, pull, None, None)
    if broken.blocks:
        return "BLOCKED"
    if broken.is_behind:
        return "BEHIND"
    states = [standing.of_run(run) for run in standing.latest(repository.check_runs(pull.head_sha))]
    states += [
        standing.of_status(one) for one in standing.latest_statuses(repository, pull.head_sha)
    ]
    return "UNSTABLE" if any(state != "ok" for state in states) else "CLEAN"
