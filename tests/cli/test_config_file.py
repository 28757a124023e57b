"""`config …` and `queue apply`: what is said of a file, and what is sent."""

import json
from pathlib import Path

import pytest

from bot.cli import app, queue_settings
from service.mergequeue.operations import repository_file
from tests.cli.service import a_queue
from tests.cli.test_pull_requests import TARGET

FILE = ".github/headgate.yml"
VALID = """\
version: 1
queues:
  main:
    concurrency: 3
    mergeMethod: SQUASH
  release/*:
    batch: true
"""
BROKEN = VALID.replace("concurrency", "concurency")
LIVE = a_queue(
    mergeMethod="SQUASH", batch=True, settingSources={"concurrency": "API", "batch": "FILE"}
)


@pytest.fixture(autouse=True)
def _file(tmp_path):
    Path(".github").mkdir()
    Path(FILE).write_text(VALID)


def said(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_valid_file_names_its_branches(capsys):
    assert app.run(["config", "validate"]) == 0
    assert said(capsys) == [f"{FILE} is valid: settings for main, release/*"]


def test_a_fault_is_named_by_file_and_line_and_ends_with_1(capsys):
    Path("other.yml").write_text(BROKEN)
    assert app.run(["config", "validate", "other.yml"]) == 1
    assert said(capsys) == [
        "other.yml:4: `queues.main.concurency` is not a setting of a queue. "
        "Did you mean `concurrency`?"
    ]
    assert app.run(["config", "validate", "other.yml", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["valid"], answer["faults"][0]["line"]) == (False, 4)


def test_a_missing_file_is_a_mistake_of_usage(capsys):
    assert app.run(["config", "validate", "none.yml"]) == 2
    assert capsys.readouterr().err == (
        "headgate: none.yml cannot be read (No such file or directory).\n"
    )


def test_the_schema_is_the_one_that_is_served(capsys):
    assert app.run(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == repository_file.schema()


def test_a_file_is_compared_with_the_queue(api, capsys):
    api.says("/getQueue", LIVE)
    assert app.run(["config", "diff", "--branch", "main"]) == 1
    assert said(capsys) == [
        "Setting      Queue  File     Source",
        "batch        true   removed  FILE",
        "concurrency  5      3        API",
    ]


def test_a_service_that_answers_in_lower_case_has_the_same_settings(api, capsys):
    api.says("/getQueue", a_queue(concurrency=3, mergeMethod="squash", settingSources={}))
    assert app.run(["config", "diff", "--branch", "main"]) == 0
    assert said(capsys) == ["The queue for main has the settings of the file"]


RULES = """\
version: 1
queues:
  main:
    batchingRules: [{targetPattern: //infra/*}]
    rules:
      - {name: hotfix, when: '"hotfix" in labels', priority: urgent}
      - name: weekend
        during: {start: 2026-11-27T18:00, zone: Europe/Berlin, minutes: 3720}
        waitFor: Monday
"""
SHOWN_RULES = [
    {
        "name": "hotfix",
        "when": '"hotfix" in labels',
        "during": None,
        "priority": 0,
        "enter": False,
        "waitFor": "",
    },
    {
        "name": "weekend",
        "when": "",
        "during": {
            "start": "2026-11-27T18:00",
            "zone": "Europe/Berlin",
            "minutes": 3720,
            "repeat": "",
            "exceptOn": [],
        },
        "priority": None,
        "enter": False,
        "waitFor": "Monday",
    },
]
INFRA = [{"targetPattern": "//infra/*", "policy": "ISOLATE"}]


def test_rules_of_the_file_are_those_of_the_queue(api, capsys):
    Path(FILE).write_text(RULES)
    api.says("/getQueue", a_queue(rules=SHOWN_RULES, batchingRules=INFRA, settingSources={}))
    assert app.run(["config", "diff", "--branch", "main"]) == 0
    assert said(capsys) == ["The queue for main has the settings of the file"]


def test_rules_are_compared_one_a_line_without_what_they_leave_out(api, capsys):
    Path(FILE).write_text(RULES)
    api.says("/getQueue", a_queue(rules=[], batchingRules=INFRA, settingSources={}))
    assert app.run(["config", "diff", "--branch", "main", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["changes"][0]["file"] == SHOWN_RULES
    assert queue_settings.written(SHOWN_RULES).splitlines() == [
        r'[{"name":"hotfix","when":"\"hotfix\" in labels","priority":0},',
        ' {"name":"weekend","during":{"start":"2026-11-27T18:00","zone":"Europe/Berlin",'
        '"minutes":3720},"waitFor":"Monday"}]',
    ]


def test_apply_sends_only_what_differs(api, capsys):
    api.says("/getQueue", LIVE)
    api.says("/updateQueue", LIVE)
    assert app.run(["queue", "apply", FILE, "--branch", "main", "--json"]) == 0
    assert [(each[0], each[1]) for each in api.asked] == [
        ("/getQueue", TARGET),
        ("/updateQueue", TARGET | {"concurrency": 3}),
    ]
    change = {"setting": "concurrency", "queue": 5, "file": 3, "source": "API"}
    assert json.loads(capsys.readouterr().out) == {
        "branch": "main",
        "changes": [change],
        "created": False,
        "dryRun": False,
    }


def test_a_dry_run_sends_nothing(api, capsys):
    api.says("/getQueue", LIVE)
    assert app.run(["queue", "apply", FILE, "--branch", "main", "--dry-run"]) == 0
    assert [each[0] for each in api.asked] == ["/getQueue"]
    assert said(capsys)[1] == "concurrency  5      3     API"


def test_apply_makes_a_queue_that_is_missing(api, capsys):
    api.refuses("/getQueue", 404, "queue_not_found")
    api.says("/createQueue", a_queue())
    assert app.run(["queue", "apply", FILE, "--branch", "main"]) == 0
    expected = {"concurrency": 3, "directMergeMode": "ALWAYS", "mergeMethod": "SQUASH"}
    assert api.asked[1][:2] == ("/createQueue", TARGET | expected)
    assert said(capsys)[0] == "The queue for main created"


def test_apply_refuses_a_file_with_faults_before_it_asks(api, capsys):
    Path(FILE).write_text(BROKEN)
    assert app.run(["queue", "apply", FILE, "--branch", "main"]) == 6
    assert api.asked == []
    assert "headgate config validate" in capsys.readouterr().err


def test_a_branch_without_settings_is_a_mistake_of_usage(api, capsys):
    assert app.run(["queue", "apply", FILE, "--branch", "develop"]) == 2
    assert "branches in it: main, release/*" in capsys.readouterr().err


def test_a_setting_of_the_repositorys_file_is_refused_by_the_service(api):
    api.says("/getQueue", LIVE)
    api.refuses("/updateQueue", 422, "set_in_repository_file")
    assert app.run(["queue", "apply", FILE, "--branch", "main"]) == 6


def test_the_queue_shows_what_its_file_sets_and_what_is_wrong_with_it(api, capsys):
    fault = {"path": FILE, "line": 7, "field": "queues.main.batch", "message": "It is wrong."}
    api.says("/getQueue", LIVE | {"repositoryFile": {"faults": [fault]}})
    assert app.run(["queue", "show", "--branch", "main"]) == 0
    shown = said(capsys)
    assert "File      sets batch" in shown
    assert f"Fault, not in force: {FILE}:7: It is wrong." in shown
