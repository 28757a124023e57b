"""What the rules of a branch require of us: rulesets and classic protection.

See docs/design/provider.md 9.
"""

import asyncio
from dataclasses import fields

import pytest

from bot.github import protection
from bot.github.protection import BranchRules, Protection
from service.provider.errors import Gone, GoneKind, NotPermitted, Refused, RefusedCode, Unavailable
from service.provider.values import Known, Unreadable
from service.vocabulary import MergeMethod, RepoRef, RequiredName
from tests.github.table import APP_ID, REPO, on_table

RULES = "GET /rules/branches/main"
CLASSIC = "GET /branches/main/protection"
CHECKS = "GET /branches/main/protection/required_status_checks"
BRANCH = "GET /branches/main"
QUEUE = "graphql MergeQueue"
UNIT, LINT = RequiredName("unit"), RequiredName("lint")
ALL = frozenset(MergeMethod)
NO_RIGHT = "Resource not accessible by integration"
NO_PLAN = "Upgrade to GitHub Pro or make this repository public to enable this feature."
OURS = "Headgate (main)"


@pytest.fixture
async def made():
    """A branch without any rule, and a client to its repository."""
    async with on_table() as (table, client):
        table.says(RULES, [])
        table.denies(CLASSIC, 404, "Branch not protected")
        table.says(QUEUE, queue(is_there=False))
        yield table, client


@pytest.fixture
def kept(client):
    return Protection(client.clock, APP_ID)


def queue(*, is_there):
    return {"data": {"repository": {"mergeQueue": {"id": "q"} if is_there else None}}}


def rule(kind, ruleset=None, **parameters):
    return {"type": kind, "ruleset_id": ruleset, "parameters": parameters}


def required(*names, ruleset=None, strict=False):
    """A rule that requires these checks; (name, app) pins one."""
    pairs = [name if isinstance(name, tuple) else (name, None) for name in names]
    checks = [{"context": name, "integration_id": app} for name, app in pairs]
    return rule(
        "required_status_checks",
        ruleset,
        required_status_checks=checks,
        strict_required_status_checks_policy=strict,
    )


async def test_a_branch_without_rules_requires_nothing_and_allows_every_method(client, kept):
    assert await kept.rules(client, "main") == BranchRules(
        Known((), None, ()), needs_resolved_threads=False, has_queue=False
    )


async def test_a_branch_that_is_not_protected_is_not_asked_for_its_checks(table, client, kept):
    await kept.rules(client, "main")
    assert (table.calls[CLASSIC], table.calls[CHECKS], table.calls[BRANCH]) == (1, 0, 0)


def test_a_rule_that_was_not_read_does_not_bind():
    plain = BranchRules(Known((), None, ()), needs_resolved_threads=False, has_queue=False)
    assert not [each.name for each in fields(plain)[1:] if getattr(plain, each.name)]


# Checks.


async def test_checks_of_rulesets_and_of_classic_protection_are_required_together(
    table, client, kept
):
    table.says(RULES, [required("unit")])
    table.says(CLASSIC, {"required_status_checks": {"contexts": ["lint", "unit"]}})
    rules = await kept.rules(client, "main")
    assert rules.known.checks == rules.checks == (UNIT, LINT)
    assert rules.known.notes == ()


@pytest.mark.parametrize("app", [None, int(APP_ID)])
async def test_our_own_check_is_not_required_of_a_test_run_and_noted(table, client, kept, app):
    table.says(RULES, [required("unit", (OURS, app))])
    rules = await kept.rules(client, "main")
    assert rules.known == Known((UNIT,), None, (protection.SELF_REQUIRED,), own_required=True)
    assert rules.checks == (UNIT,)


@pytest.mark.parametrize("check", [(OURS, 13), ("unit", int(APP_ID))])
async def test_a_check_of_another_app_or_name_is_not_our_own(table, client, kept, check):
    table.says(RULES, [required(check)])
    rules = await kept.rules(client, "main")
    assert rules.known == Known((RequiredName(check[0], str(check[1])),), None, ())
    assert rules.checks == rules.known.checks


async def test_rules_that_we_may_bypass_bind_only_our_test_runs(table, client, kept):
    table.says(RULES, [required("unit", ruleset=5), rule("update", 5), rule("update", 6)])
    table.says("GET /rulesets/5", {"current_user_can_bypass": "pull_requests_only"})
    table.says("GET /rulesets/6", {"current_user_can_bypass": "always"})
    rules = await kept.rules(client, "main")
    assert (rules.known.checks, rules.checks, rules.is_closed) == ((UNIT,), (), False)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, {"current_user_can_bypass": "never"}),
        (200, {}),
        (403, {"message": NO_RIGHT}),
        (404, None),
    ],
)
async def test_a_ruleset_that_does_not_say_that_we_may_bypass_it_binds_us(
    table, client, kept, status, content
):
    table.says(RULES, [required("unit", ruleset=5)])
    table.says("GET /rulesets/5", content, status=status)
    assert (await kept.rules(client, "main")).checks == (UNIT,)


# Other rules.


@pytest.mark.parametrize(
    ("rules", "classic", "is_strict"),
    [
        ([required("unit", strict=True)], {}, True),
        ([required("unit")], {}, False),
        ([required(strict=True)], {}, False),
        ([], {"required_status_checks": {"strict": True, "contexts": ["unit"]}}, True),
        ([], {"required_status_checks": {"strict": False, "contexts": ["unit"]}}, False),
    ],
)
async def test_a_branch_is_strict_if_checks_must_pass_on_its_newest_commit(
    made, kept, rules, classic, is_strict
):
    table, client = made
    table.says(RULES, rules)
    table.says(CLASSIC, classic)
    read = await kept.rules(client, "main")
    assert read.is_strict is is_strict
    assert read.known.notes == ((protection.STRICT,) if is_strict else ())


@pytest.mark.parametrize(
    ("rules", "classic"),
    [
        ([rule("pull_request", required_review_thread_resolution=True)], {}),
        ([], {"required_conversation_resolution": {"enabled": True}}),
    ],
)
async def test_either_kind_of_rule_wants_conversations_resolved(
    table, client, kept, rules, classic
):
    table.says(RULES, rules)
    table.says(CLASSIC, classic)
    assert (await kept.rules(client, "main")).needs_resolved_threads


@pytest.mark.parametrize("name", ["require_code_owner_review", "require_last_push_approval"])
async def test_either_kind_of_rule_wants_a_review_by_certain_people(table, client, kept, name):
    classic = {"require_code_owner_review": "require_code_owner_reviews"}.get(name, name)
    table.says(RULES, [rule("pull_request", **{name: True})])
    first = await kept.rules(client, "main")
    table.says(RULES, [])
    table.says(CLASSIC, {"required_pull_request_reviews": {classic: True}})
    for rules in (first, await kept.fresh_rules(client, "main")):
        assert rules.needs_code_owners is (name == "require_code_owner_review")
        assert rules.needs_last_push is (name == "require_last_push_approval")


COUNT = {"required_approving_review_count": 1}


@pytest.mark.parametrize(
    ("rules", "dismisses"),
    [
        (({**COUNT, "dismiss_stale_reviews_on_push": True}, {}), True),
        (({}, {**COUNT, "dismiss_stale_reviews": True}), True),
        ((COUNT, {"dismiss_stale_reviews": True}), True),
        ((COUNT, COUNT), False),
        (({"dismiss_stale_reviews_on_push": True}, {}), False),
        (({}, {}), False),
    ],
)
async def test_needed_approvals_may_be_dismissed_by_either_kind_of_rule(
    table, client, kept, rules, dismisses
):
    ruleset, classic = rules
    table.says(RULES, [rule("pull_request", **ruleset)])
    table.says(CLASSIC, {"required_pull_request_reviews": classic})
    assert (await kept.rules(client, "main")).dismisses_approvals is dismisses


@pytest.mark.parametrize(
    ("rules", "classic"),
    [([rule("required_signatures")], {}), ([], {"required_signatures": {"enabled": True}})],
)
async def test_github_does_not_sign_what_it_rebases(table, client, kept, rules, classic):
    table.says(RULES, rules)
    table.says(CLASSIC, classic)
    read = await kept.rules(client, "main")
    assert read.needs_signatures
    assert read.known.merge_methods == ALL - {MergeMethod.REBASE}
    assert read.known.notes == ("required_signatures",)


@pytest.mark.parametrize(
    ("rules", "classic"),
    [
        ([rule("required_linear_history")], {}),
        ([], {"required_linear_history": {"enabled": True}}),
    ],
)
async def test_a_linear_history_has_no_merge_commits(table, client, kept, rules, classic):
    table.says(RULES, rules)
    table.says(CLASSIC, classic)
    read = await kept.rules(client, "main")
    assert read.known.merge_methods == ALL - {MergeMethod.MERGE_COMMIT}
    assert read.known.notes == ("required_linear_history",)


async def test_the_methods_are_those_that_all_rules_allow(table, client, kept):
    some = [rule("pull_request", allowed_merge_methods=each) for each in (["squash", "merge"],)]
    table.says(RULES, [*some, rule("required_linear_history"), rule("deletion")])
    assert (await kept.rules(client, "main")).known.merge_methods == {MergeMethod.SQUASH}


async def test_rules_whose_state_is_not_shown_are_told(table, client, kept):
    kinds = (
        "workflows",
        "required_deployments",
        "code_scanning",
        "code_quality",
        "commit_message_pattern",
        "commit_author_email_pattern",
        "committer_email_pattern",
    )
    table.says(RULES, [rule("deletion"), *map(rule, kinds)])
    rules = await kept.rules(client, "main")
    assert rules.unseen == rules.known.notes == kinds


@pytest.mark.parametrize(
    ("classic", "is_closed"),
    [
        ({}, False),
        ({"lock_branch": {"enabled": True}}, True),
        ({"restrictions": {"apps": [{"slug": "headgate"}]}}, False),
        ({"restrictions": {"apps": [{"slug": "another"}]}}, True),
        (
            {
                "restrictions": {"apps": [{"slug": "headgate"}]},
                "lock_branch": {"enabled": True},
            },
            True,
        ),
    ],
)
async def test_a_branch_is_closed_if_it_is_locked_or_only_others_may_push(
    table, client, kept, classic, is_closed
):
    table.says(CLASSIC, classic)
    assert (await kept.rules(client, "main")).is_closed is is_closed


async def test_a_ruleset_closes_a_branch_against_updates(table, client, kept):
    table.says(RULES, [rule("update")])
    assert (await kept.rules(client, "main")).is_closed


# GitHub's own merge queue.


@pytest.mark.parametrize("rules", [[], [rule("deletion")]])
async def test_a_classic_merge_queue_is_found_by_graphql_alone(table, client, kept, rules):
    table.says(RULES, rules)
    table.says(QUEUE, queue(is_there=True))
    assert (await kept.rules(client, "main")).has_queue
    with pytest.raises(Refused) as refused:
        await kept.required(client, "main")
    assert refused.value.code is RefusedCode.PROVIDER_QUEUE


async def test_the_rule_of_a_merge_queue_says_itself_whether_it_binds_us(table, client, kept):
    table.says(RULES, [rule("merge_queue", 5), rule("deletion", 5)])
    assert (await kept.rules(client, "main")).has_queue
    table.says("GET /rulesets/5", {"current_user_can_bypass": "always"})
    table.says(QUEUE, queue(is_there=True))
    assert not (await kept.fresh_rules(client, "main")).has_queue
    assert table.calls[QUEUE] == 0


async def test_where_a_merge_queue_cannot_be_read_what_was_known_last_counts(table, client, kept):
    table.says(QUEUE, {"data": None, "errors": [{"message": "no such field", "type": "X"}]})
    assert not (await kept.rules(client, "main")).has_queue
    table.says(QUEUE, queue(is_there=True))
    assert (await kept.fresh_rules(client, "main")).has_queue
    table.says(QUEUE, {"data": None, "errors": [{"message": "no such field", "type": "X"}]})
    await client.clock.sleep(protection.KEPT_S)
    kept.forget(REPO)
    assert (await kept.rules(client, "main")).has_queue


async def test_what_costs_a_call_is_read_once_in_five_minutes(table, client, kept):
    counts = []
    for wait_s in (0, protection.KEPT_S - 1, 1):
        await client.clock.sleep(wait_s)
        kept.forget(REPO, only_free=True)
        await kept.rules(client, "main")
        counts.append(table.calls[QUEUE])
    assert counts == [1, 1, 2]


# What is kept.


async def test_rules_are_kept_for_five_minutes(table, client, kept):
    assert kept.kept(REPO, "main") is None
    rules = await kept.rules(client, "main")
    await client.clock.sleep(protection.KEPT_S)
    assert await kept.rules(client, "main") is kept.kept(REPO, "main") is rules
    assert table.calls[RULES] == 1
    await client.clock.sleep(1)
    assert kept.kept(REPO, "main") is None
    await kept.rules(client, "main")
    assert table.calls[RULES] == 2


async def test_the_rules_of_one_repository_are_forgotten_however_it_is_spelled(client, kept):
    rules = await kept.rules(client, "main")
    kept.forget(RepoRef(REPO.host, "octo", "gadgets"))
    assert kept.kept(REPO, "main") is rules
    kept.forget(RepoRef(REPO.host, "Octo", "Widgets"))
    assert kept.kept(REPO, "main") is None


@pytest.mark.parametrize("call", [RULES, CLASSIC, QUEUE])
async def test_what_was_read_before_rules_were_forgotten_is_not_kept(table, client, kept, call):
    table.held[call] = meeting = asyncio.Barrier(2)
    reading = asyncio.create_task(kept.rules(client, "main"))
    await meeting.wait()
    table.says(RULES, [required("unit")])
    table.says(CLASSIC, {"required_status_checks": {"contexts": ["lint"]}})
    table.says(QUEUE, queue(is_there=True))
    kept.forget(REPO)
    newest = await kept.rules(client, "main")
    await meeting.wait()
    await reading
    assert await kept.rules(client, "main") is newest
    kept.forget(REPO, only_free=True)
    assert await kept.rules(client, "main") == newest
    assert (newest.known.checks, newest.has_queue) == ((UNIT, LINT), True)


async def test_rules_that_did_not_change_are_read_by_their_etags(table, client, kept):
    table.says(RULES, [required("unit", ruleset=5)])
    table.says("GET /rulesets/5", {"current_user_can_bypass": "always"})
    table.says(CLASSIC, {"required_status_checks": {"contexts": ["lint"]}})
    assert await kept.rules(client, "main") == await kept.fresh_rules(client, "main")
    again = (RULES, "GET /rulesets/5", CLASSIC)
    assert [table.asked_again[call] for call in again] == [1, 1, 1]
    table.denies(CLASSIC, 404, "Not Found")
    table.says(CHECKS, {"contexts": ["lint"]})
    assert await kept.fresh_rules(client, "main") == await kept.fresh_rules(client, "main")
    assert table.asked_again[CHECKS] == 1
    table.denies(CHECKS, 403, NO_RIGHT)
    table.says(BRANCH, {"protected": False})
    assert await kept.fresh_rules(client, "main") == await kept.fresh_rules(client, "main")
    assert table.asked_again[BRANCH] == 1


# Not readable is never the same as nothing required.


async def test_rules_that_we_may_not_read_are_not_readable(table, client, kept):
    table.denies(RULES, 403, NO_RIGHT)
    assert await kept.required(client, "main") == Unreadable(NO_RIGHT)


async def test_a_plan_without_protection_requires_nothing(table, client, kept):
    table.denies(RULES, 403, NO_PLAN)
    table.denies(CLASSIC, 403, NO_PLAN)
    assert await kept.required(client, "main") == Known((), None, ())
    assert table.calls[CHECKS] == 0


async def test_more_rules_than_we_read_are_not_readable(table, client, kept):
    root = client.github.options.addresses.api
    more = f'<{root}/repos/{REPO.slug}/rules/branches/main?page=2>; rel="next"'
    table.says(RULES, [rule("deletion")], Link=more)
    found = await kept.required(client, "main")
    assert isinstance(found, Unreadable)
    with pytest.raises(Unavailable):
        await protection.forbids_building(client, "main")


async def test_a_branch_that_is_gone_is_not_readable_and_a_repository_is_gone(table, client, kept):
    table.denies(RULES, 404, "Not Found")
    assert isinstance(await kept.required(client, "main"), Unreadable)
    table.denies("GET ", 404, "Not Found")
    with pytest.raises(Gone) as gone:
        await kept.required(client, "main")
    assert gone.value.kind is GoneKind.REPOSITORY


@pytest.mark.parametrize(
    ("status", "words"), [(404, "Not Found"), (403, NO_RIGHT), (403, "Branch not protected")]
)
async def test_where_protection_cannot_be_read_its_required_checks_may(
    table, client, kept, status, words
):
    table.denies(CLASSIC, status, words)
    table.says(CHECKS, {"contexts": ["unit"], "strict": True})
    rules = await kept.rules(client, "main")
    assert (rules.checks, rules.is_strict) == ((UNIT,), True)
    table.says(CHECKS, {"contexts": ["unit"], "strict": False})
    assert not (await kept.fresh_rules(client, "main")).is_strict
    table.says(CHECKS, {"contexts": [], "strict": True})
    assert not (await kept.fresh_rules(client, "main")).is_strict


@pytest.mark.parametrize(("status", "words"), [(404, None), (404, "Not Found"), (403, NO_PLAN)])
async def test_required_checks_that_are_not_there_are_none(table, client, kept, status, words):
    table.denies(CLASSIC, 403, NO_RIGHT)
    table.denies(CHECKS, status, words)
    assert (await kept.rules(client, "main")).checks == ()
    assert table.calls[BRANCH] == 0


async def test_the_branch_itself_may_show_its_required_checks(table, client, kept):
    table.denies(CLASSIC, 403, NO_RIGHT)
    table.denies(CHECKS, 403, NO_RIGHT)
    table.says(
        BRANCH,
        {"protected": True, "protection": {"required_status_checks": {"contexts": ["unit"]}}},
    )
    assert (await kept.rules(client, "main")).checks == (UNIT,)
    table.says(BRANCH, {"protected": False})
    assert (await kept.fresh_rules(client, "main")).checks == ()


@pytest.mark.parametrize(
    ("message", "shown"),
    [(NO_RIGHT, NO_RIGHT), (None, "The branch protection cannot be read.")],
)
@pytest.mark.parametrize("branch", [{"protected": True}, None])
async def test_a_protected_branch_that_does_not_show_its_checks_is_not_readable(
    made, kept, branch, message, shown
):
    table, client = made
    table.denies(CLASSIC, 403, NO_RIGHT)
    table.denies(CHECKS, 403, message)
    if branch is not None:
        table.says(BRANCH, branch)
    assert await kept.required(client, "main") == Unreadable(shown)
    with pytest.raises(NotPermitted):
        await kept.rules(client, "main")


# Test branches.

TESTED = "headgate/merge/pr-1/r1"
OVER_TESTED = f"GET /rules/branches/{TESTED}"


AGAINST_BUILDING = (
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
)


async def test_under_some_rules_no_test_branch_can_be_built(table, client):
    for kind in AGAINST_BUILDING:
        table.says(OVER_TESTED, [rule("deletion"), rule(kind)])
        assert await protection.forbids_building(client, TESTED), kind


async def test_a_rule_that_we_may_bypass_forbids_no_test_branch(table, client):
    table.says(OVER_TESTED, [rule("creation", 5)])
    assert await protection.forbids_building(client, TESTED)
    table.says("GET /rulesets/5", {"current_user_can_bypass": "always"})
    assert not await protection.forbids_building(client, TESTED)


async def test_other_rules_do_not_keep_a_test_branch_from_being_built(table, client):
    table.says(OVER_TESTED, [rule("deletion", 5)])
    assert not await protection.forbids_building(client, TESTED)
    table.denies(OVER_TESTED, 403, NO_RIGHT)
    assert not await protection.forbids_building(client, TESTED)
