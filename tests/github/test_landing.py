"""One landing at GitHub: what is asked, sent once, and read back (docs/design/provider.md 11).

What a refusal means is in test_corpus.py, whole landings in tests/provider/contract_landing.py.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.github.landing import READS_S, SHOWN_FOR, SHOWN_WAITS_S, TIP_WAITS_S, Landing
from bot.github.notices import Notices
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from service.provider.errors import OutcomeUnknown
from service.provider.values import (
    AdvanceRequest,
    Commit,
    LandedPull,
    LandStop,
    LandStopCode,
    Merged,
    MergeRequest,
)
from service.vocabulary import Blocker, BlockerCode, MergeMethod, Sha
from tests.github.table import APP_ID, REPO, on_table

BASE, HEAD, MADE, TREE = (Sha(letter * 40) for letter in "abcd")
ELSEWHERE = Sha("e" * 40)
RULES = "GET /rules/branches/main"
TIP = "GET /commits/heads/main"
MERGE = "PUT /pulls/3/merge"
ASYNC = "PUT /pulls/3/merge-async"
POLLED = "GET /pulls/3/merge-async/u1"
FACTS = "graphql PullRequestFacts"
QUEUED = "graphql IsInMergeQueue"
COMMITS = "GET /pulls/3/commits"
ADVANCE = "graphql Advance"
NODE = "graphql RepositoryId"
TESTED = "GET /git/ref/heads/headgate/merge/pr-3/r1"
SAID = "POST /issues/3/comments"
CLOSED = "PATCH /pulls/3"
REFUSED = "Something new"
# https://github.com/orgs/community/discussions/24631, and that the changes may be done:
# https://github.com/Skydio/revup/pull/114
UNFINISHED = (
    "Something went wrong while executing your query. This may be the result of a timeout, or it "
    "could be a GitHub bug."
)
LANDED = Merged(MADE, (Commit(MADE, TREE, (BASE,)),))


@pytest.fixture
async def made():
    """Pull request 3 is open, nothing refuses it, and main is where it was tested."""
    async with on_table() as (table, client):
        table.says(RULES, [])
        table.denies("GET /branches/main/protection", 404, "Branch not protected")
        table.says("graphql MergeQueue", {"data": {"repository": {"mergeQueue": None}}})
        table.says(FACTS, a_pull())
        table.says("GET /pulls/3", {"number": 3})
        table.says("GET /pulls/3/files", [])
        table.says(TIP, a_commit(BASE))
        table.says(QUEUED, {"data": {"repository": {"pullRequest": {"isInMergeQueue": False}}}})
        table.says(NODE, {"data": {"repository": {"id": "R_1"}}})
        table.says(ADVANCE, {"data": {"updateRefs": {}}})
        table.says(SAID, {"id": 1}, status=201)
        table.says("GET /issues/3/comments", [])
        table.says(CLOSED, {"state": "closed"})
        yield table, client


@pytest.fixture
def kept(client):
    return Protection(client.clock, APP_ID)


@pytest.fixture
def landing(kept):
    pulls = PullRequests(kept, APP_ID)
    return Landing(pulls, kept, Notices(APP_ID))


def a_pull(**changes):
    """The facts of pull request 3 as GraphQL has them."""
    pull = {
        "number": 3,
        "title": "t",
        "url": "https://x/3",
        "state": "OPEN",
        "isDraft": False,
        "author": {"login": "alice"},
        "baseRefName": "main",
        "headRefName": "topic",
        "headRefOid": HEAD,
        "headRepository": {"nameWithOwner": REPO.slug},
        "mergeable": "MERGEABLE",
        "mergeStateStatus": "CLEAN",
    }
    return {"data": {"repository": {"id": "R_1", "pullRequest": {**pull, **changes}}}}


def merged_pull(commit=MADE):
    return a_pull(state="MERGED", mergeCommit=None if commit is None else {"oid": commit})


def a_commit(sha, *parents):
    return {"sha": sha, "commit": {"tree": {"sha": TREE}}, "parents": [{"sha": p} for p in parents]}


def related(older, newer, status):
    """The call that compares two commits, and its answer."""
    return f"GET /compare/{older}...{newer}", {"status": status, "commits": []}


def a_request(method=MergeMethod.SQUASH, **changes):
    return MergeRequest(REPO, "main", 3, HEAD, method, BASE, **changes)


ADVANCED = AdvanceRequest(REPO, "main", BASE, MADE, "headgate/merge/pr-3/r1")


def lands(table, call=MERGE):
    """The call lands the pull request."""
    if call == MERGE:
        table.says(MERGE, {"sha": MADE, "merged": True})
    table.says(TIP, a_commit(MADE, BASE))


def refuses(table, status=405):
    table.denies(MERGE, status, REFUSED)


# The merge call.


async def test_a_merge_call_says_the_head_that_was_tested(table, client, landing):
    lands(table)
    assert await landing.merge(client, a_request()) == LANDED
    assert table.bodies[MERGE] == {"sha": HEAD, "merge_method": "squash"}
    assert table.calls[MERGE] == 1


async def test_a_merge_call_gives_the_words_that_it_is_asked_to(table, client, landing):
    lands(table)
    await landing.merge(client, a_request(title="T"))
    assert table.bodies[MERGE].keys() == {"sha", "merge_method", "commit_title"}
    await landing.merge(client, a_request(message="M"))
    assert table.bodies[MERGE].keys() == {"sha", "merge_method", "commit_message"}


async def test_a_method_that_known_rules_exclude_is_not_even_tried(table, client, kept, landing):
    lands(table)
    parameters = {"allowed_merge_methods": ["merge"]}
    table.says(RULES, [{"type": "pull_request", "parameters": parameters}])
    await kept.rules(client, "main")
    stop = await landing.merge(client, a_request())
    assert stop.code is LandStopCode.METHOD_DENIED
    assert table.calls[MERGE] == 0
    assert await landing.merge(client, a_request(MergeMethod.MERGE_COMMIT)) == LANDED


async def test_rules_that_speak_of_no_method_allow_each(table, client, kept, landing):
    lands(table)
    await kept.rules(client, "main")
    assert await landing.merge(client, a_request()) == LANDED


async def test_a_landing_is_proved_by_the_first_tip_that_is_not_the_old_one(table, client, landing):
    lands(table)
    table.says(TIP, a_commit(BASE), a_commit(BASE), a_commit(MADE, BASE))
    before = client.clock.monotonic_s()
    assert await landing.merge(client, a_request()) == LANDED
    assert client.clock.monotonic_s() - before == sum(TIP_WAITS_S[:3])


async def test_a_branch_that_shows_a_merge_late_does_not_pass_for_one_that_was_not_merged_into(
    table, client, landing
):
    lands(table)
    table.says(TIP, a_commit(BASE))
    with pytest.raises(OutcomeUnknown, match="main does not show it"):
        await landing.merge(client, a_request())
    table.says(FACTS, merged_pull())
    with pytest.raises(OutcomeUnknown, match="main does not show it"):
        await landing.merged(client, a_request(sent_until=client.clock.now()))
    long_ago = client.clock.now() - SHOWN_FOR
    assert await landing.merged(client, a_request(sent_until=long_ago)) == Merged(MADE, ())


async def test_a_branch_that_is_gone_leaves_a_landing_without_a_proof(table, client, landing):
    lands(table)
    table.denies(TIP, 404, "Not Found")
    with pytest.raises(OutcomeUnknown, match="main is gone"):
        await landing.merge(client, a_request())


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (merged_pull(), LANDED),
        (merged_pull(None), None),
        (a_pull(), None),
        (a_pull(mergeCommit={"oid": MADE}), None),
        (a_pull(state="CLOSED"), None),
    ],
)
async def test_a_merge_call_landed_if_the_pull_request_is_merged_and_its_commit_is_shown(
    table, client, landing, facts, found
):
    table.says(FACTS, facts)
    table.says(TIP, a_commit(MADE, BASE))
    assert await landing.merged(client, a_request()) == found


# Seen in https://github.com/aviator-co/av/pull/503
async def test_a_merge_whose_commit_github_does_not_name_yet_is_not_taken_for_none(
    table, client, landing
):
    table.says(FACTS, merged_pull(None))
    with pytest.raises(OutcomeUnknown, match="does not name the commit"):
        await landing.merged(client, a_request(sent_until=client.clock.now()))
    long_ago = client.clock.now() - SHOWN_FOR
    assert await landing.merged(client, a_request(sent_until=long_ago)) is None


@pytest.mark.parametrize(("took_s", "is_sent"), [(READS_S, True), (READS_S + 0.5, False)])
async def test_a_merge_after_a_slow_look_is_not_sent(table, client, landing, took_s, is_sent):
    table.slow["GET /pulls/3"] = took_s
    lands(table)
    answer = await landing.merge(client, a_request())
    assert table.calls[MERGE] == int(is_sent)
    assert answer == LANDED if is_sent else answer.code is LandStopCode.UNAVAILABLE


# Members of a native stack.


def stacked(table, *members):
    """Pull request 3 is in a stack of these members: number and state, from the bottom up."""
    table.says("GET /pulls/3", {"number": 3, "stack": {"base": {"ref": "main"}, "number": 1}})
    listed = [
        {
            "number": number,
            "state": "open" if state == "open" else "closed",
            "merged_at": "2026-10-01T00:00:00Z" if state == "merged" else None,
            "head": {"ref": f"part-{number}", "sha": HEAD},
        }
        for number, state in members
    ]
    table.says("GET /stacks", [{"number": 1, "base": {"ref": "main"}, "pull_requests": listed}])


def asynchronous(status, **details):
    return {"status": status, "details": {"message": "Words.", **details}}


PENDING = asynchronous("pending", uuid="u1", expected_head_sha=HEAD)
LANDS = asynchronous("merged", sha=MADE)


async def test_a_member_with_all_below_merged_lands_by_one_asynchronous_call(
    table, client, landing
):
    stacked(table, (1, "merged"), (3, "open"), (4, "open"))
    table.says(ASYNC, PENDING, status=202)
    table.says(POLLED, PENDING, PENDING, LANDS)
    lands(table, ASYNC)
    assert await landing.merge(client, a_request()) == LANDED
    body = {"sha": HEAD, "merge_method": "squash", "merge_action": "direct_merge"}
    assert table.bodies[ASYNC] == body
    assert (table.calls[ASYNC], table.calls[POLLED], table.calls[MERGE]) == (1, 3, 0)


@pytest.mark.parametrize("state", ["open", "closed"])
async def test_nothing_is_sent_while_a_member_below_has_not_merged(table, client, landing, state):
    stacked(table, (1, "merged"), (2, state), (3, "open"))
    stop = await landing.merge(client, a_request())
    assert stop.code is LandStopCode.PR_REFUSED
    assert stop.blockers == (Blocker(BlockerCode.STACKED, "2"),)
    assert (table.calls[ASYNC], table.calls[MERGE]) == (0, 0)


async def test_nothing_is_sent_for_a_stack_whose_members_are_not_listed(table, client, landing):
    stacked(table, (3, "open"))
    table.says("GET /stacks", [])
    stop = await landing.merge(client, a_request())
    assert (stop.code, table.calls[ASYNC]) == (LandStopCode.PR_REFUSED, 0)


async def test_a_request_that_is_pending_for_this_head_already_is_waited_for(
    table, client, landing
):
    stacked(table, (3, "open"))
    table.says(ASYNC, PENDING, status=409)
    table.says(POLLED, LANDS)
    lands(table, ASYNC)
    assert await landing.merge(client, a_request()) == LANDED


async def test_a_request_that_is_pending_for_another_head_is_no_landing(table, client, landing):
    stacked(table, (3, "open"))
    other = {"uuid": "u1", "expected_head_sha": ELSEWHERE}
    exists = {"message": "A merge request already exists for this pull request."}
    table.says(ASYNC, asynchronous("pending", **{**other, **exists}), status=409)
    stop = await landing.merge(client, a_request())
    assert (stop.code, table.calls[POLLED]) == (LandStopCode.RETRY, 0)


async def test_a_request_that_stays_pending_is_read_again_and_not_sent_again(
    table, client, landing
):
    stacked(table, (3, "open"))
    table.says(ASYNC, PENDING, status=202)
    table.says(POLLED, PENDING)
    with pytest.raises(OutcomeUnknown, match="is pending"):
        await landing.merge(client, a_request())
    with pytest.raises(OutcomeUnknown, match="is pending"):
        await landing.merged(client, a_request())
    assert table.calls[ASYNC] == 1
    table.says(POLLED, asynchronous("failed"))
    assert await landing.merged(client, a_request()) is None


async def test_a_request_of_unknown_id_may_be_pending_for_a_minute(table, client, landing):
    def sent(seconds_ago):
        return a_request(sent_until=client.clock.now() - timedelta(seconds=seconds_ago))

    # Outside of a stack the call is answered once it has merged.
    assert await landing.merged(client, sent(59)) is None
    client.caches.keep_unstacked(REPO, 3, None)
    stacked(table, (3, "open"))
    with pytest.raises(OutcomeUnknown, match="may be pending"):
        await landing.merged(client, sent(59))
    assert await landing.merged(client, sent(60)) is None


@pytest.mark.parametrize("answer", [404, 500])
async def test_a_request_whose_state_cannot_be_read_has_an_unknown_outcome(
    table, client, landing, answer
):
    stacked(table, (3, "open"))
    table.says(ASYNC, PENDING, status=202)
    table.denies(POLLED, answer)
    with pytest.raises(OutcomeUnknown):
        await landing.merge(client, a_request())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Merge conflict detected", LandStopCode.RETRY),
        ('Required status check "unit" is failing.', LandStopCode.CHECKS_MISSING),
        ("Commits must have verified signatures.", LandStopCode.PR_REFUSED),
    ],
)
async def test_a_failed_request_is_a_refusal_in_githubs_words(table, client, landing, words, code):
    stacked(table, (3, "open"))
    table.says(ASYNC, PENDING, status=202)
    table.says(POLLED, {"status": "failed", "details": {"message": words}})
    stop = await landing.merge(client, a_request())
    assert (stop.code, stop.message) == (code, words)


async def test_a_refused_request_is_judged_as_any_refusal(table, client, landing):
    stacked(table, (3, "open"))
    table.says(ASYNC, asynchronous("failed"), status=400)
    table.says(FACTS, a_pull(state="CLOSED"))
    stop = await landing.merge(client, a_request())
    assert stop.code is LandStopCode.CLOSED


# Why it was refused, by what is read afterwards.


async def stopped(client, landing, request=None):
    stop = await landing.merge(client, request or a_request())
    assert isinstance(stop, LandStop)
    assert stop.message == REFUSED
    return stop.code


async def test_a_refusal_that_nothing_explains_is_told_as_such(table, client, landing):
    refuses(table)
    assert await stopped(client, landing) is LandStopCode.OTHER
    assert table.calls[COMMITS] == 0


async def test_a_target_that_moved_or_is_gone_is_why_it_was_refused(table, client, landing):
    refuses(table)
    table.says(TIP, a_commit(ELSEWHERE))
    assert await stopped(client, landing) is LandStopCode.BASE_MOVED
    table.denies(TIP, 404, "Not Found")
    assert await stopped(client, landing) is LandStopCode.BASE_MOVED


def strict_rules():
    parameters = {
        "required_status_checks": [{"context": "unit"}],
        "strict_required_status_checks_policy": True,
    }
    return [{"type": "required_status_checks", "parameters": parameters}]


def passed_check():
    check = {
        "__typename": "CheckRun",
        "name": "unit",
        "status": "COMPLETED",
        "conclusion": "SUCCESS",
        "isRequired": True,
    }
    contexts = {"nodes": [check], "pageInfo": {"hasNextPage": False}}
    return a_pull(statusCheckRollup={"contexts": contexts})


@pytest.mark.parametrize(
    ("status", "code"), [("diverged", LandStopCode.STRICT), ("ahead", LandStopCode.OTHER)]
)
async def test_under_a_strict_rule_a_head_that_lacks_the_tip_is_behind(
    table, client, landing, status, code
):
    refuses(table)
    table.says(RULES, strict_rules())
    table.says(FACTS, passed_check())
    call, answer = related(BASE, HEAD, status)
    table.says(call, answer)
    assert await stopped(client, landing) is code


async def test_under_a_strict_rule_a_branch_that_is_gone_has_moved(table, client, landing):
    refuses(table)
    table.says(RULES, strict_rules())
    table.says(FACTS, passed_check())
    table.denies(TIP, 404, "Not Found")
    assert await stopped(client, landing) is LandStopCode.BASE_MOVED


async def test_whether_a_head_is_behind_is_read_only_under_a_strict_rule(table, client, landing):
    refuses(table)
    call, answer = related(BASE, HEAD, "diverged")
    table.says(call, answer)
    assert await stopped(client, landing) is LandStopCode.OTHER
    assert table.calls[call] == 0


async def test_rules_that_cannot_be_read_explain_nothing(table, client, landing):
    refuses(table)
    table.denies(RULES, 403, "Resource not accessible by integration")
    assert await stopped(client, landing) is LandStopCode.OTHER
    assert table.calls[COMMITS] == 0


def commits_signed(*signed):
    return [{"commit": {"verification": {"verified": each}}} for each in signed]


@pytest.mark.parametrize(
    ("method", "commits", "code"),
    [
        (MergeMethod.MERGE_COMMIT, commits_signed(True, False), LandStopCode.PR_REFUSED),
        (MergeMethod.MERGE_COMMIT, commits_signed(True, True), LandStopCode.OTHER),
        # GitHub makes and signs the commit itself.
        (MergeMethod.SQUASH, commits_signed(False), LandStopCode.OTHER),
    ],
)
async def test_where_signatures_are_required_each_commit_that_comes_onto_the_branch_has_one(
    made, landing, method, commits, code
):
    table, client = made
    refuses(table)
    table.says(RULES, [{"type": "required_signatures"}])
    table.says(COMMITS, commits)
    assert await stopped(client, landing, a_request(method)) is code


async def test_no_signature_is_looked_for_where_none_is_required(table, client, landing):
    refuses(table)
    table.says(COMMITS, commits_signed(False))
    request = a_request(MergeMethod.MERGE_COMMIT)
    assert await stopped(client, landing, request) is LandStopCode.OTHER
    assert table.calls[COMMITS] == 0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"data": {"repository": {"pullRequest": {"isInMergeQueue": True}}}}, "pr_refused"),
        ({"data": None, "errors": [{"message": "no such field", "type": "X"}]}, "other"),
        ({"data": None, "errors": [{"message": "no", "type": "FORBIDDEN"}]}, "other"),
    ],
)
async def test_a_host_that_knows_no_merge_queue_has_none(table, client, landing, answer, code):
    refuses(table)
    table.says(QUEUED, answer)
    assert await stopped(client, landing) == code


@pytest.mark.parametrize(
    ("status", "permissions", "code"),
    [
        (403, {"contents": "write", "pull_requests": "write"}, LandStopCode.OTHER),
        (403, {"contents": "read", "pull_requests": "write"}, LandStopCode.NOT_PERMITTED),
        (403, {"contents": "write"}, LandStopCode.NOT_PERMITTED),
        (405, {"contents": "read"}, LandStopCode.OTHER),
    ],
)
async def test_a_forbidden_merge_is_our_lost_right_only_if_a_new_token_lacks_it(
    made, landing, status, permissions, code
):
    table, client = made
    refuses(table, status)
    table.permissions = permissions
    assert await stopped(client, landing) is code


# The advance.


async def test_an_advance_moves_the_target_and_deletes_the_test_branch_at_once(
    table, client, landing
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    lands(table, ADVANCE)
    for _ in range(2):
        assert await landing.advance(client, ADVANCED) == LANDED
    variables = table.bodies[ADVANCE]["variables"]
    assert variables["repository"] == "R_1"
    assert [(one["beforeOid"], one["afterOid"]) for one in variables["updates"]] == [
        (BASE, MADE),
        (MADE, "0" * 40),
    ]
    assert (table.calls[ADVANCE], table.calls[NODE]) == (2, 1)


async def test_what_does_not_descend_from_the_tip_is_not_sent(table, client, landing):
    call, answer = related(BASE, MADE, "diverged")
    table.says(call, answer)
    assert (await landing.advance(client, ADVANCED)).code is LandStopCode.STALE
    assert table.calls[ADVANCE] == 0


@pytest.mark.parametrize(("took_s", "is_sent"), [(READS_S, True), (READS_S + 0.5, False)])
async def test_an_advance_whose_reads_took_too_long_is_not_sent(
    table, client, landing, took_s, is_sent
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    table.slow[call] = took_s
    lands(table, ADVANCE)
    answer = await landing.advance(client, ADVANCED)
    assert (answer == LANDED) is is_sent
    assert table.calls[ADVANCE] == int(is_sent)
    if not is_sent:
        assert answer.code is LandStopCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("tip", "code"),
    [
        (BASE, LandStopCode.RULE_DENIED),
        (ELSEWHERE, LandStopCode.BASE_MOVED),
        (None, LandStopCode.BASE_MOVED),
    ],
)
async def test_a_refused_advance_says_whether_the_target_has_moved(
    table, client, landing, tip, code
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    table.says(ADVANCE, {"data": None, "errors": [{"message": REFUSED, "type": ""}]})
    if tip is None:
        table.denies(TIP, 404, "Not Found")
    else:
        table.says(TIP, a_commit(tip))
    stop = await landing.advance(client, ADVANCED)
    assert (stop.code, stop.message) == (code, REFUSED)


@pytest.mark.parametrize(
    ("tip", "words"), [(BASE, UNFINISHED), (ELSEWHERE, UNFINISHED), (MADE, REFUSED)]
)
async def test_an_advance_that_github_may_have_carried_out_has_an_unknown_outcome(
    table, client, landing, tip, words
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    table.says(ADVANCE, {"data": None, "errors": [{"message": words}]})
    table.says(TIP, a_commit(tip, BASE))
    with pytest.raises(OutcomeUnknown, match=words[:10]):
        await landing.advance(client, ADVANCED)


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_second_advance_whose_test_branch_is_gone_has_an_unknown_outcome(
    table, client, landing, is_there
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    table.says(ADVANCE, {"data": None, "errors": [{"message": REFUSED}]})
    table.says(TIP, a_commit(BASE))
    if is_there:
        table.says(TESTED, {"ref": "refs/heads/headgate/merge/pr-3/r1", "object": {"sha": MADE}})
    else:
        table.denies(TESTED, 404, "Not Found")
    assert (await landing.advance(client, ADVANCED)).code is LandStopCode.RULE_DENIED
    second = replace(ADVANCED, sent_until=client.clock.now())
    if is_there:
        assert (await landing.advance(client, second)).code is LandStopCode.RULE_DENIED
        return
    with pytest.raises(OutcomeUnknown, match="may be done"):
        await landing.advance(client, second)


@pytest.mark.parametrize(("status", "is_landed"), [("ahead", True), ("diverged", False)])
async def test_an_advance_landed_if_the_tip_contains_what_was_sent(
    table, client, landing, status, is_landed
):
    above = a_commit(ELSEWHERE, MADE)
    table.says(TIP, above)
    call, answer = related(MADE, ELSEWHERE, status)
    table.says(call, answer)
    table.says(f"GET /compare/{BASE}...{ELSEWHERE}", {"commits": [a_commit(MADE, BASE), above]})
    found = await landing.advanced(client, ADVANCED)
    assert (found is not None) is is_landed
    if found is not None:
        assert found.commit == MADE
        assert [each.sha for each in found.chain] == [ELSEWHERE, MADE]


async def test_a_branch_that_shows_an_advance_late_does_not_pass_for_one_that_did_not_move(
    table, client, landing
):
    # The update deletes the test branch as well, or does nothing.
    table.denies(TESTED, 404, "Not Found")
    for kept_s in (0, SHOWN_FOR.total_seconds() - 1):
        sent_until = client.clock.now() - timedelta(seconds=kept_s)
        with pytest.raises(OutcomeUnknown, match="main does not show it"):
            await landing.advanced(client, replace(ADVANCED, sent_until=sent_until))
    long_ago = replace(ADVANCED, sent_until=client.clock.now() - SHOWN_FOR)
    assert await landing.advanced(client, long_ago) == Merged(MADE, ())


async def test_an_advance_that_github_has_answered_was_done_although_both_branches_look_old(
    table, client, landing
):
    call, answer = related(BASE, MADE, "ahead")
    table.says(call, answer)
    table.says(TESTED, {"ref": "refs/heads/headgate/merge/pr-3/r1", "object": {"sha": MADE}})
    assert await landing.advanced(client, ADVANCED) is None
    with pytest.raises(OutcomeUnknown, match="main does not show it"):
        await landing.advance(client, ADVANCED)
    with pytest.raises(OutcomeUnknown, match="main does not show it"):
        await landing.advanced(client, replace(ADVANCED, sent_until=client.clock.now()))
    assert await landing.advanced(client, ADVANCED) == Merged(MADE, ())


async def test_a_target_that_did_not_move_or_is_gone_landed_nothing(table, client, landing):
    call, answer = related(MADE, BASE, "ahead")
    table.says(call, answer)
    table.says(TESTED, {"ref": "refs/heads/headgate/merge/pr-3/r1", "object": {"sha": MADE}})
    assert await landing.advanced(client, ADVANCED) is None
    table.denies(TIP, 404, "Not Found")
    assert await landing.advanced(client, ADVANCED) is None
    assert table.calls[call] == 0


# What GitHub shows afterwards.


async def settled(client, landing):
    before = client.clock.monotonic_s()
    is_merged = await landing.settle_merged(client, LandedPull(3, HEAD, MADE, "main", "topic-2"))
    return is_merged, client.clock.monotonic_s() - before


async def test_a_pull_request_that_is_shown_as_merged_is_left_alone(table, client, landing):
    table.says(FACTS, a_pull(), a_pull(), merged_pull())
    assert await settled(client, landing) == (True, sum(SHOWN_WAITS_S[:2]))
    table.says(FACTS, merged_pull())
    assert await settled(client, landing) == (True, 0)
    assert (table.calls[SAID], table.calls[CLOSED]) == (0, 0)


async def test_a_pull_request_that_is_never_shown_as_merged_is_explained_and_closed(
    table, client, landing
):
    assert await settled(client, landing) == (False, sum(SHOWN_WAITS_S))
    assert table.bodies[CLOSED] == {"state": "closed"}
    assert MADE[:8] in table.bodies[SAID]["body"]


@pytest.mark.parametrize("other", [{"headRefOid": ELSEWHERE}, {"baseRefName": "release"}])
async def test_a_pull_request_with_another_head_or_base_by_now_stays_open(
    table, client, landing, other
):
    table.says(FACTS, a_pull(**other))
    assert await settled(client, landing) == (False, 0)
    assert (table.calls[SAID], table.calls[CLOSED]) == (0, 0)
