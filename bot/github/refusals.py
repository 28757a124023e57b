"""The meaning of a refused merge call, by facts read after it and not by its wording.

GitHub's sentences change and differ by rule, so a sentence never decides more than the one pull
request. What holds a whole queue comes from the rules of the branch or from our own rights.
"""

import re
from dataclasses import dataclass

from bot.github import limits
from bot.github.protection import BranchRules
from service.provider.values import LandStopCode, PullRequest
from service.vocabulary import (
    CODE_OWNERS,
    LAST_PUSH,
    Blocker,
    BlockerCode,
    Mergeability,
    MergeMethod,
    PullRequestState,
    Sha,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that were read after the refusal.

    `pull` has every blocker that its facts show. `merge_state` is GitHub's own summary. `rules`
    None: they could not be read. `may_write`: our token may change contents and pull requests.
    """

    status: int
    message: str
    head: Sha
    method: MergeMethod
    pull: PullRequest
    merge_state: str
    has_moved: bool
    rules: BranchRules | None
    methods: frozenset[MergeMethod]
    is_behind: bool
    is_queued: bool
    is_unsigned: bool
    may_write: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """The reason of a refused landing, with the causes that are the pull request's own."""

    code: LandStopCode
    blockers: tuple[Blocker, ...] = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """The meaning of a part of a sentence (lower case, no backticks) for one pull request."""

    part: str
    code: LandStopCode
    blocker: Blocker | None = None


CHECKS = frozenset({BlockerCode.CHECK_MISSING, BlockerCode.CHECK_PENDING})
ENDS = {
    BlockerCode.CLOSED: LandStopCode.CLOSED,
    BlockerCode.DRAFT: LandStopCode.DRAFT,
    BlockerCode.CONFLICT: LandStopCode.CONFLICT,
}
BLOCKED = "BLOCKED"
WORKFLOW_FILES = Blocker(BlockerCode.OTHER, "workflows")

_REFUSED, _RETRY = LandStopCode.PR_REFUSED, LandStopCode.RETRY
_CHECKS_MISSING = LandStopCode.CHECKS_MISSING

# Used only where no fact explains the refusal; the first that fits. Each concerns the one pull
# request. Sentences and sources: tests/github/refusals.toml.
HINTS: tuple[Hint, ...] = (
    Hint("stack", _REFUSED, Blocker(BlockerCode.STACKED)),
    Hint("is in the merge queue", _REFUSED, Blocker(BlockerCode.PROVIDER_QUEUED)),
    Hint("added to a merge queue", _REFUSED, Blocker(BlockerCode.PROVIDER_QUEUED)),
    Hint("must be resolved", _REFUSED, Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED)),
    Hint("code owner", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED, CODE_OWNERS)),
    Hint("last pusher", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED, LAST_PUSH)),
    Hint("approving review", _REFUSED, Blocker(BlockerCode.REVIEW_REQUIRED)),
    Hint("requesting changes", _REFUSED, Blocker(BlockerCode.CHANGES_REQUESTED)),
    Hint("changes have been requested", _REFUSED, Blocker(BlockerCode.CHANGES_REQUESTED)),
    Hint("required status check", _CHECKS_MISSING),
    Hint("signatures", _REFUSED, Blocker(BlockerCode.UNSIGNED)),
    Hint("deployment", _REFUSED, Blocker(BlockerCode.OTHER, "required_deployments")),
    Hint("code scanning", _REFUSED, Blocker(BlockerCode.OTHER, "code_scanning")),
    Hint("commit message", _REFUSED, Blocker(BlockerCode.OTHER, "commit_message_pattern")),
    Hint("required workflow", _REFUSED, Blocker(BlockerCode.OTHER, "workflows")),
    Hint("can't be rebased", LandStopCode.REBASE_DIFFERS),
    Hint("is locked", _REFUSED),
    Hint("base branch was modified", _RETRY),
    Hint("head branch", _RETRY),
    Hint("already in progress", _RETRY),
    Hint("merge request already exists", _RETRY),
    Hint("has not yet completed", _RETRY),
    Hint("merge conflict", _RETRY),
    Hint("not mergeable", _RETRY),
    Hint("is closed", _RETRY),
    Hint("still a draft", _RETRY),
)
_NAMED = re.compile(r'required status check "(?P<name>.*)" (?P<rest>is|was)', re.IGNORECASE)


def judged(evidence: Evidence) -> Finding:
    """Return why GitHub refused: the pull request's facts first, then rules, then the sentence."""
    return (
        _by_the_pull_request(evidence)
        or _by_the_branch(evidence)
        or _by_our_rights(evidence)
        or _by_the_sentence(evidence)
    )


def _by_the_pull_request(evidence: Evidence) -> Finding | None:
    pull = evidence.pull
    if pull.state is not PullRequestState.OPEN:
        return Finding(LandStopCode.CLOSED)
    if pull.head_sha != evidence.head:
        return Finding(LandStopCode.HEAD_CHANGED)
    if pull.draft:
        return Finding(LandStopCode.DRAFT)
    if evidence.has_moved:
        return Finding(LandStopCode.BASE_MOVED)
    if pull.mergeability is Mergeability.NOT_MERGEABLE:
        return Finding(LandStopCode.CONFLICT)
    own = _own_causes(evidence)
    if any(each == WORKFLOW_FILES for each in own):
        return Finding(LandStopCode.WORKFLOWS, own)
    if own:
        only_checks = all(each.code in CHECKS for each in own)
        return Finding(_CHECKS_MISSING if only_checks else _REFUSED, own)
    if pull.mergeability is Mergeability.IN_PROGRESS:
        return Finding(_RETRY)
    return None


def _own_causes(evidence: Evidence) -> tuple[Blocker, ...]:
    found = [each for each in evidence.pull.blockers if each.code not in ENDS]
    if evidence.is_queued:
        found.append(Blocker(BlockerCode.PROVIDER_QUEUED))
    if evidence.is_unsigned:
        found.append(Blocker(BlockerCode.UNSIGNED))
    return tuple(found)


def _by_the_branch(evidence: Evidence) -> Finding | None:
    """Return the setting of the branch that excludes every landing."""
    rules = evidence.rules
    if evidence.method not in evidence.methods:
        return Finding(LandStopCode.METHOD_DENIED)
    if rules is None:
        return None
    allowed = rules.known.merge_methods
    if allowed is not None and evidence.method not in allowed:
        return Finding(LandStopCode.METHOD_DENIED)
    if rules.has_queue:
        return Finding(LandStopCode.PROVIDER_QUEUE)
    if rules.is_closed:
        return Finding(LandStopCode.RULE_DENIED)
    if rules.is_strict and evidence.is_behind:
        return Finding(LandStopCode.STRICT)
    return None


def _by_our_rights(evidence: Evidence) -> Finding | None:
    return None if evidence.may_write else Finding(LandStopCode.NOT_PERMITTED)


def _by_the_sentence(evidence: Evidence) -> Finding:
    """Return what the sentence suggests, if no fact explains the refusal."""
    words = evidence.message.lower().replace("\u2019", "'").replace("`", "")
    if evidence.status == 403 and limits.is_about_workflows(words):
        return Finding(LandStopCode.WORKFLOWS)
    if evidence.status == 423:
        return Finding(_RETRY)
    hint = next((hint for hint in HINTS if hint.part in words), None)
    if hint is not None:
        blockers = () if hint.blocker is None else (hint.blocker,)
        return Finding(hint.code, blockers or _named_check(evidence.message))
    if evidence.merge_state != BLOCKED:
        return Finding(LandStopCode.OTHER)
    unseen = () if evidence.rules is None else evidence.rules.unseen
    return Finding(_REFUSED, tuple(Blocker(BlockerCode.OTHER, name) for name in unseen))


def _named_check(message: str) -> tuple[Blocker, ...]:
    found = _NAMED.search(message)
    if found is None:
        return ()
    return (Blocker(BlockerCode.CHECK_MISSING, found["name"]),)
