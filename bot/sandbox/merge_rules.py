"""The rules that refuse to merge a pull request, and the merge state that follows.

Decides and changes nothing. Rules: the provider's "Available rules for rulesets" and "About
protected branches"; sentences: refusal.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.sandbox import rules, standing
from bot.sandbox.records import Account, Actor, Classic, Json, Kind, Review
from bot.sandbox.refusal import say
from bot.sandbox.rules import Broken
from bot.sandbox.world import PullRequest, Repository

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


def _by_classic(classic: Classic | None) -> list[Reviewing]:
    if classic is None or classic.approvals is None:
        return []
    return [Reviewing(classic.approvals, classic.code_owners, classic.last_push_approval, False)]


def opinions(pull: PullRequest, *, of_writers: bool = True) -> list[Review]:
    """The newest review of each person or App, `of_writers`: of those with write access."""
    newest = {review.author.id: review for review in pull.reviews}
    role_of = pull.repository.role_of
    return [one for one in newest.values() if not of_writers or role_of(one.author) in WRITERS]


def review_decision(pull: PullRequest) -> str | None:
    """APPROVED, CHANGES_REQUESTED, REVIEW_REQUIRED, or None without a rule about reviews."""
    repository = pull.repository
    required = [
        _by_rule(rule)
        for _, rule in rules.rules_of(repository, pull.base_ref)
        if rule["type"] == "pull_request"
    ]
    required += _by_classic(repository.protected.get(pull.base_ref))
    if not required:
        return None
    if any(one.state == "CHANGES_REQUESTED" for one in opinions(pull)):
        return "CHANGES_REQUESTED"
    if any(_review_missing(pull, one) for one in required):
        return "REVIEW_REQUIRED"
    needs_any = any(one.approvals or one.code_owners or one.last_push for one in required)
    return "APPROVED" if needs_any else None


def _review_missing(pull: PullRequest, required: Reviewing) -> list[str]:
    newest = opinions(pull)
    against = sum(one.state == "CHANGES_REQUESTED" for one in newest)
    if against:
        form = "review.changes_requested" if against == 1 else "review.changes_requested/many"
        return [say(form, against)]
    approved = [one for one in newest if one.state == "APPROVED"]
    if required.code_owners:
        owners = _owners_missing(pull, [one.author for one in approved])
        if owners:
            return [say("review.code_owner", owners)]
    if len(approved) < required.approvals:
        form = "review.approvals" if required.approvals == 1 else "review.approvals/many"
        return [say(form, required.approvals)]
    return _last_push_missing(pull, approved) if required.last_push else []


def _last_push_missing(pull: PullRequest, approved: list[Review]) -> list[str]:
    fresh = [one for one in approved if one.commit == pull.head_sha]
    if any(one.author is not pull.pusher for one in fresh):
        return []
    if pull.pusher is None or pull.pusher.kind is Kind.BOT:
        return [say("review.last_pusher_unknown")]
    return [say("review.last_push")]


def _owners_missing(pull: PullRequest, approvers: list[Account]) -> str:
    """The owners of changed files that no owner approved, as the sentence names them; or ""."""
    lines = _owner_lines(pull)
    logins = {one.login.lower() for one in approvers}
    missing: dict[str, None] = {}
    for path in _changed_paths(pull):
        owners = next((owners for pattern, owners in lines if _owns(pattern, path)), ())
        names = [owner.removeprefix("@") for owner in owners]
        if names and not logins & {name.lower() for name in names}:
            missing.update(dict.fromkeys(names))
    names = list(missing)
    if len(names) > 2:
        return f"{', '.join(names[:-1])}, and/or {names[-1]}"
    return " and/or ".join(names)


def _owner_lines(pull: PullRequest) -> list[tuple[str, list[str]]]:
    """Patterns with their owners, the last line first: it wins."""
    for path in CODE_OWNERS:
        body = pull.repository.git.objects.file_at(pull.base_tip, path) if pull.base_tip else None
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


def _changed_paths(pull: PullRequest) -> list[str]:
    """The paths that a pull request adds, changes or removes, sorted."""
    objects = pull.repository.git.objects
    start = objects.merge_base(pull.base_tip or pull.base_sha, pull.head_sha)
    return sorted(path for path, _, _ in objects.changed(start, pull.head_sha))


def broken_by_merge(pull: PullRequest, actor: Actor | None, method: str | None) -> Broken:
    """The rules that merging a pull request now would break.

    `actor` None: an actor without any bypass; `method` None: any method.
    """
    repository = pull.repository
    sentences: list[str] = []
    for ruleset, rule in rules.rules_of(repository, pull.base_ref):
        if actor is None or not rules.bypasses(repository, ruleset, actor, is_merge=True):
            sentences += _broken_by_rule(pull, rule, method)
    tip = pull.base_tip
    is_behind = tip is not None and not repository.git.objects.is_ancestor(tip, pull.head_sha)
    is_behind = is_behind and rules.is_strict(repository, pull.base_ref)
    return Broken(tuple(sentences), tuple(_broken_classic(pull, actor, method)), is_behind)


def _broken_classic(pull: PullRequest, actor: Actor | None, method: str | None) -> Iterator[str]:
    repository = pull.repository
    classic = repository.protected.get(pull.base_ref)
    if classic is None:
        return
    if actor is not None and rules.is_classic_bypassed(repository, classic, actor):
        return
    if actor is not None and not rules.may_push(classic, actor):
        yield say("rule.not_authorized", rules.PAGE)
    is_let_through = actor is not None and rules.is_let_through(classic, actor)
    for required in () if is_let_through else _by_classic(classic):
        yield from _review_missing(pull, required)
    if classic.conversations and _is_discussed(pull):
        yield say("review.conversation")
    if classic.queue and not is_let_through:
        yield say("rule.through_queue")
    if classic.linear:
        yield from _merge_commits(method)
    if classic.signatures:
        yield from _unsigned(pull, method)
    yield from _deployments_missing(pull, classic.deployments or [])
    yield from rules.missing_checks(repository, pull.head_sha, rules.classic_required(classic))


def _broken_by_rule(pull: PullRequest, rule: Json, method: str | None) -> list[str]:
    parameters = rule.get("parameters", {})
    match rule["type"]:
        case "pull_request":
            required = _by_rule(rule)
            sentences = _review_missing(pull, required)
            if required.resolved and _is_discussed(pull):
                sentences.append(say("review.conversation"))
            return sentences
        case "required_status_checks":
            listed = rules.required_by(rule)
            return rules.missing_checks(pull.repository, pull.head_sha, listed)
        case "required_linear_history":
            return _merge_commits(method)
        case "required_signatures":
            return _unsigned(pull, method)
        case "merge_queue":
            return [say("rule.through_queue")]
        case "update":
            return [say("rule.update")]
        case "required_deployments":
            named = parameters.get("required_deployment_environments", [])
            return _deployments_missing(pull, named)
        case "code_scanning" if pull.head_sha not in pull.repository.scanned:
            tools = parameters.get("code_scanning_tools", [])
            return [say("rule.code_scanning", one["tool"], pull.head_sha[:7]) for one in tools]
        case _:
            return []


def _merge_commits(method: str | None) -> list[str]:
    return [say("method.linear")] if method == "merge" else []


def _unsigned(pull: PullRequest, method: str | None) -> list[str]:
    objects = pull.repository.git.objects
    arriving = objects.log(pull.head_sha, without=pull.base_tip)
    is_signed = method == "squash" or all(commit.sha in objects.signed for commit in arriving)
    return [] if is_signed else [say("rule.signatures")]


def _deployments_missing(pull: PullRequest, named: list[str]) -> list[str]:
    missing = [one for one in named if (pull.head_sha, one) not in pull.repository.deployed]
    if len(missing) < 2:
        return [say("rule.deployment", name) for name in missing]
    return [say("rule.deployment/many", ", ".join(missing[:-1]), missing[-1])]


def _is_discussed(pull: PullRequest) -> bool:
    """Return whether a conversation on the code is open."""
    return any(not thread.is_resolved for thread in pull.threads)


def has_queue(repository: Repository, branch: str) -> bool:
    """Return whether a branch has GitHub's own merge queue, by a rule or by classic protection."""
    classic = repository.protected.get(branch)
    return bool(classic and classic.queue) or any(
        rule["type"] == "merge_queue" for _, rule in rules.rules_of(repository, branch)
    )


def merge_state(pull: PullRequest) -> str:
    """GitHub's mergeStateStatus: what the merge button would answer to anybody.

    DIRTY comes before BLOCKED, and BLOCKED before BEHIND. Neither a merge queue that contains the
    pull request nor a native stack shows in it.
    """
    if not pull.open or pull.mergeable is None:
        return "UNKNOWN"
    return _state_of_merge(pull)


def last_merge_state(pull: PullRequest) -> str:
    """The merge state as REST and events show it, which GitHub may keep once it is closed."""
    is_kept = pull.repository.world.face.shows_mergeable and not pull.merged
    if is_kept and pull.mergeable is not None:
        return _state_of_merge(pull)
    return merge_state(pull)


def _state_of_merge(pull: PullRequest) -> str:
    """The merge state of a pull request whose mergeability is known."""
    if not pull.mergeable:
        return "DIRTY"
    if pull.draft and not pull.repository.world.face.has_no_draft_state:
        return "DRAFT"
    broken = broken_by_merge(pull, None, None)
    if broken.rulesets or broken.classic:
        return "BLOCKED"
    if broken.is_behind:
        return "BEHIND"
    repository, sha = pull.repository, pull.head_sha
    states = [standing.of_run(run) for run in standing.latest(repository.check_runs(sha))]
    states += [standing.of_status(one) for one in standing.latest_statuses(repository, sha)]
    return "UNSTABLE" if any(state != "ok" for state in states) else "CLEAN"
