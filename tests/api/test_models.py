"""Each field by itself: what it takes, and what is said of what it does not.

See docs/design/http.md 3.
"""

from datetime import UTC, datetime

import pytest

from service.accounts.api.models.tokens import CreateToken
from service.errors import FieldError, Malformed
from service.http.models import common
from service.mergequeue.api.models import pull_requests, queues, testing
from service.mergequeue.api.models.lists import ListPullRequests
from service.mergequeue.api.models.statistics import GetMergeQueueStatistics
from service.mergequeue.engine import targets
from service.mergequeue.engine.config import BatchingRule, BatchSizing, Mode, Toggle
from service.mergequeue.engine.states import QueueState
from service.mergequeue.reasons.record import HoldScope
from service.testhealth.api.models.tests import ListFailingTests
from service.vocabulary import MergeMethod

REPO = {"host": "github.com", "owner": "octo", "name": "widgets"}
NAMED = {"repo": REPO, "targetBranch": "main"}
PR = {**NAMED, "pr": {"number": 482}}
NULL_END = {
    "org_url_slug": "octo",
    "page_query": {"page_size": 1},
    "start_time": "2026-03-02T14:02:19Z",
    "end_time": None,
}
SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"


def faults(model, body) -> tuple[FieldError, ...]:
    with pytest.raises(Malformed) as refused:
        common.read(model, body)
    return refused.value.errors


def the_fault(model, body) -> tuple[str, str, str]:
    """Pointer, code and message of the only fault."""
    (fault,) = faults(model, body)
    return fault.field, fault.code, fault.message


def test_every_faulty_field_is_reported_at_once():
    body = {
        "repo": {"host": "https://github.com", "owner": "octo"},
        "pr": {"number": "12a"},
        "reason": "x" * 501,
    }
    found = [(each.field, each.code) for each in faults(pull_requests.CancelPullRequest, body)]
    assert found == [
        ("/repo/host", "format"),
        ("/repo/name", "missing"),
        ("/targetBranch", "missing"),
        ("/pr/number", "type"),
        ("/reason", "length"),
    ]


@pytest.mark.parametrize(
    ("model", "body", "fault"),
    [
        (GetMergeQueueStatistics, {"days": 2}, ("/days", "enum", "must be 1, 7, 30 or 90")),
        (ListPullRequests, {"state": [None]}, ("/state/0", "type", "must be a string")),
        (ListFailingTests, NULL_END, ("/end_time", "type", "must be a string")),
    ],
)
def test_a_fault_is_told_in_words_of_ours(model, body, fault):
    assert the_fault(model, NAMED | body) == fault


def test_no_more_than_fifty_faults_are_listed():
    body = {**NAMED, "requiredStatuses": [""] * 60}
    assert len(faults(queues.CreateQueue, body)) == 50


UNKNOWN = {
    **PR,
    "priorty": 1,
    "repo": {**REPO, "x/y": {}},
    "pr": {"number": 1, "headSha": None, "numbr": 2},
}


def test_what_the_specification_names_ignores_unknown_fields_at_every_depth_and_keeps_them():
    asked = common.read(pull_requests.SubmitPullRequest, UNKNOWN)
    assert (asked.pr.number, asked.priority) == (1, None)
    assert [(each.field, each.did_you_mean) for each in asked.ignored] == [
        ("/pr/headSha", "sha"),
        ("/pr/numbr", "number"),
        ("/priorty", "priority"),
        ("/repo/x~1y", None),
    ]
    assert common.read(pull_requests.SubmitPullRequest, PR).ignored == ()


def test_any_other_request_refuses_unknown_fields_at_every_depth_with_what_else_is_wrong():
    body = {**UNKNOWN, "priority": 999}
    with pytest.raises(Malformed) as refused:
        common.read(pull_requests.PreviewPriority, body)
    assert refused.value.code == "unknown_field"
    assert sorted((each.field, each.code, each.did_you_mean) for each in refused.value.errors) == [
        ("/pr/headSha", "unknown", None),
        ("/pr/numbr", "unknown", "number"),
        ("/priority", "range", None),
        ("/priorty", "unknown", "priority"),
        ("/repo/x~1y", "unknown", None),
    ]
    assert "(did you mean `number`?)" in refused.value.detail


def test_a_fault_is_told_without_the_unknown_fields_that_are_ignored():
    with pytest.raises(Malformed) as refused:
        common.read(pull_requests.SubmitPullRequest, {**UNKNOWN, "priority": 999})
    assert refused.value.code == "invalid_field"
    assert [each.field for each in refused.value.errors] == ["/priority"]


def test_unknown_fields_of_objects_in_a_list_are_found():
    rules = [{"targetPattern": "a"}, {"targetPattern": "b", "polcy": "ISOLATE"}]
    asked = common.read(queues.CreateQueue, {**NAMED, "batchingRules": rules})
    assert [(each.field, each.did_you_mean) for each in asked.ignored] == [
        ("/batchingRules/1/polcy", "policy")
    ]
    assert len(asked.settings()["batching_rules"]) == 2  # type: ignore[arg-type]
    token = {"name": "x", "role": "read", "repositories": [{**REPO, "id": 1}]}
    assert the_fault(CreateToken, token)[:2] == ("/repositories/0/id", "unknown")


def test_however_many_unknown_fields_are_sent_fifty_are_listed_and_cut():
    many = {f"{n:03}{'x' * 1000}": n for n in range(2000)}
    asked = common.read(queues.GetQueue, {**NAMED, **many})
    assert len(asked.ignored) == 50
    assert max(len(each.field) for each in asked.ignored) == 101


def test_a_field_is_known_by_its_api_name_alone():
    body = {**PR, "target_branch": "main"}
    del body["targetBranch"]
    assert [(each.code, each.field) for each in faults(pull_requests.ExplainPullRequest, body)] == [
        ("missing", "/targetBranch"),
        ("unknown", "/target_branch"),
    ]


@pytest.mark.parametrize("host", ["github.com", "GHE.example.org:8443", "127.0.0.1:1", "a" * 255])
def test_a_host_stands_alone_with_or_without_port(host):
    body = {**NAMED, "repo": {**REPO, "host": host}}
    assert common.read(queues.GetQueue, body).repo.ref.host == host.lower()


@pytest.mark.parametrize("host", ["https://github.com", "github.com/octo", "git://x"])
def test_a_host_with_scheme_or_path_is_told_what_to_send(host):
    body = {**NAMED, "repo": {**REPO, "host": host}}
    said = "must be the host alone: `github.com`"
    assert the_fault(queues.GetQueue, body) == ("/repo/host", "format", said)


@pytest.mark.parametrize("host", ["", "git hub.com", "github.com\n", "gïthub.com", "a@b"])
def test_a_host_of_other_characters_is_no_host(host):
    body = {**NAMED, "repo": {**REPO, "host": host}}
    assert the_fault(queues.GetQueue, body)[:2] == ("/repo/host", "format")


@pytest.mark.parametrize("owner", ["octo", "a.b_c-D", "group/sub.group", "/".join("a" * 20)])
def test_an_owner_may_hold_nested_groups(owner):
    body = {**NAMED, "repo": {**REPO, "owner": owner}}
    assert common.read(queues.GetQueue, body).repo.owner == owner


@pytest.mark.parametrize(
    "owner", ["/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a b", "a\n", "/".join("a" * 21)]
)
def test_an_owner_with_an_empty_or_dotted_part_is_refused(owner):
    body = {**NAMED, "repo": {**REPO, "owner": owner}}
    assert the_fault(queues.GetQueue, body)[:2] == ("/repo/owner", "format")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("group/widgets", "must be without the group path, which belongs in `owner`"),
        ("widgets.git", "must be without `.git`"),
        ("..", "must be letters, digits, `.`, `_` and `-`"),
        (".", "must be letters, digits, `.`, `_` and `-`"),
        ("wid gets", "must be letters, digits, `.`, `_` and `-`"),
        ("widgets\n", "must be letters, digits, `.`, `_` and `-`"),
    ],
)
def test_a_name_that_is_none_is_told_why(name, said):
    body = {**NAMED, "repo": {**REPO, "name": name}}
    assert the_fault(queues.GetQueue, body) == ("/repo/name", "format", said)


@pytest.mark.parametrize(("field", "longest"), [("host", 255), ("owner", 255), ("name", 100)])
def test_a_repository_is_named_within_its_lengths(field, longest):
    fits = {**NAMED, "repo": {**REPO, field: "a" * longest}}
    assert getattr(common.read(queues.GetQueue, fits).repo, field) == "a" * longest
    beyond = {**NAMED, "repo": {**REPO, field: "a" * (longest + 1)}}
    assert the_fault(queues.GetQueue, beyond)[:2] == (f"/repo/{field}", "length")


@pytest.mark.parametrize("branch", ["main", "Release/2", "a b", "ünï", ".lock", "x" * 255])
def test_a_target_branch_is_taken_as_it_is(branch):
    body = {**NAMED, "targetBranch": branch}
    assert common.read(queues.GetQueue, body).target_branch == branch


@pytest.mark.parametrize(
    ("branch", "code"),
    [
        ("", "length"),
        ("x" * 256, "length"),
        ("a\tb", "format"),
        ("a\n", "format"),
        (7, "type"),
        ("a\x7f", "format"),
        ("refs/heads/main", "format"),
        (None, "type"),
    ],
)
def test_a_target_branch_has_no_control_characters_and_no_prefix(branch, code):
    body = {**NAMED, "targetBranch": branch}
    assert the_fault(queues.GetQueue, body)[:2] == ("/targetBranch", code)


@pytest.mark.parametrize(
    "branch", ["a b", "a..b", "-a", "a.lock", "a.lock/b", ".a", "a/.b", "@", "a@{b", "a/", "a^"]
)
def test_a_name_git_would_refuse_is_recognized(branch):
    assert common.git_would_refuse(branch)


@pytest.mark.parametrize("branch", ["main", "release/2.x", "a@b", "ünï", "x.locked", "a-b"])
def test_a_name_git_takes_is_not_suspected(branch):
    assert not common.git_would_refuse(branch)


@pytest.mark.parametrize("number", [1, 482, 4_294_967_295, "1", "482", "007", 12.0])
def test_a_pull_request_number_is_an_integer_or_its_digits(number):
    body = {**NAMED, "pr": {"number": number}}
    assert common.read(pull_requests.ExplainPullRequest, body).pr.number == int(number)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (0, "range"),
        (-1, "range"),
        (4294967296, "range"),
        ("0", "range"),
        (True, "type"),
        ("", "type"),
        (" 1", "type"),
        ("1.0", "type"),
        ("+1", "type"),
        ("1_0", "type"),
        ("٣", "type"),
        (1.5, "type"),
        (None, "type"),
        ([1], "type"),
        ("1" * 11, "type"),
    ],
)
def test_nothing_else_is_a_pull_request_number(number, code):
    body = {**NAMED, "pr": {"number": number}}
    assert the_fault(pull_requests.ExplainPullRequest, body)[:2] == ("/pr/number", code)


@pytest.mark.parametrize("sha", [SHA, SHA.upper(), SHA + "0" * 24])
def test_a_sha_comes_in_any_case_and_goes_on_in_lower(sha):
    body = {**PR, "pr": {"number": 1, "sha": sha}, "impactedTargets": "ALL"}
    asked = common.read(pull_requests.SetImpactedTargets, body)
    assert asked.pr.head() == sha.lower()


@pytest.mark.parametrize("sha", [SHA[:39], SHA + "0", "g" * 40, "", SHA + "\n"])
def test_a_sha_has_forty_or_sixty_four_digits(sha):
    body = {**PR, "pr": {"number": 1, "sha": sha}, "impactedTargets": "ALL"}
    assert the_fault(pull_requests.SetImpactedTargets, body)[:2] == ("/pr/sha", "format")


@pytest.mark.parametrize("sha", [SHA, SHA[:7], SHA[:39].upper()])
def test_the_head_of_a_submission_is_told_by_its_first_digits(sha):
    asked = common.read(pull_requests.SubmitPullRequest, {**PR, "pr": {"number": 1, "sha": sha}})
    assert asked.pr.sha == sha


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [(0, 0), (255, 255), ("10", 10), ("urgent", 0), ("High", 10), ("LOWEST", 255), (None, 100)],
)
def test_a_priority_is_a_number_its_digits_a_level_or_null_for_the_default(sent, wanted):
    asked = common.read(pull_requests.SubmitPullRequest, {**PR, "priority": sent})
    assert asked.wanted_priority() == wanted


def test_a_priority_that_was_not_sent_is_left_alone():
    assert common.read(pull_requests.SubmitPullRequest, PR).wanted_priority() is None


@pytest.mark.parametrize(
    ("sent", "code", "meant"),
    [
        (256, "range", None),
        (-1, "range", None),
        ("256", "range", None),
        ("urgnt", "enum", "urgent"),
        ("", "enum", None),
        (True, "type", None),
        (1.5, "type", None),
        ([], "type", None),
    ],
)
def test_another_priority_is_refused_with_a_suggestion(sent, code, meant):
    (fault,) = faults(pull_requests.SubmitPullRequest, {**PR, "priority": sent})
    assert (fault.field, fault.code, fault.did_you_mean) == ("/priority", code, meant)


@pytest.mark.parametrize("sent", ["true", 1, 0, "x", []])
def test_only_true_and_false_are_booleans(sent):
    body = {**PR, "noBatch": sent}
    assert the_fault(pull_requests.SubmitPullRequest, body)[:2] == ("/noBatch", "type")


def test_null_is_the_same_as_absent_for_an_optional_field():
    body = {**PR, "noBatch": None, "pr": {"number": 1, "sha": None}}
    asked = common.read(pull_requests.SubmitPullRequest, body)
    assert (asked.no_batch, asked.pr.sha) == (None, None)


def test_a_reason_may_hold_tabs_and_newlines_and_nothing_else_of_that_kind():
    asked = common.read(pull_requests.CancelPullRequest, {**PR, "reason": "a\tb\nc"})
    assert asked.reason == "a\tb\nc"
    body = {**PR, "reason": "a\x1bb"}
    assert the_fault(pull_requests.CancelPullRequest, body)[:2] == ("/reason", "format")


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (["//a", "//b", "//a"], targets.of(["//a", "//b"])),
        ([], targets.of([])),
        ("ALL", targets.ALL),
        ("IMPACTS_ALL", targets.ALL),
        (["//a", "ALL"], targets.ALL),
        (["IMPACTS_ALL"], targets.ALL),
        (["x" * 4096], targets.of(["x" * 4096])),
    ],
)
def test_impacted_targets_are_names_or_all_of_them(sent, wanted):
    asked = common.read(pull_requests.SetImpactedTargets, {**PR, "impactedTargets": sent})
    assert asked.targets() == wanted


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("all", "enum"),
        ("//a", "enum"),
        ([1], "type"),
        (None, "type"),
        ({}, "type"),
        (5, "type"),
        ([""], "length"),
        (["x" * 4097], "length"),
        (["é" * 2049], "length"),
        (["a", None], "type"),
    ],
)
def test_nothing_else_is_a_list_of_targets(sent, code):
    body = {**PR, "impactedTargets": sent}
    assert the_fault(pull_requests.SetImpactedTargets, body)[:2] == ("/impactedTargets", code)


@pytest.mark.parametrize("run", ["x", "no uuid at all", "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"])
def test_any_string_may_name_a_test_run(run):
    body = {**NAMED, "testRunId": run}
    assert common.read(testing.GetMergeQueueTestingDetails, body).test_run_id == run


@pytest.mark.parametrize(("run", "code"), [("", "length"), ("x" * 101, "length"), (7, "type")])
def test_the_name_of_a_test_run_has_its_bounds(run, code):
    body = {**NAMED, "testRunId": run}
    assert the_fault(testing.GetMergeQueueTestingDetails, body)[:2] == ("/testRunId", code)


MOMENTS = [
    ("2026-03-02T14:02:19Z", datetime(2026, 3, 2, 14, 2, 19, tzinfo=UTC)),
    ("2026-03-02t14:02:19.9z", datetime(2026, 3, 2, 14, 2, 19, 900_000, tzinfo=UTC)),
    ("2026-03-02T14:02:19.123456789+02:00", datetime(2026, 3, 2, 12, 2, 19, 123_000, tzinfo=UTC)),
    ("2026-03-02T14:02:60-01:30", datetime(2026, 3, 2, 15, 32, 59, 999_000, tzinfo=UTC)),
    ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("sent", "wanted"), MOMENTS)
def test_a_time_has_an_offset_and_is_cut_to_milliseconds(sent, wanted):
    asked = common.read(queues.AddQueueHold, {**NAMED, "text": "x", "until": sent})
    assert asked.until == wanted


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("2026-03-02T14:02:19", "format"),
        ("2026-03-02", "format"),
        ("2026-03-02 14:02:19Z", "format"),
        ("2026-03-02T14:02:19.1234567890Z", "format"),
        ("1969-12-31T23:59:59Z", "range"),
        ("2026-02-30T00:00:00Z", "range"),
        ("2026-03-02T24:00:00Z", "range"),
        ("2026-03-02T14:02:19+24:00", "range"),
        ("9999-12-31T23:59:59-01:00", "range"),
        (1_700_000_000, "type"),
    ],
)
def test_what_is_no_time_is_refused(sent, code):
    body = {**NAMED, "text": "x", "until": sent}
    assert the_fault(queues.AddQueueHold, body)[:2] == ("/until", code)


def test_a_hold_stops_both_unless_said_otherwise_and_scope_comes_in_any_case():
    assert common.read(queues.AddQueueHold, {**NAMED, "text": "x"}).scope is None
    asked = common.read(queues.AddQueueHold, {**NAMED, "text": "x", "scope": "land"})
    assert asked.scope is HoldScope.LAND


@pytest.mark.parametrize("hold", ["1", "", "6d1f7a528a0c4c1a9a553f3b1d6f2c10", 7])
def test_a_hold_is_named_by_a_uuid(hold):
    body = {**NAMED, "text": "x", "holdId": hold}
    assert the_fault(queues.ReleaseQueueHold, body)[0] == "/holdId"


@pytest.mark.parametrize("text", ["", "x" * 501, "\x00"])
def test_a_hold_needs_its_words(text):
    assert the_fault(queues.AddQueueHold, {**NAMED, "text": text})[0] == "/text"


def test_settings_are_read_into_the_types_of_the_queue():
    body = {
        **NAMED,
        "state": "draining",
        "mode": "parallel",
        "concurrency": 5.0,
        "batch": True,
        "batchSizing": "Adaptive",
        "notReadyTimeoutHours": 1.5,
        "requiredStatuses": ["lint", "test", "lint"],
        "directMergeMode": "always",
        "mergeMethod": "rebase",
        "allowedBotSubmitters": ["renovate[bot]"],
        "batchingRules": [{"targetPattern": "//infra/*", "policy": "isolate"}],
        "hedgeThreshold": 0.05,
        "enqueueingLabel": "ship it",
    }
    asked = common.read(queues.CreateQueue, body)
    assert asked.state is QueueState.DRAINING
    assert asked.settings() == {
        "mode": Mode.PARALLEL,
        "concurrency": 5,
        "batch": True,
        "batch_sizing": BatchSizing.ADAPTIVE,
        "not_ready_timeout_hours": 1.5,
        "required_statuses": ("lint", "test"),
        "direct_merge_mode": Toggle.ALWAYS,
        "merge_method": MergeMethod.REBASE,
        "allowed_bot_submitters": ("renovate[bot]",),
        "batching_rules": (BatchingRule("//infra/*"),),
        "hedge_threshold": 0.05,
        "enqueueing_label": "ship it",
    }


INTEGERS = {
    "concurrency": (1, 1000),
    "bisectionConcurrency": (0, 1000),
    "testingTimeoutMinutes": (1, 10080),
    "pendingFailureDepth": (0, 1000),
    "batchingMaxWaitTimeMinutes": (0, 10080),
    "batchingMinSize": (1, 1000),
    "notReadyTimeoutHours": (0, 720),
    "checkStartTimeoutMinutes": (1, 1440),
    "autoRetryLimit": (0, 10),
    "maxExcusedFailures": (0, 1000),
}


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
@pytest.mark.parametrize("model", [queues.CreateQueue, queues.UpdateQueue])
def test_numbers_keep_their_ranges(model, name, bounds):
    for value in bounds:
        assert list(common.read(model, {**NAMED, name: value}).settings().values()) == [value]
    for value in (bounds[0] - 1, bounds[1] + 1):
        assert the_fault(model, {**NAMED, name: value})[:2] == (f"/{name}", "range")
    for value in ("5", True):
        assert the_fault(model, {**NAMED, name: value})[:2] == (f"/{name}", "type")


@pytest.mark.parametrize("threshold", [0.04, 0.96, 1])
def test_the_hedge_threshold_keeps_its_range(threshold):
    body = {**NAMED, "hedgeThreshold": threshold}
    assert the_fault(queues.CreateQueue, body)[:2] == ("/hedgeThreshold", "range")


BOOLEANS = [
    "canOptimisticallyMerge",
    "batch",
    "createPrsForTestingBranches",
    "deleteBranch",
    "commentsEnabled",
    "commandsEnabled",
    "statusCheckEnabled",
    "labelCommandsEnabled",
    "stateLabelsEnabled",
    "extensionEnabled",
    "skippedStatusesPass",
    "flakyKnowledgeEnabled",
    "earlyFailures",
    "resultReuseEnabled",
]


@pytest.mark.parametrize("name", BOOLEANS)
def test_switches_are_true_or_false(name):
    for value in (True, False):
        settings = common.read(queues.UpdateQueue, {**NAMED, name: value}).settings()
        assert list(settings.values()) == [value]
    assert the_fault(queues.UpdateQueue, {**NAMED, name: "true"})[:2] == (f"/{name}", "type")


ENUMS = {
    "state": ("RUNNING", "PAUSED", "DRAINING"),
    "mode": ("SINGLE", "PARALLEL"),
    "batchSizing": ("FIXED", "ADAPTIVE"),
    "directMergeMode": ("OFF", "ALWAYS"),
    "optimizationMode": ("OFF", "BISECTION_SKIP_REDUNDANT_TESTS"),
    "mergeMethod": ("MERGE_COMMIT", "SQUASH", "REBASE"),
    "testBranchConstructionMode": ("RENAME_TEMP_BRANCH", "PUSH_NEW_BRANCH_FROM_TEMP"),
    "forkPolicy": ("REQUIRE_MAINTAINER", "DENY"),
    "confirmFailures": ("OFF", "BISECTION", "ALWAYS"),
    "hedging": ("OFF", "SPARE_SLOTS"),
}


@pytest.mark.parametrize(("name", "words"), ENUMS.items())
def test_a_word_comes_in_any_case_and_no_other_word(name, words):
    for word in words:
        for sent in (word, word.lower(), word.title()):
            common.read(queues.UpdateQueue, {**NAMED, name: sent})
    (fault,) = faults(queues.UpdateQueue, {**NAMED, name: words[-1] + "X"})
    assert (fault.field, fault.code, fault.did_you_mean) == (f"/{name}", "enum", words[-1])
    assert fault.message == f"must be one of {', '.join(words)}"


def test_switching_modes_is_shown_and_never_set():
    body = {**NAMED, "state": "SWITCHING_MODES"}
    assert the_fault(queues.UpdateQueue, body)[:2] == ("/state", "enum")


@pytest.mark.parametrize(
    ("name", "value", "pointer", "code"),
    [
        ("requiredStatuses", ["x"] * 101, "/requiredStatuses", "length"),
        ("requiredStatuses", ["x" * 256], "/requiredStatuses/0", "length"),
        ("requiredStatuses", ["a\nb"], "/requiredStatuses/0", "format"),
        ("requiredStatuses", "lint", "/requiredStatuses", "type"),
        ("allowedBotSubmitters", ["x"] * 101, "/allowedBotSubmitters", "length"),
        ("allowedBotSubmitters", ["x" * 101], "/allowedBotSubmitters/0", "length"),
        ("enqueueingLabel", "", "/enqueueingLabel", "length"),
        ("enqueueingLabel", "x" * 51, "/enqueueingLabel", "length"),
        ("batchingRules", [{}], "/batchingRules/0/targetPattern", "missing"),
        ("batchingRules", [{"targetPattern": "a*b"}], "/batchingRules/0/targetPattern", "format"),
        ("batchingRules", [{"targetPattern": ""}], "/batchingRules/0/targetPattern", "length"),
        (
            "batchingRules",
            [{"targetPattern": "a", "policy": "JOIN"}],
            "/batchingRules/0/policy",
            "enum",
        ),
        ("stateReason", "x" * 501, "/stateReason", "length"),
    ],
)
def test_lists_and_texts_keep_their_bounds(name, value, pointer, code):
    assert the_fault(queues.CreateQueue, {**NAMED, name: value})[:2] == (pointer, code)


def test_creating_lists_what_it_ignores():
    body = {**NAMED, "concurency": 5, "version": 1, "deleteRequiredStatuses": True, "batch": None}
    asked = common.read(queues.CreateQueue, body)
    assert [(each.field, each.did_you_mean) for each in asked.ignored] == [
        ("/concurency", "concurrency"),
        ("/deleteRequiredStatuses", "requiredStatuses"),
        ("/version", None),
    ]
    assert asked.settings() == {}


def test_updating_refuses_an_unknown_name_and_suggests_the_known_one():
    with pytest.raises(Malformed) as refused:
        common.read(queues.UpdateQueue, {**NAMED, "concurency": 5, "hedgeThreshold": 7})
    assert refused.value.code == "unknown_field"
    assert [(each.field, each.code, each.did_you_mean) for each in refused.value.errors] == [
        ("/hedgeThreshold", "range", None),
        ("/concurency", "unknown", "concurrency"),
    ]


@pytest.mark.parametrize("name", sorted(queues.SHOWN_ONLY - {"ignoredFields"}))
def test_updating_refuses_what_is_only_shown(name):
    with pytest.raises(Malformed) as refused:
        common.read(queues.UpdateQueue, {**NAMED, name: 1})
    assert refused.value.code == "invalid_field"
    assert [(each.field, each.code) for each in refused.value.errors] == [(f"/{name}", "read_only")]


def test_updating_may_repeat_the_branch_and_not_change_it():
    assert common.read(queues.UpdateQueue, {**NAMED, "branch": "main"}).settings() == {}
    body = {**NAMED, "branch": "other"}
    assert the_fault(queues.UpdateQueue, body)[:2] == ("/branch", "read_only")


@pytest.mark.parametrize("name", ["concurrency", "batch", "state", "mode", "expectedVersion"])
def test_null_is_no_value_in_an_update(name):
    assert the_fault(queues.UpdateQueue, {**NAMED, name: None})[:2] == (f"/{name}", "type")


def test_null_drops_the_override_of_required_statuses_and_is_no_reason():
    body = {**NAMED, "requiredStatuses": None, "stateReason": None}
    asked = common.read(queues.UpdateQueue, body)
    assert (asked.settings(), asked.state_reason) == ({"required_statuses": None}, None)


def test_no_required_statuses_are_another_thing_than_no_override():
    asked = common.read(queues.UpdateQueue, {**NAMED, "requiredStatuses": []})
    assert asked.settings() == {"required_statuses": ()}


def test_deleting_the_override_while_setting_it_contradicts_itself():
    dropping = {**NAMED, "deleteRequiredStatuses": True}
    asked = common.read(queues.UpdateQueue, dropping)
    assert (asked.settings(), asked.contradicts_itself()) == ({"required_statuses": None}, False)
    both = common.read(queues.UpdateQueue, {**dropping, "requiredStatuses": ["a"]})
    assert both.contradicts_itself()
