"""Rules of a branch as GitHub's answers contain them: rulesets and classic protection."""

from dataclasses import dataclass

from bot.github.reading import METHOD_WORDS, Fields
from service.vocabulary import MergeMethod, RequiredName

# Values of `current_user_can_bypass` with which our merge calls bypass the ruleset.
BYPASSES = frozenset({"always", "pull_requests_only", "exempt"})


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
class Classic:
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


def rule_of(answer: Fields) -> Rule:
    """Return one rule of `/rules/branches/{branch}`."""
    parameters = answer.inner_or_none("parameters") or Fields({})
    methods = parameters.members("allowed_merge_methods")
    return Rule(
        type=answer.text("type"),
        checks=tuple(
            RequiredName(each.text("context"), each.id_or_none("integration_id"))
            for each in parameters.each("required_status_checks")
        ),
        methods=_methods(methods) if methods else None,
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


def _methods(words: list[object]) -> frozenset[MergeMethod]:
    return frozenset(method for method, word in METHOD_WORDS.items() if word in words)


def protection_of(answer: Fields) -> Classic:
    """Return classic protection as one value."""
    checks = answer.inner_or_none("required_status_checks") or Fields({})
    reviews = answer.inner_or_none("required_pull_request_reviews") or Fields({})
    pushers = answer.inner_or_none("restrictions")
    listed = classic_checks_of(checks)
    return Classic(
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


def classic_checks_of(answer: Fields) -> tuple[RequiredName, ...]:
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


def branch_checks_of(answer: Fields) -> tuple[RequiredName, ...] | None:
    """Return the same from a branch; None if it is protected and does not say how."""
    protection = answer.inner_or_none("protection")
    checks = None if protection is None else protection.inner_or_none("required_status_checks")
    if checks is not None:
        return classic_checks_of(checks)
    return None if answer.flag("protected", default=True) else ()


def can_bypass(answer: Fields) -> bool | None:
    """Return whether our merge calls may bypass a ruleset; None if the answer does not say."""
    word = answer.text_or("current_user_can_bypass", None)
    return None if word is None else word in BYPASSES
