"""`doctor`: what is asked of the service, what is printed, and the exit code."""

import io
import json
from pathlib import Path

from bot.cli import app, doctor
from bot.cli.client import Client
from bot.cli.doctor import Place
from bot.cli.exits import Exit
from bot.uploader.transport import Clock
from tests.cli.service import TOKEN, a_queue
from tests.cli.test_pull_requests import TARGET

FINE = {"audit": "app-key", "severity": "ok", "found": "GitHub accepts it.", "mend": ""}
WRONG = {
    "audit": "strict-checks",
    "severity": "error",
    "found": "It is on.",
    "mend": "Turn it off.",
}
STARTED = {"targetBranch": "main", "branch": "headgate/merge/dry-test/1-x", "sha": "a" * 40}


def examined(*findings):
    return {"branch": "main", "passed": WRONG not in findings, "findings": list(findings)}


def test_findings_are_printed_worst_first_and_an_error_ends_with_1(api, capsys):
    api.says("/runDoctor", examined(FINE, WRONG))
    assert app.run(["doctor"]) == Exit.FALSE
    assert capsys.readouterr().out.splitlines() == [
        "octo/widgets main",
        "",
        "Errors (1)",
        "  strict-checks: It is on.",
        "    → Turn it off.",
        "",
        "In order (1)",
        "  app-key: GitHub accepts it.",
    ]
    assert api.asked[0][1] == {"repo": TARGET["repo"]}


def test_without_errors_it_ends_with_0_and_json_is_the_answer(api, capsys):
    api.says("/runDoctor", examined(FINE))
    assert app.run(["doctor", "octo/widgets", "--branch", "main", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out) == examined(FINE)
    assert api.asked[0][1] == TARGET


def test_a_dry_test_is_ended_when_it_is_over(api, capsys):
    api.says("/runDoctor", examined(FINE))
    api.says("/startDryTest", STARTED)
    found = {**WRONG, "audit": "dry-test"}
    api.says("/getDryTest", {"over": True, "passed": False, "findings": [found]})
    api.says("/endDryTest", {"ended": True})
    assert app.run(["doctor", "--dry-test", "--timeout", "5m"]) == Exit.FALSE
    assert api.paths() == ["/runDoctor", "/startDryTest", "/getDryTest", "/endDryTest"]
    assert api.asked[1][1] == TARGET | {"timeoutMinutes": 5}
    assert api.asked[3][1] == TARGET | {"branch": STARTED["branch"]}
    assert "  dry-test: It is on." in capsys.readouterr().out


def test_after_a_dry_test_no_finding_advises_one(api, capsys):
    advised = {"audit": "checks-on-test-branches", "severity": "note", "found": "None was tested."}
    advised["mend"] = "Run `headgate doctor octo/widgets --dry-test`."
    api.says("/runDoctor", examined(FINE, advised))
    assert app.run(["doctor"]) == Exit.DONE
    assert "None was tested." in capsys.readouterr().out
    api.says("/startDryTest", STARTED)
    api.says("/getDryTest", {"over": True, "passed": True, "findings": [FINE]})
    api.says("/endDryTest", {"ended": True})
    assert app.run(["doctor", "--dry-test"]) == Exit.DONE
    assert "None was tested." not in capsys.readouterr().out


def test_a_dry_test_is_looked_at_until_it_is_over(api):
    api.says("/startDryTest", STARTED)
    for _ in range(2):
        api.says("/getDryTest", {"over": False, "passed": False, "findings": []})
    api.says("/getDryTest", {"over": True, "passed": True, "findings": [FINE]})
    api.says("/endDryTest", {"ended": True})
    pauses_s: list[float] = []
    client = Client(api.url, TOKEN, print, Clock(sleep=pauses_s.append))
    assert doctor.tried(Place(client, {"name": "widgets"}, "main"), 5) == [FINE]
    assert pauses_s == [doctor.POLL_S, doctor.POLL_S]


def test_a_dry_test_is_also_ended_when_the_service_refuses_to_tell(api):
    api.says("/runDoctor", examined(FINE))
    api.says("/startDryTest", STARTED)
    api.refuses("/getDryTest", 422, "provider_refused")
    api.says("/endDryTest", {"ended": True})
    assert app.run(["doctor", "--dry-test"]) == Exit.REFUSED
    assert api.paths()[-1] == "/endDryTest"


def test_a_service_that_does_not_answer_is_named(api, capsys, monkeypatch):
    monkeypatch.setattr("bot.cli.client.PAUSES_S", ())
    assert app.run(["doctor", "--url", "http://127.0.0.1:9"]) == Exit.UNREACHABLE
    assert "Start `headgate serve` there, or give another --url" in capsys.readouterr().err


def test_a_timeout_out_of_range_asks_nothing(api, capsys):
    assert app.run(["doctor", "--dry-test", "--timeout", "2h"]) == Exit.USAGE
    assert "Give 1m to 60m" in capsys.readouterr().err
    assert api.asked == []


def test_live_asks_before_it_writes(api, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert app.run(["doctor", "--live"]) == Exit.INTERRUPTED
    assert api.asked == []


def test_only_the_live_checks_are_recorded(api, capsys, tmp_path):
    assert app.run(["doctor", "--record", str(tmp_path / "github.jsonl")]) == Exit.USAGE
    assert "Give --live, too" in capsys.readouterr().err
    assert api.asked == []


ONLY_THERE = "on: merge_group\njobs: {build: {steps: [{run: make}]}}\n"
ALSO_HERE = """\
on:
  merge_group:
  push:
    branches: ["headgate/merge/**"]
jobs: {build: {steps: [{run: make}]}}
"""


def test_workflows_of_the_checkout_are_changed_only_with_write(api, capsys):
    api.says("/runDoctor", examined(WRONG))
    api.says(
        "/getQueue", a_queue(effectiveRequiredStatuses=["build", "lint"], testBranchKind="DRAFT_PR")
    )
    folder = Path(".github/workflows")
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text(ONLY_THERE)
    (folder / "lint.yml").write_text("on: pull_request\njobs: {lint: {steps: [{run: x}]}}\n")
    assert app.run(["doctor", "--fix-workflows"]) == Exit.DONE
    out = capsys.readouterr().out
    assert out.startswith("Workflows, for main: test branches are pushes to `headgate/merge/**`\n")
    assert "Files (2, not written yet)\n  edit .github/workflows/ci.yml\n" in out
    assert out.endswith("--branch main --set createPrsForTestingBranches=false\n")
    assert (folder / "ci.yml").read_text() == ONLY_THERE
    assert app.run(["doctor", "--fix-workflows", "--write", "--json"]) == Exit.DONE
    answer = json.loads(capsys.readouterr().out)
    assert (answer["written"], answer["testBranchKind"], answer["left"]) == (True, "PUSH", [])
    assert (folder / "ci.yml").read_text() == ALSO_HERE
    assert not Path(".github/headgate.yml").exists()


def test_workflows_are_changed_before_there_is_a_queue(api, capsys):
    api.says("/runDoctor", examined(WRONG))
    api.refuses("/getQueue", 404, "queue_not_found")
    assert app.run(["doctor", "--fix-workflows"]) == Exit.DONE
    assert "Files: nothing to change" in capsys.readouterr().out
