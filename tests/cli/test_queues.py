"""`queue …`: what is sent, and how settings are written."""

import json

import pytest

from bot.cli import app, queue_settings, queue_text
from bot.cli.exits import Exit, Failed
from tests.cli.service import a_queue, a_record
from tests.cli.test_pull_requests import TARGET


def headgate(*arguments):
    return app.run(["queue", *arguments, "--branch", "main"])


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (["create"], "/createQueue", {"concurrency": 5, "directMergeMode": "ALWAYS"}),
        (
            ["create", "--set", "concurrency=2", "--set", "mergeMethod=REBASE"],
            "/createQueue",
            {"concurrency": 2, "directMergeMode": "ALWAYS", "mergeMethod": "REBASE"},
        ),
        (["show"], "/getQueue", {}),
        (
            ["update", "--set", "required_statuses=lint,test", "--expected-version", "4"],
            "/updateQueue",
            {"requiredStatuses": ["lint", "test"], "expectedVersion": 4},
        ),
        (
            ["pause", "--reason", "release freeze"],
            "/updateQueue",
            {"state": "PAUSED", "stateReason": "release freeze"},
        ),
        (["resume"], "/updateQueue", {"state": "RUNNING"}),
        (
            ["drain", "--reason", "release"],
            "/updateQueue",
            {"state": "DRAINING", "stateReason": "release"},
        ),
    ],
)
def test_a_command_is_one_request(api, capsys, arguments, path, body):
    api.says(path, a_queue(ignoredFields=[]))
    assert headgate(*arguments) == 0
    assert [(each[0], each[1]) for each in api.asked] == [(path, TARGET | body)]
    assert "octo/widgets main" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["pause", "drain", "hold"])
def test_what_stops_a_queue_needs_a_reason_as_in_chat(api, capsys, command):
    assert headgate(command) == 2
    assert "Missing option '--reason'" in capsys.readouterr().err
    assert headgate(command, "--reason", " ") == 2
    assert "--reason is empty. Say why" in capsys.readouterr().err
    assert api.asked == []


def listed(branch, **differences):
    repo = {"host": "github.com", "owner": "octo", "name": "widgets"}
    counts = {"depth": 3, "notReady": 1, "testing": 2, "version": 7}
    return {"repo": repo, "branch": branch, "state": "RUNNING", "mode": "SINGLE"} | counts


def test_queues_are_listed_page_by_page(api, capsys):
    api.says("/listQueues", {"queues": [listed("main")], "nextCursor": "c1"})
    api.says("/listQueues", {"queues": [listed("release/2")]})
    assert app.run(["queue", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Repository    Branch     State    Mode    Queued  Testing  Not ready",
        "octo/widgets  main       RUNNING  SINGLE  3       2        1",
        "octo/widgets  release/2  RUNNING  SINGLE  3       2        1",
    ]
    assert [body for _, body, _ in api.asked] == [{"take": 100}, {"take": 100, "cursor": "c1"}]


def test_the_queues_of_one_repository_are_listed(api, capsys):
    api.says("/listQueues", {"queues": []})
    assert app.run(["queue", "list", "--repo", "octo/widgets"]) == 0
    assert api.asked[0][1]["repo"] == TARGET["repo"]
    assert capsys.readouterr().out.startswith("No queue. Make one:")
    assert app.run(["queue", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"queues": []}


def test_a_hold_is_made_once_and_told_by_its_id(api, capsys):
    api.says("/addQueueHold", {"hold": {"id": "h1"}})
    assert headgate("hold", "--reason", "release freeze", "--scope", "LAND") == 0
    body = {"text": "release freeze", "scope": "LAND", "until": None}
    assert api.asked[0][1] == TARGET | body
    assert capsys.readouterr().out == "Held: h1\n"


def test_a_doubtful_hold_is_asked_for_again_under_the_same_key(api):
    api.refuses("/addQueueHold", 503, "overloaded")
    api.says("/addQueueHold", {"hold": {"id": "h1"}})
    assert headgate("hold", "--reason", "release freeze") == 0
    keys = [headers["Idempotency-Key"] for _, _, headers in api.asked]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_hold_is_released_with_a_reason(api, capsys):
    api.says("/releaseQueueHold", {"released": True, "holdId": "h1"})
    assert headgate("release", "h1", "--reason", "over") == 0
    assert api.asked[0][1] == TARGET | {"holdId": "h1", "text": "over"}
    assert headgate("release", "h1") == 2


def test_a_queue_that_is_not_empty_is_not_deleted(api, capsys):
    api.refuses("/deleteQueue", 409, "queue_not_empty", "2 pull requests are still in the queue.")
    assert headgate("delete") == 6
    assert capsys.readouterr().err == "headgate: 2 pull requests are still in the queue.\n"


def test_a_missing_queue_is_not_to_be_created_before_it_is_deleted(api, capsys):
    api.refuses("/deleteQueue", 404, "queue_not_found", 'Branch "main" has no queue.')
    assert headgate("delete") == 4
    assert capsys.readouterr().err == 'headgate: Branch "main" has no queue.\n'


def test_an_empty_queue_is_deleted(api, capsys):
    api.says("/deleteQueue", {"deleted": True, "branch": "main"})
    assert headgate("delete") == 0
    assert capsys.readouterr().out == "Deleted the queue for main\n"


def test_a_queue_is_shown_with_its_holds_settings_and_entries(api, capsys):
    hold = {"id": "h1", "reason": "freeze", "scope": "LAND", "text": "release freeze"}
    api.says("/getQueue", a_queue(holds=[hold], enqueuedPullRequests=[a_record()]))
    headgate("show")
    assert capsys.readouterr().out.splitlines() == [
        "octo/widgets main",
        "State     RUNNING",
        "Required  test (branch protection)",
        "Version   1",
        "Held (LAND, h1): release freeze",
        "Place  PR  State       Title        Because",
        "3      #3  🕒 PENDING  Cart totals  It waits for a slot.",
        "Setting          Value   Default",
        "concurrency      5       1",
        "directMergeMode  ALWAYS  OFF",
    ]


def test_a_queue_is_shown_with_what_keeps_the_service_from_working(api, capsys):
    text = "The disk of the database is full, since 06:43 UTC. An operator makes room on that disk."
    api.says("/getQueue", a_queue(troubles=[{"name": "database_full", "text": text}]))
    headgate("show")
    assert f"Version   1\nTrouble: {text}\n" in capsys.readouterr().out


def test_a_hold_says_by_whom_and_since_when(api, capsys):
    by = {"kind": "person", "login": "alice", "channel": "API"}
    since = "2026-03-02T14:02:19.000Z"
    hold = {"id": "h1", "scope": "LAND", "text": "freeze", "by": by, "since": since}
    api.says("/getQueue", a_queue(holds=[hold]))
    headgate("show")
    said = capsys.readouterr().out
    assert "Held (LAND, h1) by alice since 2026-03-02 14:02 UTC: freeze\n" in said


PLAIN: dict[str, object] = {
    "batch": False,
    "hedgeThreshold": 0.4,
    "commentsEnabled": True,
    "requiredStatuses": None,
    "allowedBotSubmitters": [],
}


def test_who_is_tested_together_is_shown_together(api, capsys):
    def under_test(number, run):
        return a_record("TESTING", prNumber=number, position=number, testRunId=run)

    listed = [under_test(1, "r1"), under_test(2, "r1"), under_test(3, "r2"), a_record(prNumber=4)]
    queue = a_queue(state="SWITCHING_MODES", targetMode="PARALLEL", enqueuedPullRequests=listed)
    api.says("/getQueue", queue)
    headgate("show")
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:3] == ["State     SWITCHING_MODES", "New mode  PARALLEL"]
    start = next(index for index, row in enumerate(shown) if row.startswith("Place"))
    assert shown[start : start + 5] == [
        "Place  PR  With  State       Title        Because",
        "1      #1  #2    🧪 TESTING  Cart totals  It waits for a slot.",
        "2      #2  #1    🧪 TESTING  Cart totals  It waits for a slot.",
        "3      #3        🧪 TESTING  Cart totals  It waits for a slot.",
        "3      #4        🕒 PENDING  Cart totals  It waits for a slot.",
    ]


def test_only_settings_that_differ_from_their_default_are_shown(api, capsys):
    api.says("/getQueue", a_queue(**PLAIN))
    headgate("show")
    assert capsys.readouterr().out.splitlines()[4:] == [
        "Setting          Value   Default",
        "concurrency      5       1",
        "directMergeMode  ALWAYS  OFF",
        "hedgeThreshold   0.4     0.3",
        "The other settings have their default; --all-settings lists them.",
    ]


def test_a_default_in_lower_case_is_no_difference(api, capsys):
    api.says("/getQueue", a_queue(mode="single", mergeMethod="rebase"))
    headgate("show")
    names = [row.split()[0] for row in capsys.readouterr().out.splitlines()[5:]]
    assert names == ["concurrency", "directMergeMode", "mergeMethod", "The"]


def test_all_settings_are_shown_as_they_can_be_set(api, capsys):
    api.says("/getQueue", a_queue(**PLAIN))
    headgate("show", "--all-settings")
    assert capsys.readouterr().out.splitlines()[4:] == [
        "Setting               Value   Default",
        "allowedBotSubmitters  []      []",
        "batch                 false   false",
        "commentsEnabled       true    true",
        "concurrency           5       1",
        "directMergeMode       ALWAYS  OFF",
        "hedgeThreshold        0.4     0.3",
        "requiredStatuses      none    none",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", True),
        ("requiredStatuses", None),
        ("requiredStatuses", []),
        ("requiredStatuses", ["none"]),
        ("requiredStatuses", ["lint", "test (3.12)"]),
        ("requiredStatuses", ["a, b", "[c"]),
        ("hedgeThreshold", 0.5),
        ("batchingRules", [{"targetPattern": "//infra/*", "policy": "ISOLATE"}]),
        ("enqueueingLabel", "none"),
        ("rules", [{"name": "hotfix", "when": '"hotfix" in labels', "priority": 0}]),
    ],
)
def test_a_setting_can_be_set_to_what_is_shown(name, value):
    assert queue_settings.parse([f"{name}={queue_settings.written(value)}"]) == {name: value}


@pytest.mark.parametrize(
    "command", [["pause", "--reason", "x"], ["resume"], ["drain", "--reason", "x"]]
)
def test_a_queue_that_is_held_or_runs_again_is_shown_by_its_head_alone(api, capsys, command):
    api.says("/updateQueue", a_queue(enqueuedPullRequests=[a_record()]))
    headgate(*command)
    assert capsys.readouterr().out.splitlines() == [
        "octo/widgets main",
        "State     RUNNING",
        "Required  test (branch protection)",
        "Version   1",
    ]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("merge_instance", "settings of the queue"),
        ("vendor_config", "a file of the repository"),
        ("repo_provider_branch_protection", "branch protection"),
        ("elsewhere", "elsewhere"),
    ],
)
def test_the_source_of_required_checks_is_worded_as_in_comments(origin, words):
    assert queue_text.source(origin) == words


def test_json_is_the_configuration_as_the_api_answers_it(api, capsys):
    api.says("/getQueue", a_queue())
    headgate("show", "--json")
    assert json.loads(capsys.readouterr().out) == a_queue()


def test_creating_a_queue_needs_the_branch_named(api, capsys):
    assert app.run(["queue", "create"]) == 2
    assert api.asked == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("concurrency=8", {"concurrency": 8}),
        ("merge_method=SQUASH", {"mergeMethod": "SQUASH"}),
        ("resultReuseEnabled=false", {"resultReuseEnabled": False}),
        ("not_ready_timeout_hours=0.5", {"notReadyTimeoutHours": 0.5}),
        ("enqueueing_label=123", {"enqueueingLabel": "123"}),
        ("state_reason=a=b", {"stateReason": "a=b"}),
        ("required_statuses=", {"requiredStatuses": []}),
        ("required_statuses=null", {"requiredStatuses": None}),
        ('required_statuses=["a, b"]', {"requiredStatuses": ["a, b"]}),
        ("fullSuite=true", {"fullSuite": True}),
        ("mode=PARALLEL", {"mode": "PARALLEL"}),
        ("batching_rules=", {"batchingRules": []}),
        (
            "batchingRules=//infra/*, //db",
            {"batchingRules": [{"targetPattern": "//infra/*"}, {"targetPattern": "//db"}]},
        ),
        (
            "allowedBotSubmitters=renovate, dependabot",
            {"allowedBotSubmitters": ["renovate", "dependabot"]},
        ),
    ],
)
def test_a_setting_is_written_in_either_spelling(text, expected):
    assert queue_settings.parse([text]) == expected


@pytest.mark.parametrize(
    ("texts", "what", "todo"),
    [
        (["concurency=8"], "unknown queue setting", "Did you mean concurrency?"),
        (["concurrency"], "has no value", "KEY=VALUE"),
        (["concurrency=1", "concurrency=2"], "set twice", "one of them"),
        (["merge_method=SQUASH", "mergeMethod=REBASE"], "set twice", "one of them"),
        (["zzz=1"], "unknown queue setting", "headgate queue show"),
    ],
)
def test_a_setting_that_is_none_is_a_usage_error(texts, what, todo):
    with pytest.raises(Failed, match=what) as failed:
        queue_settings.parse(texts)
    assert failed.value.code == Exit.USAGE
    assert todo in failed.value.todo


def test_an_update_of_nothing_is_a_usage_error(api):
    assert headgate("update") == 2
