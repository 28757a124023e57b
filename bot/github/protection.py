"""Requirements of a branch: rulesets and classic protection together.

Unreadable rules never count as "no requirements".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cachetools import LRUCache

from bot.github import graphql, refs
from bot.github.client import RepositoryClient
from bot.github.reading import METHOD_WORDS, Fields
from bot.github.wire import Answer
from service.clock import Clock
from service.provider.errors import (
    Gone,
    GoneKind,
    NotPermitted,
    Refused,
    RefusedCode,
    Throttled,
    Unavailable,
)
from service.provider.values import (
    Known,
    Required,
    Unreadable,
)
from service.vocabulary import MergeMethod, RepoRef, RequiredName

KEPT_S = 300.0
BRANCHES_MAX = 2_000
LONG_AGO_S = -math.inf  # when something was read that must be read again
SELF_REQUIRED = "self_required"
NOT_IN_PLAN = "upgrade to github"  # a private repository of a plan without protection
NOT_PROTECTED = "branch not protected"

# Rules whose state cannot be read from the pull request: a refusal may come from them.
UNSEEN = frozenset(
    {
        "workflows",
        "required_deployments",
        "code_scanning",
        "code_quality",
        "commit_message_pattern",
        "commit_author_email_pattern",
        "committer_email_pattern",
    }
)
# Rules that change no decision of ours but that people should know of.
NOTED = UNSEEN | {"required_linear_history", "required_signatures"}
STRICT = "strict"
# Rules of a ruleset that also covers our test branches under which none can be built.
AGAINST_BUILDING = frozenset(
    {
        "creation",
        "update",
        "non_fast_forward",
        "pull_request",
        "required_linear_history",
        "required_signatures",
        "required_status_checks",
        "merge_queue",
        "workflows",
        "code_scanning",
        "branch_name_pattern",
        "commit_message_pattern",
        "commit_author_email_pattern",
        "committer_email_pattern",
    }
)
# Rules of a ruleset for branches that outlive a pull request.
PROTECTING = frozenset(
    {"deletion", "update", "pull_request", "required_status_checks", "merge_queue"}
)

# Values of `current_user_can_bypass` with which our merge calls bypass the ruleset.
_BYPASSES = frozenset({"always", "pull_requests_only", "exempt"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a branch, with the parameters we read; `ruleset` is the id of its ruleset."""

    type: str
    checks: tuple[RequiredName, ...]
    methods: frozenset[MergeMethod] | None
    needs_resolved_threads: bool
    needs_code_owners: bool = False
    needs_last_push: bool = False
    needs_approvals: bool = False
    dismisses_stale: bool = False
    is_strict: bool = False
    ruleset: str | None = None


@dataclass(frozen=True, slots=True)
class _Classic:
    """Classic protection of a branch; `pushers` are Apps by slug, None: everyone may push."""

    checks: tuple[RequiredName, ...] = ()
    is_strict: bool = False
    needs_resolved_threads: bool = False
    needs_code_owners: bool = False
    needs_last_push: bool = False
    needs_approvals: bool = False
    dismisses_stale: bool = False
    needs_signatures: bool = False
    is_linear: bool = False
    is_locked: bool = False
    pushers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BranchRules:
    """Everything read about one branch, as it binds a merge call of ours.

    Rulesets that our App may bypass are left out, but for `known.checks`: those a test run must
    pass all the same. `checks` are the names that GitHub wants on the pull request's own head.
    `is_closed`: nobody but others may update the branch. `unseen` are rules whose state cannot
    be read. `has_queue`: GitHub's own merge queue owns the branch. `dismisses_approvals`: a pull
    request needs approvals, and a push to it or another base dismisses those that it has.
    """

    known: Known
    needs_resolved_threads: bool
    has_queue: bool
    checks: tuple[RequiredName, ...] = ()
    is_strict: bool = False
    needs_code_owners: bool = False
    needs_last_push: bool = False
    needs_signatures: bool = False
    is_closed: bool = False
    unseen: tuple[str, ...] = ()
    dismisses_approvals: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Everything that was read: all rules, those that bind us, classic protection."""

    rules: tuple[Rule, ...]
    binding: tuple[Rule, ...]
    classic: _Classic
    has_queue: bool
    is_shut_out: bool


class Protection:
    """Rules of branches, kept five minutes and revalidated by their ETags."""

    def __init__(self, clock: Clock, app_id: str) -> None:
        self._clock = clock
        self._app_id = app_id
        self._kept: LRUCache[tuple[str, str], tuple[float, BranchRules]] = LRUCache(BRANCHES_MAX)
        self._queues: LRUCache[tuple[str, str], tuple[float, bool]] = LRUCache(BRANCHES_MAX)
        self._unprotected: LRUCache[tuple[str, str], float] = LRUCache(BRANCHES_MAX)
        self._changes: LRUCache[str, int] = LRUCache(BRANCHES_MAX)

    async def required(
        self, client: RepositoryClient, branch: str, *, is_beside: bool = False
    ) -> Required:
        """Required statuses of a branch. Raises Refused(PROVIDER_QUEUE), Gone(REPOSITORY)."""
        try:
            rules = await self.rules(client, branch)
        except (Unavailable, NotPermitted) as failure:
            return Unreadable(failure.message)
        except Gone as gone:
            if gone.kind is GoneKind.BRANCH:
                return Unreadable(gone.message)
            raise
        if rules.has_queue and not is_beside:
            raise Refused(f"{branch} uses GitHub's own merge queue.", RefusedCode.PROVIDER_QUEUE)
        return rules.known

    async def rules(self, client: RepositoryClient, branch: str) -> BranchRules:
        """The same with what else is read there. Raises what a read raises."""
        kept, changes = self.kept(client.repo, branch), self._changes_of(client.repo)
        if kept is None:
            kept = self._branch_rules(await self._read(client, branch), branch)
            if changes == self._changes_of(client.repo):
                self._kept[_key(client.repo), branch] = (self._clock.monotonic_s(), kept)
        return kept

    def _changes_of(self, repo: RepoRef) -> int:
        """Return how often rules were forgotten; what was read before that is not kept."""
        return self._changes.get(_key(repo), 0)

    async def fresh_rules(self, client: RepositoryClient, branch: str) -> BranchRules:
        """Read the rules of a branch now, after GitHub refused something there."""
        self.forget(client.repo)
        return await self.rules(client, branch)

    def kept(self, repo: RepoRef, branch: str) -> BranchRules | None:
        """The rules as last read, None when that is too long ago."""
        read_s, rules = self._kept.get((_key(repo), branch), (0.0, None))
        return rules if self._clock.monotonic_s() - read_s <= KEPT_S else None

    def forget(self, repo: RepoRef, *, only_free: bool = False) -> None:
        """Read a repository's rules afresh the next time, those that are being read too.

        `only_free`: keep for five minutes what GitHub does not confirm by a free 304: that there is
        no classic protection, and whether a classic merge queue owns the branch.
        """
        self._changes[_key(repo)] = self._changes_of(repo) + 1
        for key in [key for key in self._kept if key[0] == _key(repo)]:
            del self._kept[key]
        if only_free:
            return
        for key in [key for key in self._unprotected if key[0] == _key(repo)]:
            del self._unprotected[key]
        for key in [key for key in self._queues if key[0] == _key(repo)]:
            # What was known is still the answer while GitHub cannot be asked.
            self._queues[key] = (LONG_AGO_S, self._queues[key][1])

    async def read_whole(self, client: RepositoryClient, branch: str) -> tuple[Read, BranchRules]:
        """Read all rules of a branch now, also those that our App may bypass."""
        self.forget(client.repo)
        read = await self._read(client, branch)
        return read, self._branch_rules(read, branch)

    async def _read(self, client: RepositoryClient, branch: str) -> Read:
        rules = await _rulesets(client, branch)
        passed = await _bypassed(client, rules)
        classic = await self._classic(client, branch)
        return Read(
            rules=rules,
            binding=tuple(rule for rule in rules if rule.ruleset not in passed),
            classic=classic,
            has_queue=await self._has_queue(client, branch, rules),
            is_shut_out=await _is_shut_out(client, classic),
        )

    def _branch_rules(self, read: Read, branch: str) -> BranchRules:
        classic, binding = read.classic, read.binding
        required = _names(read.rules, classic)
        kept = tuple(check for check in required if not self._is_own(check, branch))
        own_required = kept != required
        bound = _names(binding, classic)
        types = {rule.type for rule in binding}
        is_strict = classic.is_strict or any(rule.is_strict and rule.checks for rule in binding)
        signed = classic.needs_signatures or "required_signatures" in types
        notes = [rule.type for rule in binding if rule.type in NOTED]
        notes += ["required_linear_history"] * classic.is_linear
        notes += ["required_signatures"] * classic.needs_signatures
        notes += [SELF_REQUIRED] * own_required + [STRICT] * is_strict
        return BranchRules(
            known=Known(kept, _methods(read, signed), tuple(dict.fromkeys(notes)), own_required),
            checks=tuple(check for check in bound if not self._is_own(check, branch)),
            needs_resolved_threads=classic.needs_resolved_threads
            or any(rule.needs_resolved_threads for rule in binding),
            needs_code_owners=classic.needs_code_owners
            or any(rule.needs_code_owners for rule in binding),
            needs_last_push=classic.needs_last_push
            or any(rule.needs_last_push for rule in binding),
            needs_signatures=signed,
            is_strict=is_strict,
            is_closed=read.is_shut_out or "update" in types,
            unseen=tuple(rule.type for rule in binding if rule.type in UNSEEN),
            has_queue=read.has_queue or "merge_queue" in types,
            dismisses_approvals=_dismisses_approvals(read),
        )

    async def _has_queue(
        self, client: RepositoryClient, branch: str, rules: Iterable[Rule]
    ) -> bool:
        """Return whether a classic merge queue owns the branch: only GraphQL shows it.

        Where that cannot be read, what was known last; a host without the field has no queue.
        """
        if any(rule.type == "merge_queue" for rule in rules):
            return False  # the rule itself says whether it binds us
        key, now_s = (_key(client.repo), branch), self._clock.monotonic_s()
        changes = self._changes_of(client.repo)
        read_s, known = self._queues.get(key, (LONG_AGO_S, False))
        if now_s - read_s < KEPT_S:
            return known
        try:
            known = await graphql.has_merge_queue(client, branch)
        except Throttled:
            raise
        except (Unavailable, NotPermitted):
            pass
        if changes == self._changes_of(client.repo):
            self._queues[key] = (now_s, known)
        return known

    async def _classic(self, client: RepositoryClient, branch: str) -> _Classic:
        key, now_s = (_key(client.repo), branch), self._clock.monotonic_s()
        if now_s - self._unprotected.get(key, LONG_AGO_S) < KEPT_S:
            return _Classic()
        changes = self._changes_of(client.repo)
        classic = await _classic(client, branch)
        if classic == _Classic() and changes == self._changes_of(client.repo):
            self._unprotected[key] = now_s
        return classic

    def _is_own(self, check: RequiredName, branch: str) -> bool:
        return check.name == own_check(branch) and check.source_id in (None, self._app_id)


def _dismisses_approvals(read: Read) -> bool:
    """Return whether all rules together do so: what our App may bypass dismisses them as well."""
    are_needed = read.classic.needs_approvals or any(rule.needs_approvals for rule in read.rules)
    are_dismissed = read.classic.dismisses_stale or any(rule.dismisses_stale for rule in read.rules)
    return are_needed and are_dismissed


def own_check(branch: str) -> str:
    """The name of the check run that we publish for a queue."""
    return f"Headgate ({branch})"


async def forbids_building(client: RepositoryClient, branch: str) -> bool:
    """Return whether rulesets cover a test branch of ours, existent or not, with such a rule."""
    try:
        rules = await binding_rules(client, branch)
    except (NotPermitted, Gone):
        return False
    return any(rule.type in AGAINST_BUILDING for rule in rules)


async def binding_rules(client: RepositoryClient, branch: str) -> tuple[Rule, ...]:
    """Return the ruleset rules of a branch, which need not exist, that our App may not bypass."""
    rules = await _rulesets(client, branch)
    passed = await _bypassed(client, rules)
    return tuple(rule for rule in rules if rule.ruleset not in passed)


async def is_protected(client: RepositoryClient, branch: str) -> bool:
    """Return whether classic protection or a rule of a ruleset keeps an existing branch."""
    if any(rule.type in PROTECTING for rule in await _rulesets(client, branch)):
        return True
    tail = f"/branches/{refs.branch_path(branch)}"
    answer = await client.get(f"{tail}/protection", expects=(403, 404))
    if answer.status == 200:
        return True
    words = answer.message.lower()
    if NOT_IN_PLAN in words or NOT_PROTECTED in words:
        return False
    return (await client.get(tail)).fields.flag("protected", default=True)


async def requires_signatures(client: RepositoryClient, branch: str) -> bool:
    """Return whether a ruleset wants signed commits on a branch, which need not exist."""
    return any(rule.type == "required_signatures" for rule in await _rulesets(client, branch))


async def _rulesets(client: RepositoryClient, branch: str) -> tuple[Rule, ...]:
    try:
        listed, complete = await client.listed(
            f"/rules/branches/{refs.branch_path(branch)}", is_kept=True
        )
    except NotPermitted as denied:
        if NOT_IN_PLAN in denied.message.lower():
            return ()
        raise
    if not complete:
        raise Unavailable("GitHub lists more rules than we read.", client.clock.now())
    return tuple(_rule_of(each) for each in listed)


async def _bypassed(client: RepositoryClient, rules: Iterable[Rule]) -> frozenset[str]:
    """Ids of rulesets that our App may bypass; where GitHub does not say so, it may not."""
    found = set()
    for number in sorted({rule.ruleset for rule in rules if rule.ruleset is not None}):
        answer = await client.get(f"/rulesets/{number}", expects=(403, 404), is_kept=True)
        if answer.status == 200 and _can_bypass(answer.fields):
            found.add(number)
    return frozenset(found)


async def _classic(client: RepositoryClient, branch: str) -> _Classic:
    tail = f"/branches/{refs.branch_path(branch)}/protection"
    answer = await client.get(tail, expects=(403, 404), is_kept=True)
    words = answer.message.lower()
    if answer.status == 200:
        return _protection_of(answer.fields)
    if NOT_IN_PLAN in words or (answer.status == 404 and NOT_PROTECTED in words):
        return _Classic()
    return await _required_checks(client, branch)


async def _required_checks(client: RepositoryClient, branch: str) -> _Classic:
    """At least the required checks, where the whole protection cannot be read."""
    tail = f"/branches/{refs.branch_path(branch)}/protection/required_status_checks"
    answer = await client.get(tail, expects=(403, 404), is_kept=True)
    if answer.status == 404 or NOT_IN_PLAN in answer.message.lower():
        return _Classic()
    if answer.status == 403:
        return _Classic(checks=await _classic_from_branch(client, branch, answer))
    checks = _classic_checks_of(answer.fields)
    return _Classic(checks=checks, is_strict=bool(checks) and answer.fields.flag("strict"))


async def _classic_from_branch(
    client: RepositoryClient, branch: str, denied: Answer
) -> tuple[RequiredName, ...]:
    """The branch itself shows its required checks to some who may not read its protection."""
    answer = await client.get(f"/branches/{refs.branch_path(branch)}", expects=(404,), is_kept=True)
    if answer.status == 200:
        found = _branch_checks_of(answer.fields)
        if found is not None:
            return found
    raise NotPermitted(
        denied.message or "The branch protection cannot be read.", "administration: read"
    )


async def _is_shut_out(client: RepositoryClient, classic: _Classic) -> bool:
    """Return whether classic protection lets only others push and merge, or nobody."""
    if classic.pushers is None:
        return classic.is_locked
    return classic.is_locked or await client.github.slug() not in classic.pushers


def _names(rules: Iterable[Rule], classic: _Classic) -> tuple[RequiredName, ...]:
    pinned = [check for rule in rules for check in rule.checks]
    return tuple(dict.fromkeys([*pinned, *classic.checks]))


def _methods(read: Read, needs_signatures: bool) -> frozenset[MergeMethod] | None:
    """Return the methods that all rules allow; None when no rule restricts them."""
    spoken = [rule.methods for rule in read.binding if rule.methods is not None]
    is_linear = any(rule.type == "required_linear_history" for rule in read.binding)
    if is_linear or read.classic.is_linear:
        spoken.append(frozenset(MergeMethod) - {MergeMethod.MERGE_COMMIT})
    if needs_signatures:
        # GitHub does not sign the commits that it rebases.
        spoken.append(frozenset(MergeMethod) - {MergeMethod.REBASE})
    return frozenset.intersection(*spoken) if spoken else None


def _key(repo: RepoRef) -> str:
    return repo.slug.lower()


def _rule_of(answer: Fields) -> Rule:
    """Return one rule of `/rules/branches/{branch}`."""
    parameters = answer.inner_or_none("parameters") or Fields({})
    methods = parameters.members("allowed_merge_methods")
    return Rule(
        type=answer.text("type"),
        checks=tuple(
            RequiredName(each.text("context"), each.id_or_none("integration_id"))
            for each in parameters.each("required_status_checks")
        ),
        methods=_merge_methods(methods) if methods else None,
        needs_resolved_threads=parameters.flag("required_review_thread_resolution"),
        needs_code_owners=parameters.flag("require_code_owner_review"),
        needs_last_push=parameters.flag("require_last_push_approval"),
        needs_approvals=_count(parameters) > 0,
        dismisses_stale=parameters.flag("dismiss_stale_reviews_on_push"),
        is_strict=parameters.flag("strict_required_status_checks_policy"),
        ruleset=answer.id_or_none("ruleset_id"),
    )


def _count(reviews: Fields) -> int:
    return int(reviews.id_or_none("required_approving_review_count") or 0)


def _merge_methods(words: list[object]) -> frozenset[MergeMethod]:
    return frozenset(method for method, word in METHOD_WORDS.items() if word in words)


def _protection_of(answer: Fields) -> _Classic:
    """Return classic protection as one value."""
    checks = answer.inner_or_none("required_status_checks") or Fields({})
    reviews = answer.inner_or_none("required_pull_request_reviews") or Fields({})
    pushers = answer.inner_or_none("restrictions")
    listed = _classic_checks_of(checks)
    return _Classic(
        checks=listed,
        is_strict=bool(listed) and checks.flag("strict"),
        needs_resolved_threads=_is_on(answer, "required_conversation_resolution"),
        needs_code_owners=reviews.flag("require_code_owner_reviews"),
        needs_last_push=reviews.flag("require_last_push_approval"),
        needs_approvals=_count(reviews) > 0,
        dismisses_stale=reviews.flag("dismiss_stale_reviews"),
        needs_signatures=_is_on(answer, "required_signatures"),
        is_linear=_is_on(answer, "required_linear_history"),
        is_locked=_is_on(answer, "lock_branch"),
        pushers=None
        if pushers is None
        else tuple(app.text("slug") for app in pushers.each("apps")),
    )


def _is_on(answer: Fields, name: str) -> bool:
    setting = answer.inner_or_none(name)
    return setting is not None and setting.flag("enabled")


def _classic_checks_of(answer: Fields) -> tuple[RequiredName, ...]:
    """Return the required checks of classic protection; an App of null or -1 means any."""
    listed = answer.each("checks")
    if not listed:
        names = answer.members("contexts")
        return tuple(RequiredName(name) for name in names if isinstance(name, str))
    return tuple(
        RequiredName(each.text("context"), _pin(each.id_or_none("app_id"))) for each in listed
    )


def _pin(app_id: str | None) -> str | None:
    return None if app_id in (None, "-1") else app_id


def _branch_checks_of(answer: Fields) -> tuple[RequiredName, ...] | None:
    """Return the same from a branch; None if it is protected and does not say how."""
    protection = answer.inner_or_none("protection")
    checks = None if protection is None else protection.inner_or_none("required_status_checks")
    if checks is not None:
        return _classic_checks_of(checks)
    return None if answer.flag("protected", default=True) else ()


def _can_bypass(answer: Fields) -> bool | None:
    """Return whether our merge calls may bypass a ruleset; None if the answer does not say."""
    word = answer.text_or("current_user_can_bypass", None)
    return None if word is None else word in _BYPASSES
