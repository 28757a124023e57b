"""What every provider does with reads and notices; the runners give the `stage`."""

from datetime import timedelta

import pytest

from service.provider.errors import Gone, GoneKind, Refused, RefusedCode
from service.provider.values import (
    AccessLevel,
    CheckReport,
    CheckReportStatus,
    Emoji,
    Known,
    Reaction,
    Reply,
    StatusComment,
    Unreadable,
)
from service.vocabulary import (
    Actor,
    ActorKind,
    Blocker,
    BlockerCode,
    CheckKind,
    CheckOutcome,
    Mergeability,
    MergeMethod,
    PullRequestState,
    RepoRef,
    RequiredName,
    Sha,
)

MARKER = "<!-- headgate:status v=1 queue=main -->"
NOWHERE = Sha("0" * 39 + "1")


class Reads:
    """Facts, as the provider has them at that moment."""

    async def test_repositories_are_listed_with_their_owner(self, stage):
        found = await stage.provider.repositories()
        assert [each.ref for each in found] == [stage.repo]
        assert found[0] == await stage.provider.repository(stage.repo)
        assert found[0].default_branch == "main"
        assert found[0].merge_methods == frozenset(MergeMethod)
        assert not found[0].archived

    async def test_a_renamed_repository_is_followed(self, stage):
        before = await stage.provider.repository(stage.repo)
        await stage.act("rename", to="gadgets")
        after = await stage.provider.repository(stage.repo)
        assert after.id == before.id
        assert after.ref.name == "gadgets"

    async def test_a_repository_that_is_not_there_is_gone(self, stage):
        with pytest.raises(Gone) as gone:
            await stage.provider.repository(RepoRef(stage.repo.host, "octo", "nothing"))
        assert gone.value.kind is GoneKind.REPOSITORY

    @pytest.mark.parametrize("name", ["..", "", "a/../b", "%2e%2e", "a b?c#d"])
    async def test_an_odd_name_is_no_other_address(self, stage, name):
        with pytest.raises(Gone):
            await stage.provider.repository(RepoRef(stage.repo.host, "octo", name))

    async def test_a_pull_request_is_told_in_full(self, stage):
        number, head = await stage.open({"a.txt": "a\n"}, title="Add a", body="why")
        await stage.act("label", number=number, label="urgent")
        found = await stage.provider.pull_request(stage.repo, number)
        assert (found.number, found.title, found.body) == (number, "Add a", "why")
        assert (found.author, found.state, found.draft) == ("alice", PullRequestState.OPEN, False)
        assert (found.base_branch, found.base_tip) == ("main", stage.tip())
        assert (found.head_sha, found.head_repo) == (head, stage.repo.slug)
        assert found.author_id == stage.actor("alice").id
        assert found.labels == ("urgent",)
        assert found.mergeability is Mergeability.MERGEABLE
        assert (found.is_fork, found.merge_commit, found.blockers) == (False, None, ())

    async def test_mergeability_is_waited_for(self, stage):
        await stage.knobs(mergeable_delay_s=2)
        opened = await stage.act("open", files={"a.txt": "a\n"})
        before = stage.clock.monotonic_s()
        found = await stage.provider.pull_request(stage.repo, opened["number"])
        assert found.mergeability is Mergeability.MERGEABLE
        assert stage.clock.monotonic_s() > before

    async def test_mergeability_that_never_comes_is_in_progress(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.fault("mergeable_null", nth=None, s=600)
        await stage.act("push", number=number, files={"a.txt": "b\n"})
        before = stage.clock.monotonic_s()
        found = await stage.provider.pull_request(stage.repo, number)
        assert found.mergeability is Mergeability.IN_PROGRESS
        assert stage.clock.monotonic_s() - before == 31

    async def test_a_fork_is_known_by_its_repository(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"}, by="dave", fork=True)
        found = await stage.provider.pull_request(stage.repo, number)
        assert found.is_fork
        assert found.head_repo == "dave/widgets"

    async def test_a_closed_pull_request_is_closed_and_a_merged_one_merged(self, stage):
        closed, _ = await stage.open({"a.txt": "a\n"})
        merged, _ = await stage.open({"b.txt": "b\n"})
        await stage.act("close", number=closed)
        landed = await stage.act("merge", number=merged)
        found = await stage.provider.pull_request(stage.repo, closed)
        assert (found.state, found.merge_commit) == (PullRequestState.CLOSED, None)
        assert found.blockers == (Blocker(BlockerCode.CLOSED),)
        found = await stage.provider.pull_request(stage.repo, merged)
        assert (found.state, found.merge_commit) == (PullRequestState.MERGED, landed["sha"])

    async def test_a_draft_and_a_conflict_are_blockers(self, stage):
        number, _ = await stage.open({"app.py": "x\n"}, draft=True)
        await stage.act("push", branch="main", files={"app.py": "y\n"})
        found = await stage.provider.pull_request(stage.repo, number)
        assert found.mergeability is Mergeability.NOT_MERGEABLE
        assert found.blockers == (Blocker(BlockerCode.DRAFT), Blocker(BlockerCode.CONFLICT))

    async def test_reviews_are_blockers_while_a_rule_wants_them(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.rules(protection={"main": {"approvals": 1}})
        assert await stage.blockers(number) == (Blocker(BlockerCode.REVIEW_REQUIRED),)
        await stage.act("request_changes", by="bob", number=number)
        assert await stage.blockers(number) == (Blocker(BlockerCode.CHANGES_REQUESTED),)
        await stage.act("approve", by="bob", number=number)
        assert await stage.blockers(number) == ()

    async def test_those_who_approve_it_are_named_if_they_may_write(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"}, by="dave", fork=True)
        await stage.act("request_changes", by="alice", number=number)
        for person in ("carol", "bob"):
            await stage.act("approve", by=person, number=number)
        pull = await stage.provider.pull_request(stage.repo, number)
        assert pull.approved_by == ("bob",)
        approval = pull.approvals[0]
        assert (approval.head, approval.at is None) == (pull.head_sha, False)

    async def test_authors_of_its_commits_are_named_once_with_their_co_authors(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        named = "Change a\n\nCo-authored-by: Eve <eve@x.example>"
        for person in ("bob", "alice"):
            files = {"a.txt": person}
            await stage.act("push", by=person, number=number, files=files, message=named)
        found = await stage.provider.commit_authors(stage.repo, number)
        assert [(one.name, one.login) for one in found] == [
            ("alice", "alice"),
            ("bob", "bob"),
            ("Eve", None),
        ]
        assert found[2].email == "eve@x.example"

    async def test_authors_of_more_commits_than_a_page_holds_are_read(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        for count in range(101):
            named = f"Change a\n\nCo-authored-by: Eve <{count}@x.example>"
            files = {"a.txt": f"{count}"}
            await stage.act("push", by="alice", number=number, files=files, message=named)
        found = await stage.provider.commit_authors(stage.repo, number)
        assert len(found) == 102

    async def test_authors_of_a_pull_request_that_is_not_there_are_gone(self, stage):
        with pytest.raises(Gone) as gone:
            await stage.provider.commit_authors(stage.repo, 99)
        assert gone.value.kind is GoneKind.PULL_REQUEST

    async def test_open_conversations_are_a_blocker_while_a_rule_wants_them_resolved(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("discuss", by="bob", number=number, body="why?")
        assert await stage.blockers(number) == ()
        await stage.rules(rulesets=[stage.ruleset("pull_request", **stage.conversations())])
        await stage.provider.forget_rules(stage.repo)
        assert await stage.blockers(number) == (Blocker(BlockerCode.CONVERSATIONS_UNRESOLVED),)
        await stage.act("resolve", number=number)
        assert await stage.blockers(number) == ()

    async def test_required_checks_of_the_head_are_blockers_until_they_pass(self, stage):
        await stage.rules(required_checks=["unit"])
        opened = await stage.act("open", files={"a.txt": "a\n"})
        await stage.clock.sleep(1)
        number = opened["number"]
        assert await stage.blockers(number) == (Blocker(BlockerCode.CHECK_PENDING, "unit"),)
        await stage.settle()
        assert await stage.blockers(number) == ()
        bad, _ = await stage.open({"bad.txt": "x\n"})
        assert await stage.blockers(bad) == (Blocker(BlockerCode.CHECK_FAILING, "unit"),)

    async def test_workflow_files_that_we_may_not_write_are_a_blocker(self, stage):
        number, _ = await stage.open({".github/workflows/ci.yml": "on: push\n"})
        assert await stage.blockers(number) == (Blocker(BlockerCode.OTHER, "workflows"),)
        moved, _ = await stage.open({"workflows.txt": "x\n"})
        assert await stage.blockers(moved) == ()

    async def test_a_pull_request_that_is_not_there_is_gone(self, stage):
        with pytest.raises(Gone) as gone:
            await stage.provider.pull_request(stage.repo, 999)
        assert gone.value.kind is GoneKind.PULL_REQUEST
        with pytest.raises(Gone) as gone:
            await stage.provider.changed_files(stage.repo, 999)
        assert gone.value.kind is GoneKind.PULL_REQUEST

    async def test_many_pull_requests_are_told_as_each_is_by_itself(self, stage):
        await stage.act("push", branch="other", files={"o.txt": "o\n"})
        numbers = [
            (await stage.open({"a.txt": "a\n"}, title="Add a", body="why"))[0],
            (await stage.open({"bad.txt": "x\n"}, by="dave", fork=True))[0],
            (await stage.open({"app.py": "x\n"}, draft=True))[0],
            (await stage.open({".github/workflows/ci.yml": "on: push\n"}, base="other"))[0],
            (await stage.open({"c.txt": "c\n"}))[0],
            (await stage.open({"d.txt": "d\n"}))[0],
        ]
        await stage.act("close", number=numbers[4])
        await stage.act("merge", number=numbers[5])
        await stage.act("push", branch="main", files={"app.py": "y\n"})
        await stage.rules(required_checks=["unit"], protection={"main": {"approvals": 1}})
        alone = {each: await stage.provider.pull_request(stage.repo, each) for each in numbers}
        assert {blocker.code for pull in alone.values() for blocker in pull.blockers} == {
            BlockerCode.CHECK_FAILING,
            BlockerCode.CLOSED,
            BlockerCode.CONFLICT,
            BlockerCode.DRAFT,
            BlockerCode.OTHER,
            BlockerCode.REVIEW_REQUIRED,
        }
        assert {pull.state for pull in alone.values()} == set(PullRequestState)
        found = await stage.provider.pull_requests(stage.repo, [*numbers, numbers[0], 999])
        assert found == {999: None} | {n: alone[n] for n in numbers}

    async def test_no_pull_requests_are_none(self, stage):
        assert await stage.provider.pull_requests(stage.repo, []) == {}

    async def test_many_are_not_waited_for_until_it_is_known_whether_they_merge(self, stage):
        opened = await stage.act("open", files={"a.txt": "a\n"})
        before = stage.clock.monotonic_s()
        found = await stage.provider.pull_requests(stage.repo, [opened["number"]])
        assert found[opened["number"]].mergeability is Mergeability.IN_PROGRESS
        assert stage.clock.monotonic_s() == before

    async def test_many_of_a_repository_that_is_not_there_are_gone_with_it(self, stage):
        with pytest.raises(Gone) as gone:
            await stage.provider.pull_requests(RepoRef(stage.repo.host, "octo", "nothing"), [1])
        assert gone.value.kind is GoneKind.REPOSITORY

    async def test_open_pull_requests_are_those_onto_the_branch(self, stage):
        await stage.act("push", branch="other", files={"o.txt": "o\n"})
        one = await stage.open({"a.txt": "a\n"})
        closed, _ = await stage.open({"b.txt": "b\n"})
        elsewhere = await stage.open({"c.txt": "c\n"}, base="other")
        await stage.act("close", number=closed)
        for base, expected in (("main", one), ("other", elsewhere)):
            (listed,) = await stage.provider.open_pull_requests(stage.repo, base)
            assert (listed.number, listed.head) == expected
            assert listed.shown_at is not None

    async def test_changed_files_hold_old_and_new_names(self, stage):
        content = "1\n2\n3\n"
        number, _ = await stage.open({"app.py": None, "moved.py": content, "a.txt": "a\n"})
        for _ in range(2):
            found = await stage.provider.changed_files(stage.repo, number)
            assert found.complete
            assert set(found.paths) == {"app.py", "moved.py", "a.txt"}
            assert found.deleted == ("app.py",)
            await stage.provider.pull_request(stage.repo, number)

    async def test_deleted_files_are_named_as_such(self, stage):
        number, _ = await stage.open({"app.py": None, "a.txt": "a\n"})
        for _ in range(2):
            found = await stage.provider.changed_files(stage.repo, number)
            assert (set(found.paths), found.deleted) == ({"app.py", "a.txt"}, ("app.py",))
            await stage.provider.pull_request(stage.repo, number)

    @pytest.mark.parametrize(
        ("login", "level"),
        [
            ("alice", AccessLevel.MAINTAIN),
            ("bob", AccessLevel.WRITE),
            ("carol", AccessLevel.READ),
            ("erin", AccessLevel.TRIAGE),
        ],
    )
    async def test_access_is_the_role_of_the_number(self, stage, login, level):
        await stage.act("role", login="erin", role="triage")
        actor = stage.actor(login)
        assert await stage.provider.access(stage.repo, actor) is level
        renamed = Actor(ActorKind.PERSON, "somebody-else", actor.id)
        assert await stage.provider.access(stage.repo, renamed) is level

    async def test_access_in_doubt_is_none(self, stage):
        alice = stage.actor("alice")
        for doubtful in (
            Actor(ActorKind.PERSON, "alice", "424242"),
            Actor(ActorKind.PERSON, "alice", ""),
            Actor(ActorKind.PERSON, "nobody-is-called-that", ""),
            Actor(ActorKind.PERSON, "../../user", "x"),
        ):
            assert await stage.provider.access(stage.repo, doubtful) is AccessLevel.NONE
        assert await stage.provider.access(stage.repo, alice) is AccessLevel.MAINTAIN

    async def test_nothing_required_is_known_to_be_nothing(self, stage):
        assert await stage.provider.required(stage.repo, "main") == Known((), None, ())

    async def test_required_is_the_union_of_both_kinds_of_rules(self, stage):
        await stage.rules(
            rulesets=[stage.required("unit", ("pinned", 4711))],
            protection={"main": {"checks": ["lint", "unit"]}},
        )
        found = await stage.provider.required(stage.repo, "main")
        assert set(found.checks) == {
            RequiredName("unit"),
            RequiredName("pinned", "4711"),
            RequiredName("lint"),
        }

    async def test_our_own_check_is_not_waited_for(self, stage):
        await stage.rules(required_checks=["unit", "Headgate (main)"])
        found = await stage.provider.required(stage.repo, "main")
        assert found.checks == (RequiredName("unit"),)
        assert found.notes == ("self_required",)
        assert found.own_required

    async def test_rules_that_are_not_enforced_require_nothing(self, stage):
        ruleset = {**stage.required("unit"), "enforcement": "disabled"}
        await stage.rules(rulesets=[ruleset])
        assert (await stage.provider.required(stage.repo, "main")).checks == ()

    async def test_rules_may_leave_only_some_merge_methods(self, stage):
        allowed = {**stage.conversations(), "allowed_merge_methods": ["squash", "merge"]}
        linear = {"type": "required_linear_history"}
        ruleset = stage.ruleset("pull_request", **allowed)
        await stage.rules(rulesets=[{**ruleset, "rules": [*ruleset["rules"], linear]}])
        found = await stage.provider.required(stage.repo, "main")
        assert found.merge_methods == frozenset({MergeMethod.SQUASH})
        assert found.notes == ("required_linear_history",)

    async def test_rules_are_kept_until_they_are_forgotten_or_old(self, stage):
        await stage.provider.required(stage.repo, "main")
        await stage.rules(required_checks=["unit"])
        assert (await stage.provider.required(stage.repo, "main")).checks == ()
        await stage.provider.forget_rules(stage.repo)
        assert (await stage.provider.required(stage.repo, "main")).checks
        await stage.rules(required_checks=["unit", "lint"])
        await stage.clock.sleep(301)
        assert len((await stage.provider.required(stage.repo, "main")).checks) == 2

    async def test_the_providers_own_queue_is_refused(self, stage):
        await stage.rules(rulesets=[stage.ruleset("merge_queue")])
        with pytest.raises(Refused) as refused:
            await stage.provider.required(stage.repo, "main")
        assert refused.value.code is RefusedCode.PROVIDER_QUEUE

    async def test_rules_that_cannot_be_read_are_not_none(self, stage):
        await stage.fault("fail_before", path="*/rules/branches/*", nth=None, status=502)
        assert isinstance(await stage.provider.required(stage.repo, "main"), Unreadable)

    async def test_checks_are_all_reports_on_exactly_that_commit(self, stage):
        _, head = await stage.open({"bad.txt": "x\n"})
        found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert (found.sha, found.complete) == (head, True)
        assert [(each.kind, each.name, each.outcome) for each in found.items] == [
            (CheckKind.SUITE_RUN, "unit", CheckOutcome.FAILED)
        ]
        assert found.items[0].url.startswith("http")
        nothing = await stage.provider.checks(stage.repo, stage.tip(), skipped_pass=True)
        assert {each.name for each in nothing.items} <= {"unit"}

    async def test_reports_of_an_app_that_is_gone_count_for_no_pin(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        await stage.settle()
        await stage.rules(rulesets=[stage.required(("unit", stage.ci_app()))])
        before = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert await stage.blockers(number) == ()
        stage.forget_ci_app()
        found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert [each.source_id for each in before.items] == [str(stage.ci_app())]
        assert [(each.name, each.source_id) for each in found.items] == [("unit", None)]
        assert await stage.blockers(number) == (Blocker(BlockerCode.CHECK_MISSING, "unit"),)

    async def test_a_commit_that_is_not_known_yet_has_no_complete_reports(self, stage):
        found = await stage.provider.checks(stage.repo, NOWHERE, skipped_pass=True)
        assert (found.items, found.complete) == ((), False)

    async def test_checks_of_many_commits_are_those_of_each_by_fewer_calls(self, stage):
        heads = [(await stage.open({f"{name}.txt": "x\n"}))[1] for name in ("good", "bad")]
        asked = [*heads, stage.tip(), NOWHERE]
        before = len(stage.calls())
        found = await stage.provider.checks_of_many(stage.repo, asked, skipped_pass=True)
        queries = [call for call in stage.calls(before) if call["path"].endswith("/graphql")]
        assert len(queries) == 1
        for sha in asked:
            alone = await stage.provider.checks(stage.repo, sha, skipped_pass=True)
            assert found[sha] == alone
        assert found[heads[0]].items

    async def test_checks_are_running_before_they_end(self, stage):
        opened = await stage.act("open", files={"a.txt": "a\n"})
        await stage.clock.sleep(1)
        found = await stage.provider.checks(stage.repo, Sha(opened["head"]), skipped_pass=True)
        assert [each.outcome for each in found.items] == [CheckOutcome.RUNNING]

    async def test_reports_cost_nothing_of_the_rest_limit(self, stage):
        _, head = await stage.open({"bad.txt": "x\n"})
        await stage.settle()
        await stage.provider.tip(stage.repo, "main")
        before = len(stage.calls())
        await stage.provider.checks(stage.repo, head, skipped_pass=True)
        (call,) = stage.calls(before)
        assert call["path"].endswith("/graphql")

    async def test_statuses_are_reports_too_and_name_the_app_of_a_bot(self, stage):
        ci = (
            "triggers: {pull_request: true}\n"
            "checks:\n"
            "  - {name: lint, kind: status, seconds: 1}\n"
            "  - {name: unit, seconds: 1}\n"
        )
        _, head = await stage.open({".sandbox/ci.yml": ci})
        found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        newest = {each.name: each for each in sorted(found.items, key=lambda one: int(one.id))}
        assert newest["lint"].kind is CheckKind.STATUS
        assert newest["lint"].outcome is CheckOutcome.PASSED
        assert newest["lint"].source_id == newest["unit"].source_id

    @pytest.mark.parametrize("switch", [True, False])
    async def test_skipped_follows_the_switch_and_the_guard(self, stage, switch):
        ci = (
            "triggers: {pull_request: true}\n"
            "checks:\n"
            "  - {name: build, app: one, rules: [{exists: [bad.txt], conclusion: failure}]}\n"
            "  - {name: deploy, app: one, rules: [{conclusion: skipped}]}\n"
            "  - {name: docs, app: two, rules: [{conclusion: skipped}]}\n"
        )
        _, head = await stage.open({".sandbox/ci.yml": ci, "bad.txt": "x\n"})
        found = await stage.provider.checks(stage.repo, head, skipped_pass=switch)
        outcomes = {each.name: each.outcome for each in found.items}
        assert outcomes["build"] is CheckOutcome.FAILED
        assert outcomes["deploy"] is CheckOutcome.FAILED
        assert outcomes["docs"] is (CheckOutcome.SKIPPED if switch else CheckOutcome.FAILED)

    async def test_a_pull_request_names_the_checks_its_head_skipped_or_failed(self, stage):
        ci = (
            "triggers: {pull_request: true}\n"
            "checks:\n"
            "  - {name: build}\n"
            "  - {name: bad, app: one, rules: [{conclusion: failure}]}\n"
            "  - {name: deploy, rules: [{conclusion: skipped}]}\n"
            "  - {name: docs, rules: [{conclusion: neutral}]}\n"
        )
        number, _ = await stage.open({".sandbox/ci.yml": ci})
        await stage.settle()
        found = await stage.provider.pull_request(stage.repo, number)
        assert found.skipped_checks == ("deploy", "docs")
        assert found.failed_checks == ("bad",)

    async def test_more_reports_than_a_page_holds_are_all_read(self, stage):
        checks = "".join(f"  - {{name: c{number}}}\n" for number in range(130))
        ci = f"triggers: {{pull_request: true}}\nchecks:\n{checks}"
        _, head = await stage.open({".sandbox/ci.yml": ci})
        found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert len({each.name for each in found.items}) == 130
        assert found.complete

    async def test_the_tip_is_a_commit_with_tree_and_parents(self, stage):
        await stage.act("push", branch="main", files={"a.txt": "a\n"})
        found = await stage.provider.tip(stage.repo, "main")
        assert (found.sha, found.tree) == (stage.tip(), stage.tree(stage.tip()))
        assert found.parents == stage.parents(stage.tip())
        assert await stage.provider.commit(stage.repo, found.sha) == found

    @pytest.mark.parametrize("branch", ["release/1.0", "a%2Fb", "ü/emoji-🎉", "100%", "a#b", "x"])
    async def test_any_branch_name_is_found(self, stage, branch):
        await stage.act("push", branch=branch, files={"a.txt": "a\n"})
        found = await stage.provider.tip(stage.repo, branch)
        assert found.sha == stage.tip(branch)
        assert isinstance(await stage.provider.required(stage.repo, branch), Known)

    async def test_what_does_not_exist_is_none(self, stage):
        assert await stage.provider.tip(stage.repo, "nothing") is None
        assert await stage.provider.commit(stage.repo, NOWHERE) is None
        gone = RepoRef(stage.repo.host, "octo", "nothing")
        with pytest.raises(Gone):
            await stage.provider.tip(gone, "main")

    async def test_contains_is_reachability(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        base = stage.tip()
        contains = stage.provider.contains
        assert await contains(stage.repo, base, head)
        assert await contains(stage.repo, head, head)
        assert not await contains(stage.repo, head, base)
        assert not await contains(stage.repo, NOWHERE, base)
        await stage.act("merge", number=number, method="merge")
        assert await contains(stage.repo, head, stage.tip())

    async def test_a_later_commit_of_a_branch_has_a_higher_position(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        position, before = stage.provider.position, stage.tip()
        await stage.act("merge", number=number, method="merge")
        first = await position(stage.repo, before)
        assert await position(stage.repo, head) == first + 1
        assert await position(stage.repo, stage.tip()) == first + 2
        assert await position(stage.repo, NOWHERE) is None


class Deliveries:
    """What a delivery spares; what did not reach us, and having it sent again."""

    @pytest.mark.parametrize(("actions", "reads"), [(("opened",), 0), (("opened", "stacked"), 1)])
    async def test_a_new_head_in_no_stack_spares_the_read_of_its_stack(self, stage, actions, reads):
        number, head = await stage.open({"a.txt": "a\n"})
        for action in actions:
            stage.provider.signals_of(stage.pull_delivery(action, number, head))
        await stage.provider.pull_request(stage.repo, number)
        assert stage.called("GET", f"/pulls/{number}") == reads

    async def test_failed_deliveries_are_told_once_each_oldest_first(self, stage):
        started = stage.clock.now()
        lost = await stage.lose_deliveries()
        found = await stage.provider.failed_deliveries(started)
        assert [one.id for one in found] == lost
        assert [one.at for one in found] == sorted(one.at for one in found)

    async def test_one_that_failed_again_is_told_by_its_newest_try(self, stage):
        started = stage.clock.now()
        lost = await stage.lose_deliveries()
        first, *others = await stage.provider.failed_deliveries(started)
        await stage.provider.redeliver(first.attempt)
        await stage.settle()
        found = await stage.provider.failed_deliveries(started)
        assert sorted(one.id for one in found) == sorted(lost)
        assert found[:-1] == tuple(others)
        assert found[-1].id == first.id
        assert found[-1].attempt != first.attempt

    async def test_what_is_sent_again_keeps_its_id(self, stage):
        started = stage.clock.now()
        lost = await stage.lose_deliveries()
        for one in await stage.provider.failed_deliveries(started):
            await stage.provider.redeliver(one.attempt)
        await stage.settle()
        assert stage.sent() == [*lost, *lost]

    async def test_older_failures_are_not_told(self, stage):
        await stage.lose_deliveries()
        later = stage.clock.now() + timedelta(seconds=1)
        assert await stage.provider.failed_deliveries(later) == ()

    async def test_what_is_too_old_to_be_sent_again_is_done(self, stage):
        await stage.provider.redeliver("1")
        await stage.settle()
        assert stage.sent() == []


class Notices:
    """What is said: each thing once, however often it is asked for."""

    async def test_a_status_comment_is_written_once_and_then_changed(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        first = await stage.say(StatusComment(number, MARKER, "one", first=True))
        again = await stage.say(StatusComment(number, MARKER, "two"))
        known = await stage.say(StatusComment(number, MARKER, "three", known_id=first))
        assert first == again == known
        assert stage.comments(number) == [f"{MARKER}\nthree"]

    @pytest.mark.parametrize("letter", ["a", "é", "試", "🎉"])
    async def test_texts_are_cut_to_what_github_takes(self, stage, letter):
        number, head = await stage.open({"a.txt": "a\n"})
        text = letter * 70_000
        await stage.say(StatusComment(number, MARKER, text))
        await stage.say(stage.check(head, CheckReportStatus.SUCCESS, summary=text))
        (comment,) = stage.comments(number)
        assert comment.startswith(f"{MARKER}\n{letter}")
        assert stage.own_checks(head) == [("completed", "success")]

    async def test_a_text_that_is_there_already_is_not_written_again(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        for notice in (
            StatusComment(number, MARKER, "one"),
            stage.check(head, CheckReportStatus.QUEUED),
            stage.check(head, CheckReportStatus.SUCCESS),
        ):
            written = await stage.say(notice)
            before = len(stage.calls())
            assert await stage.say(notice) == written
            assert {call["method"] for call in stage.calls(since=before)} == {"GET"}

    async def test_a_text_that_another_process_has_replaced_is_written_again(self, stage):
        number, head = await stage.open({"a.txt": "a\n"})
        known = await stage.say(StatusComment(number, MARKER, "one", first=True))
        await stage.say_by_another_process(StatusComment(number, MARKER, "two", known_id=known))
        await stage.say(StatusComment(number, MARKER, "one", known_id=known))
        assert stage.comments(number) == [f"{MARKER}\none"]
        queued = stage.check(head, CheckReportStatus.QUEUED, first=True)
        known = await stage.say(queued)
        running = stage.check(head, CheckReportStatus.IN_PROGRESS, known_id=known)
        await stage.say_by_another_process(running)
        await stage.say(stage.check(head, CheckReportStatus.QUEUED, known_id=known))
        assert stage.own_checks(head) == [("queued", None)]

    async def test_anothers_comment_with_our_marker_is_not_ours(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("comment", number=number, body=f"{MARKER}\nfake")
        await stage.say(StatusComment(number, MARKER, "real"))
        assert stage.comments(number) == [f"{MARKER}\nfake", f"{MARKER}\nreal"]

    async def test_a_comment_of_ours_that_quotes_the_marker_is_another(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.say(StatusComment(number, MARKER, "one", first=True))
        await stage.say(Reply(number, "a-1", f"`total {MARKER}` failed", first=True))
        await stage.say(StatusComment(number, MARKER, "two"))
        status, reply = stage.comments(number)
        assert status == f"{MARKER}\ntwo"
        assert reply.endswith("failed")

    async def test_a_deleted_status_comment_is_made_anew(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        known = await stage.say(StatusComment(number, MARKER, "one"))
        stage.forget_comments(number)
        again = await stage.say(StatusComment(number, MARKER, "two", known_id=known))
        assert again != known
        assert stage.comments(number) == [f"{MARKER}\ntwo"]

    async def test_a_locked_conversation_drops_what_is_said(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("comment", number=number, body="/merge")
        await stage.act("lock", number=number)
        assert await stage.say(StatusComment(number, MARKER, "one")) is None
        assert await stage.say(Reply(number, "a-1", "hello")) is None
        assert stage.comments(number) == ["/merge"]

    async def test_a_reply_is_written_once(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        first = await stage.say(Reply(number, "a-1", "hello", first=True))
        assert await stage.say(Reply(number, "a-1", "hello")) == first
        assert await stage.say(Reply(number, "a-2", "hello")) != first
        assert len(stage.comments(number)) == 2

    async def test_a_reaction_stands_once(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        comment = str((await stage.act("comment", number=number, body="/merge"))["comment"])
        for emoji in Emoji:
            one = await stage.say(Reaction(number, comment, emoji))
            assert await stage.say(Reaction(number, comment, emoji)) == one
        assert await stage.say(Reaction(number, "999999", Emoji.EYES)) is None
        assert len(stage.reactions(number)) == len(Emoji)

    async def test_our_check_run_is_one_for_each_submission(self, stage):
        _, head = await stage.open({"a.txt": "a\n"})
        first = await stage.say(stage.check(head, CheckReportStatus.QUEUED, first=True))
        again = await stage.say(stage.check(head, CheckReportStatus.IN_PROGRESS))
        other = await stage.say(stage.check(head, CheckReportStatus.QUEUED, external_id="sub-2"))
        assert first == again != other
        assert stage.own_checks(head) == [("in_progress", None), ("queued", None)]

    @pytest.mark.parametrize(
        ("status", "shown"),
        [
            (CheckReportStatus.QUEUED, ("queued", None)),
            (CheckReportStatus.IN_PROGRESS, ("in_progress", None)),
            (CheckReportStatus.SUCCESS, ("completed", "success")),
            (CheckReportStatus.FAILURE, ("completed", "failure")),
            (CheckReportStatus.NEUTRAL, ("completed", "neutral")),
            (CheckReportStatus.CANCELLED, ("completed", "cancelled")),
        ],
    )
    async def test_our_check_run_shows_the_state(self, stage, status, shown):
        _, head = await stage.open({"a.txt": "a\n"})
        await stage.say(stage.check(head, status))
        assert stage.own_checks(head) == [shown]

    async def test_going_back_from_completed_is_a_new_run(self, stage):
        _, head = await stage.open({"a.txt": "a\n"})
        done = await stage.say(stage.check(head, CheckReportStatus.SUCCESS))
        back = await stage.say(stage.check(head, CheckReportStatus.IN_PROGRESS, known_id=done))
        assert back != done
        found = await stage.say(stage.check(head, CheckReportStatus.FAILURE))
        assert found == back

    async def test_going_back_from_what_another_process_completed_is_a_new_run(self, stage):
        _, head = await stage.open({"a.txt": "a\n"})
        done = await stage.say_by_another_process(stage.check(head, CheckReportStatus.SUCCESS))
        await stage.say(stage.check(head, CheckReportStatus.IN_PROGRESS, known_id=done))
        assert stage.own_checks(head) == [("completed", "success"), ("in_progress", None)]

    async def test_our_own_check_run_never_counts_as_a_report(self, stage):
        _, head = await stage.open({"a.txt": "a\n"})
        await stage.say(stage.check(head, CheckReportStatus.FAILURE))
        found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
        assert {each.name for each in found.items} == {"unit"}

    async def test_what_is_said_on_a_missing_pull_request_is_gone(self, stage):
        with pytest.raises(Gone):
            await stage.say(StatusComment(999, MARKER, "one", first=True))


def a_check(head, status, **changed):
    """Our check run of the first submission, unless changed."""
    made = {"external_id": "sub-1", "summary": "…", **changed}
    return CheckReport(
        sha=head, name="Headgate (main)", status=status, title="Testing", url=None, **made
    )
