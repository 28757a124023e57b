"""`headgate simulate`: other settings over a queue's own rows, a table, a made-up stream."""

import json
from datetime import timedelta

import pytest

from bot.cli import app
from service.mergequeue.simulation.history import Arrival, Fate, history_of
from service.mergequeue.simulation.world import sha_of
from tests.cli import processes
from tests.harness import recorded
from tests.simulation.test_table import HEADER, a_line, shared_table

KEY = "k" * 43
QUEUE = "values.test/octo/widgets@main"
FATES = {
    3: Fate(breaks=True),
    7: Fate(breaks_with=frozenset({6})),
    9: Fate(conflicts=True),
    12: Fate(breaks=True),
}


def a_past():
    """Twenty submissions two days ago; 5 is taken out, 12 comes again with a mended head."""
    begin = recorded.days_ago(2)
    arrivals = [
        Arrival(
            at=begin + timedelta(minutes=6 * pr),
            pr=pr,
            head=sha_of("head", str(pr)),
            author=f"author-{pr % 3}",
            fate=FATES.get(pr, Fate()),
            ci_s=600.0 + 30 * (pr % 4),
            cancelled_at=begin + timedelta(minutes=33) if pr == 5 else None,
        )
        for pr in range(1, 21)
    ]
    arrivals.append(Arrival(begin + timedelta(hours=3), 12, sha_of("mended"), ci_s=600.0))
    return history_of(arrivals, (), 0.0)


@pytest.fixture(name="headgate")
def _headgate(monkeypatch, capsys):
    """A command run in this process, with these settings: exit code, stdout, stderr."""

    def run(*arguments, **settings):
        with monkeypatch.context() as patched:
            for name, value in settings.items():
                patched.setenv(name, value)
            code = app.run(list(arguments))
        return code, *capsys.readouterr()

    with processes.log_kept():
        yield run


@pytest.fixture(name="simulate")
def _simulate(headgate, database_url):
    """The JSON of a comparison over the queue's own rows; once on each kind of database."""

    def run(*arguments):
        settings = {"HEADGATE_DATABASE_URL": database_url, "HEADGATE_SECRET_KEY": KEY}
        code, out, err = headgate("simulate", *arguments, "--json", **settings)
        assert code == 0, err
        return json.loads(out)

    return run


def test_a_queues_own_past_under_its_own_settings_merges_as_many(simulate, database_url):
    merged = recorded.record_at(database_url, a_past(), concurrency=3)
    assert sorted(merged) == sorted(set(range(1, 21)) - {3, 5, 7, 9})
    found = simulate("--queue", QUEUE, "--set", "concurrency=3")
    assert found["baseline"] == found["changed"]
    baseline = found["baseline"]
    assert baseline["merged"] == len(merged)
    assert (baseline["failed"], baseline["cancelled"], baseline["failedGood"]) == (4, 1, 0)
    assert found["submissions"] == 21


def test_more_slots_over_a_queues_own_past_merge_sooner(simulate, database_url):
    recorded.record_at(database_url, a_past(), concurrency=1)
    found = simulate("--queue", QUEUE, "--set", "concurrency=4", "--since", "3d")
    assert found["settings"] == {"concurrency": {"baseline": 1, "changed": 4}}
    assert found["ratio"]["timeToMergeP50Seconds"] < 0.8
    assert found["ratio"]["merged"] == 1


def test_what_is_not_there_has_its_exit_code(headgate, sqlite_url):
    recorded.record_at(sqlite_url, a_past(), concurrency=3)
    change = ("--set", "concurrency=4")

    def said(queue, *more):
        code, out, err = headgate(
            "simulate", "--queue", queue, *change, *more, HEADGATE_DATABASE_URL=sqlite_url
        )
        assert out == ""
        return code, err

    assert said("values.test/octo/widgets@next") == (
        4,
        'headgate: branch "next" has no queue; queues here: main.\n',
    )
    assert said("values.test/octo/gadgets@main") == (
        4,
        "headgate: there is no repository octo/gadgets of values.test here. Leave the host out for "
        "github.com, the host of this deployment.\n",
    )
    assert said("octo/gadgets@main") == (
        4,
        "headgate: there is no repository octo/gadgets of github.com here.\n",
    )
    code, err = said(QUEUE, "--since", "1h")
    assert (code, err.startswith('headgate: no submission to the queue for "main"')) == (4, True)
    assert said("octo/widgets")[0] == 2
    assert said(QUEUE, "--since", "ages")[0] == 2


def test_a_queue_without_a_host_is_of_the_host_of_the_deployment(headgate, sqlite_url):
    recorded.record_at(sqlite_url, a_past(), concurrency=3)
    code, _, err = headgate(
        *("simulate", "--queue", "octo/widgets@main", "--set", "concurrency=4"),
        HEADGATE_DATABASE_URL=sqlite_url,
        HEADGATE_GITHUB_HOST="values.test",
    )
    assert code == 0, err


def test_a_made_up_stream_is_compared_in_a_table(headgate):
    code, out, err = headgate("simulate", "--seed", "3", "--set", "concurrency=10")
    lines = out.splitlines()
    assert code == 0, err
    assert lines[:2] == ["seed 3: 400 submissions", "concurrency: 5 → 10"]
    assert lines[2].split() == ["Present", "Changed", "Ratio"]
    assert [line[:18].strip() for line in lines[3:6]] == [
        "Time to merge, p50",
        "Time to merge, p95",
        "Merged",
    ]
    assert err.splitlines() == [
        "replaying 400 submissions under the present settings",
        "replaying 400 submissions under the changed settings",
    ]


def test_both_spellings_of_a_setting_mean_the_same(headgate, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(HEADER + a_line())
    first = headgate("simulate", "--csv", str(path), "--set", "auto_retry_limit=2", "--json")
    second = headgate("simulate", "--csv", str(path), "--set", "autoRetryLimit=2", "--json")
    assert first == second
    assert json.loads(first[1])["settings"] == {"autoRetryLimit": {"baseline": 1, "changed": 2}}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--seed", "1"], 2, "headgate: nothing to change. Give --set KEY=VALUE.\n"),
        (["--set", "concurrency=2"], 2, "headgate: it is not clear what to replay. "),
        (["--seed", "1", "--csv", "x", "--set", "concurrency=2"], 2, "headgate: it is not clear"),
        (["--seed", "1", "--set", "speed=2"], 2, "headgate: unknown queue setting 'speed'. "),
        (
            ["--seed", "1", "--set", "state=PAUSED"],
            2,
            "headgate: a simulation cannot change 'state'",
        ),
        (["--seed", "1", "--set", "concurrency=0"], 6, "headgate: concurrency must be at least 1"),
        (["--seed", "1", "--set", "mode=ZIGZAG"], 6, "headgate: mode must be one of SINGLE, PAR"),
        (["--csv", "no.csv", "--set", "concurrency=2"], 2, "headgate: no.csv cannot be read (No"),
    ],
)
def test_what_makes_no_sense_is_refused(headgate, arguments, code, said):
    found, out, err = headgate("simulate", *arguments)
    assert (found, out) == (code, "")
    assert err.startswith(said)


def test_settings_are_refused_with_the_words_of_the_service(headgate, api):
    detail = "must be at least 1"
    fault = {"field": "/concurrency", "code": "range", "message": detail}
    api.refuses("/updateQueue", 400, "invalid_field", errors=[fault])
    wrong = ("--set", "concurrency=0")
    of_service = headgate("queue", "update", "--branch", "main", *wrong)
    assert headgate("simulate", "--seed", "1", *wrong) == of_service


def test_a_table_is_replayed_and_a_wrong_one_is_refused_by_line_and_column(headgate, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(HEADER + a_line() + a_line(prs="2", heads="h2", landed="0", minutes=""))
    code, out, err = headgate("simulate", "--csv", str(path), "--set", "concurrency=2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["source"], found["submissions"]) == ("runs.csv, octo/widgets", 2)
    assert (found["baseline"]["merged"], found["baseline"]["failed"]) == (1, 1)
    path.write_text(HEADER + a_line() + a_line(started_at="soon"))
    code, out, err = headgate("simulate", "--csv", str(path), "--set", "concurrency=2")
    assert (code, out) == (2, "")
    assert err.startswith(f"headgate: {path}: Line 3, column started_at: 'soon' is no time")
    path.write_text(HEADER)
    assert headgate("simulate", "--csv", str(path), "--set", "concurrency=2")[0] == 2


def test_a_table_of_real_queues_is_replayed(headgate, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(shared_table())
    code, out, err = headgate("simulate", "--csv", str(path), "--set", "concurrency=2", "--json")
    assert code == 0, err
    assert json.loads(out)["baseline"]["merged"] > 400
