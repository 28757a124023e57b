"""Each sentence that GitHub is known to refuse with means one thing to the adapter, on purpose."""

from dataclasses import replace
from typing import Any

import pytest

from bot.github.landing import Evidence, judged
from bot.github.protection import BranchRules
from service.provider.errors import ProviderError, Refused, RefusedCode, Throttled
from service.provider.tickets import TicketRequest
from service.provider.values import CheckReportStatus, Known, LandStopCode, Reply
from service.vocabulary import (
    Blocker,
    BlockerCode,
    Mergeability,
    MergeMethod,
    PullRequestState,
    Sha,
)
from tests.github.corpus import Entry, entries
from tests.github.test_land_stops import facts
from tests.provider.stage import Stage, on_sandbox

CODE = LandStopCode
ALL = {entry.id: entry for entry in entries()}
MERGE_CALL = "PUT /repos/{o}/{r}/pulls/{n}/merge"
OF_THE_BRANCH = {
    CODE.RULE_DENIED,
    CODE.METHOD_DENIED,
    CODE.STRICT,
    CODE.PROVIDER_QUEUE,
    CODE.NOT_PERMITTED,
}
HEAD = Sha("a" * 40)
PLAIN = BranchRules(Known((), None, ()), needs_resolved_threads=False, has_queue=False)
CLEAN = Evidence(
    status=405,
    message="",
    head=HEAD,
    method=MergeMethod.SQUASH,
    pull=facts(),
    merge_state="CLEAN",
    has_moved=False,
    rules=PLAIN,
    methods=frozenset(MergeMethod),
    is_behind=False,
    is_queued=False,
    is_unsigned=False,
    may_write=True,
)


def having(*blockers: Blocker) -> Evidence:
    """The pull request's own facts show these causes."""
    return replace(CLEAN, pull=replace(facts(), blockers=blockers), merge_state="BLOCKED")


def under(**rules: Any) -> Evidence:
    """The rules of the branch are these."""
    return replace(CLEAN, rules=replace(PLAIN, **rules))


MISSING = having(Blocker(BlockerCode.CHECK_MISSING, "unit"))
PENDING = having(Blocker(BlockerCode.CHECK_PENDING, "unit"))
FAILING = having(Blocker(BlockerCode.CHECK_FAILING, "unit"))
REVIEW = having(Blocker(BlockerCode.REVIEW_REQUIRED))
SQUASH_ONLY = Known((), frozenset({MergeMethod.SQUASH}), ())
LINEAR = replace(under(known=SQUASH_ONLY), method=MergeMethod.MERGE_COMMIT)
UNSEEN = replace(under(unseen=("required_deployments", "code_scanning")), merge_state="BLOCKED")

# What each refusal of a merge call becomes with the facts of its cause, and without any.
MERGES: dict[str, tuple[Evidence, LandStopCode, LandStopCode]] = {
    "merge.not_mergeable": (
        replace(CLEAN, pull=facts(mergeability=Mergeability.NOT_MERGEABLE)),
        CODE.CONFLICT,
        CODE.RETRY,
    ),
    "merge.conflicts": (
        replace(CLEAN, pull=facts(mergeability=Mergeability.NOT_MERGEABLE)),
        CODE.CONFLICT,
        CODE.RETRY,
    ),
    "merge.closed": (
        replace(CLEAN, pull=facts(state=PullRequestState.CLOSED)),
        CODE.CLOSED,
        CODE.RETRY,
    ),
    "merge.draft": (replace(CLEAN, pull=facts(draft=True)), CODE.DRAFT, CODE.RETRY),
    "merge.head_modified": (replace(CLEAN, head=Sha("b" * 40)), CODE.HEAD_CHANGED, CODE.RETRY),
    "merge.head_out_of_date": (
        replace(under(is_strict=True), is_behind=True),
        CODE.STRICT,
        CODE.RETRY,
    ),
    "merge.base_modified": (replace(CLEAN, has_moved=True), CODE.BASE_MOVED, CODE.RETRY),
    "merge.in_progress": (
        replace(CLEAN, pull=facts(mergeability=Mergeability.IN_PROGRESS)),
        CODE.RETRY,
        CODE.RETRY,
    ),
    "merge.locked_423": (CLEAN, CODE.RETRY, CODE.RETRY),
    "checks.expected": (MISSING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.in_progress": (PENDING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.pending": (PENDING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.failing": (FAILING, CODE.PR_REFUSED, CODE.CHECKS_MISSING),
    "checks.wrong_source": (MISSING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.all_expected": (MISSING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.all_in_progress": (PENDING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.all_pending": (PENDING, CODE.CHECKS_MISSING, CODE.CHECKS_MISSING),
    "checks.mixed": (FAILING, CODE.PR_REFUSED, CODE.CHECKS_MISSING),
    "review.approvals": (REVIEW, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "review.changes_requested": (
        having(Blocker(BlockerCode.CHANGES_REQUESTED)),
        CODE.PR_REFUSED,
        CODE.PR_REFUSED,
    ),
    "review.code_owner": (REVIEW, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "review.last_push": (REVIEW, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "review.last_pusher_unknown": (REVIEW, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "review.conversation": (
        having(Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED)),
        CODE.PR_REFUSED,
        CODE.PR_REFUSED,
    ),
    "rule.update": (under(is_closed=True), CODE.RULE_DENIED, CODE.OTHER),
    "rule.through_queue": (under(has_queue=True), CODE.PROVIDER_QUEUE, CODE.OTHER),
    "queue.inside": (replace(CLEAN, is_queued=True), CODE.PR_REFUSED, CODE.PR_REFUSED),
    "queue.uses": (under(has_queue=True), CODE.PROVIDER_QUEUE, CODE.OTHER),
    "method.denied": (
        replace(CLEAN, methods=frozenset({MergeMethod.REBASE})),
        CODE.METHOD_DENIED,
        CODE.OTHER,
    ),
    "method.linear": (LINEAR, CODE.METHOD_DENIED, CODE.OTHER),
    "method.rebase": (CLEAN, CODE.REBASE_DIFFERS, CODE.REBASE_DIFFERS),
    "rule.signatures": (replace(CLEAN, is_unsigned=True), CODE.PR_REFUSED, CODE.PR_REFUSED),
    "rule.deployment": (UNSEEN, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "rule.code_scanning": (UNSEEN, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "rule.code_scanning_unset": (UNSEEN, CODE.PR_REFUSED, CODE.PR_REFUSED),
    "rule.not_authorized": (under(is_closed=True), CODE.RULE_DENIED, CODE.OTHER),
    "perm.integration": (replace(CLEAN, may_write=False), CODE.NOT_PERMITTED, CODE.OTHER),
    "perm.workflows": (
        having(Blocker(BlockerCode.OTHER, "workflows")),
        CODE.WORKFLOWS,
        CODE.WORKFLOWS,
    ),
    "perm.archived": (CLEAN, CODE.OTHER, CODE.OTHER),
    "merge.stacked": (having(Blocker(BlockerCode.STACKED)), CODE.PR_REFUSED, CODE.PR_REFUSED),
    "shape.rules": (UNSEEN, CODE.PR_REFUSED, CODE.OTHER),
    "shape.classic": (UNSEEN, CODE.PR_REFUSED, CODE.OTHER),
}

# What a write of ours becomes: the class of the error, with the code of a refusal; "done" where
# the adapter knows that nothing is left to do.
WRITES: dict[str, str] = {
    "merge.5xx": "OutcomeUnknown",
    # A ruleset on our test branches is told by their rules, in the tests below.
    "rule.through_pull": "Refused other",
    "merges.conflict": "Conflicted",
    "merges.rule": "Unavailable",
    "merges.transient": "Unavailable",
    "merges.perm": "NotPermitted",
    "merges.absent": "Unavailable",
    "ref.exists": "Unavailable",
    "ref.absent": "Refused other",
    "ref.not_ff": "Refused other",
    "ref.cannot": "Refused other",
    "ref.failed": "Refused other",
    "ref.rules": "Refused rule_denied",
    "ref.classic": "Refused other",
    "ref.force": "Refused other",
    "ref.delete_rule": "Refused other",
    "ref.delete_classic": "Refused rule_denied",
    "ref.create_rule": "Refused other",
    "ref.500": "OutcomeUnknown",
    "pull.exists": "Unavailable",
    "pull.no_commits": "NothingToMerge",
    "pull.draft": "Built",  # without a draft pull request, by a push alone
    "pull.base": "Refused other",
    "pull.body_long": "Refused other",
    "check.annotations": "Refused other",
    "check.long": "Refused other",
    "check.summary_bytes": "Refused other",
    "check.perm": "NotPermitted",
    "check.rerequest": "NotPossible",
    "actions.cancel_done": "NotPossible",
    "actions.cancel_early": "NotPossible",
    "actions.rerun_running": "NotPossible",
    "actions.rerun_old": "NotPossible",
    "actions.rerun_none": "NotPossible",
    "comment.locked": "NoneType",  # the notice is dropped
    "comment.long": "Refused other",
    "limit.primary": "Throttled",
    "limit.secondary": "Throttled",
    "limit.content": "Throttled",
    "limit.abuse": "Throttled",
    "token.suspended": "Suspended",
    # Our tokens are narrowed by repository only, so each 422 is about the repository.
    "token.permissions": "Gone",
    "token.level": "Gone",
    "token.repositories": "Gone",
    "token.gone": "Gone",
}
CALLS: dict[str, tuple[str, str, str]] = {
    MERGE_CALL: ("merge", "PUT", "*/merge"),
    "POST /repos/{o}/{r}/merges": ("build", "POST", "*/merges"),
    "POST /repos/{o}/{r}/git/refs": ("build", "POST", "*/git/refs"),
    "PATCH /repos/{o}/{r}/git/refs/{ref}": ("build", "POST", "*/git/refs"),
    "DELETE /repos/{o}/{r}/git/refs/{ref}": ("discard", "DELETE", "*/git/refs/*"),
    "POST /repos/{o}/{r}/pulls": ("build", "POST", "*/pulls"),
    "POST /repos/{o}/{r}/check-runs": ("check", "POST", "*/check-runs"),
    "POST /repos/{o}/{r}/check-runs/{id}/rerequest": ("rerun", "POST", "*/rerequest"),
    "POST /repos/{o}/{r}/actions/runs/{id}/cancel": ("stop", "POST", "*/cancel"),
    "POST /repos/{o}/{r}/actions/runs/{id}/rerun": ("rerun", "POST", "*/rerun*"),
    "POST /repos/{o}/{r}/actions/runs/{id}/rerun[-failed-jobs]": ("rerun", "POST", "*/rerun*"),
    "POST /repos/{o}/{r}/actions/runs/{id}/rerun-failed-jobs": ("rerun", "POST", "*/rerun*"),
    "POST /repos/{o}/{r}/issues/{n}/comments": ("comment", "POST", "*/comments"),
    "writes that create content": ("comment", "POST", "*/comments"),
    "writes": ("comment", "POST", "*/comments"),
    "any REST": ("comment", "POST", "*/comments"),
    "any": ("comment", "POST", "*/comments"),
    "POST /app/installations/{id}/access_tokens": ("token", "POST", "*/access_tokens"),
}

# Calls that the adapter never makes: their refusals are kept for what may come.
NEVER_MADE = {
    "merge box (web)",
    "git push",
    "merge, push",
    "GET/POST protection, rulesets",
    "GraphQL mergePullRequest",
    "GraphQL enqueuePullRequest",
    "GraphQL enablePullRequestAutoMerge",
    "GraphQL createCommitOnBranch",
    "GraphQL createPullRequest",
    "GraphQL addComment and others",
    "PUT /repos/{o}/{r}/pulls/{n}/merge-async",
    "GET /repos/{o}/{r}/pulls/{n}/merge-async/{uuid}",
    "PATCH /repos/{o}/{r}/pulls/{n}",
    "POST /repos/{o}/{r}/stacks[/{s}/add]",
    "POST /repos/{o}/{r}/stacks/{s}/{add|unstack}",
    "POST /repos/{o}/{r}/stacks/{s}/unstack",
    "PATCH|DELETE /repos/{o}/{r}/git/ref/{ref}",
    "PUT /repos/{o}/{r}/contents/{path}",
    "PUT /repos/{o}/{r}/pulls/{n}/update-branch",
    "POST /repos/{o}/{r}/statuses/{sha}",
}

# Refusals with a test of their own below.
OTHERS = {"protection.none", "branch.absent", "limit.primary_gql", "issues.off"}


def test_each_entry_of_the_corpus_has_an_expectation():
    unknown = [
        entry.id
        for entry in ALL.values()
        if entry.id not in {*MERGES, *WRITES, *OTHERS} and entry.call not in NEVER_MADE
    ]
    assert unknown == []
    assert {*MERGES, *WRITES, *OTHERS} <= set(ALL)


@pytest.mark.parametrize("name", MERGES)
def test_a_refused_merge_call_is_judged_by_the_facts_of_its_cause(name):
    evidence, code, _ = MERGES[name]
    entry = ALL[name]
    found = judged(replace(evidence, status=entry.status, message=entry.text))
    assert found.code is code


@pytest.mark.parametrize("name", MERGES)
def test_without_a_fact_no_sentence_decides_more_than_one_pull_request(name):
    entry = ALL[name]
    found = judged(replace(CLEAN, status=entry.status, message=entry.text))
    assert found.code is MERGES[name][2]
    assert found.code not in OF_THE_BRANCH


@pytest.mark.parametrize("name", MERGES)
def test_the_facts_decide_whatever_the_sentence_is(name):
    evidence, code, bare = MERGES[name]
    found = judged(replace(evidence, status=405, message="Никто такого не видел."))
    is_hinted = code is bare and judged(replace(CLEAN, message="x")).code is not code
    assert found.code is code or is_hinted


async def outcome(stage: Stage, entry: Entry, number: int, head: Sha) -> str:
    """What a verb of the provider does when its call is refused like this for ever."""
    verb, method, path = CALLS[entry.call]
    match = {"method": method, "path": path}
    fault = {"kind": "refuse", "status": entry.status, "message": entry.text}
    await stage.sandbox.control.add_fault({"match": match, "fault": fault})
    provider, repo = stage.provider, stage.repo
    try:
        match verb:
            case "merge":
                done = await provider.merge(stage.merging(number, head))
            case "build":
                done = await provider.build(stage.request((number, head)))
            case "discard":
                done = await provider.discard(repo, "headgate/merge/pr-1/x")
            case "check":
                done = await stage.say(stage.check(head, CheckReportStatus.SUCCESS))
            case "comment":
                done = await stage.say(Reply(number, "a", "hello"))
            case "rerun":
                done = await provider.rerun(repo, head, ["unit"])
            case "stop":
                done = await provider.stop_ci(repo, head)
            case _:
                await provider.forget_access(repo)
                done = await provider.tip(repo, "main")
    except Refused as refused:
        return f"Refused {refused.code.value}"
    except ProviderError as failure:
        return type(failure).__name__
    return type(done).__name__


def _by_call() -> dict[str, list[str]]:
    """Names of refused writes by their call; limits and tokens are answered to one each."""
    groups: dict[str, list[str]] = {}
    for name in WRITES:
        is_lasting = name.startswith(("limit.", "token."))
        groups.setdefault(name if is_lasting else ALL[name].call, []).append(name)
    return groups


@pytest.mark.parametrize("call", _by_call())
async def test_a_refused_write_becomes(call):
    async with on_sandbox() as stage:
        found = {}
        for name in _by_call()[call]:
            number, head = await stage.open({f"{name}.txt": "a\n"})
            found[name] = await outcome(stage, ALL[name], number, head)
            stage.clear_faults()
        assert found == {name: WRITES[name] for name in found}


BUILD_RULES = [
    ("creation", "POST", "*/git/refs", "ref.create_rule"),
    ("required_linear_history", "POST", "*/merges", "merges.rule"),
    ("required_signatures", "POST", "*/merges", "rule.signatures"),
    ("update", "POST", "*/merges", "rule.update"),
]


@pytest.mark.parametrize(("rule", "method", "path", "name"), BUILD_RULES)
async def test_a_rule_on_our_test_branches_is_told_by_the_rules(rule, method, path, name):
    async with on_sandbox() as stage:
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.rules(rulesets=[{**stage.ruleset(rule), "include": ["refs/heads/headgate/**"]}])
        entry = ALL[name]
        status = 409 if path.endswith("merges") else 422
        fault = {"kind": "refuse", "status": status, "message": entry.text}
        match = {"method": method, "path": path}
        await stage.sandbox.control.add_fault({"match": match, "fault": fault})
        with pytest.raises(Refused) as refused:
            await stage.provider.build(stage.request((number, head)))
        assert refused.value.code is RefusedCode.RULE_DENIED


async def test_a_merge_call_that_is_refused_without_a_cause_concerns_that_one():
    async with on_sandbox() as stage:
        number, head = await stage.open({"a.txt": "a\n"})
        for name in MERGES:
            entry = ALL[name]
            await stage.fault(
                "refuse", method="PUT", path="*/merge", status=entry.status, message=entry.text
            )
            stop = await stage.provider.merge(stage.merging(number, head))
            stage.clear_faults()
            assert (name, stop.code) == (name, MERGES[name][2])
            assert stop.pull is not None


async def test_a_branch_without_classic_protection_requires_nothing_by_it():
    async with on_sandbox() as stage:
        entry = ALL["protection.none"]
        await stage.fault(
            "refuse", method="GET", path="*/protection", status=entry.status, message=entry.text
        )
        assert await stage.provider.required(stage.repo, "main") == Known((), None, ())


async def test_a_branch_that_is_absent_has_no_new_name():
    async with on_sandbox() as stage:
        entry = ALL["branch.absent"]
        call = {"method": "GET", "path": "*/branches/old"}
        await stage.fault("refuse", **call, status=entry.status, message=entry.text)
        assert await stage.provider.new_name(stage.repo, "old") is None


async def test_no_issue_is_made_where_issues_are_switched_off():
    async with on_sandbox() as stage:
        entry = ALL["issues.off"]
        await stage.fault(
            "refuse", method="POST", path="*/issues", status=entry.status, message=entry.text
        )
        request = TicketRequest("<!-- headgate:ticket -->", "Flaky test", "It fails.", None)
        with pytest.raises(Refused) as refused:
            await stage.provider.put_ticket(stage.repo, request)
        assert refused.value.code is RefusedCode.OTHER


async def test_a_used_up_limit_of_graphql_is_a_limit_though_it_is_answered_200():
    async with on_sandbox() as stage:
        number, _ = await stage.open({"a.txt": "a\n"})
        assert ALL["limit.primary_gql"].status == 200
        await stage.fault("primary_limit", graphql="PullRequestFacts", s=1800)
        with pytest.raises(Throttled):
            await stage.provider.pull_request(stage.repo, number)
