"""`suspects`: names that runners take, and a plug-in of pytest that runs these tests first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import app, live
from tests.cli import service
from tests.cli.processes import environment

SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"


def a_test(name: str, classname: str = "", file_path: str = "") -> dict[str, str]:
    test_id = "06cb6db5-f807-5198-b072-000000000001"
    more = {"parent": "pytest", "because": "changed", "test_id": test_id}
    return {"name": name, "classname": classname, "file_path": file_path, **more}


TESTS = [
    a_test("test_total[1]", "tests.test_cart.TestTotal", "tests/test_cart.py"),
    a_test("test_mail", "tests.test_mail"),
    a_test("cart adds up", "cart adds up", "src/cart.test.js"),
]


@pytest.fixture
def api(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_mail.py").touch()
    with service.served() as served:
        monkeypatch.setenv("HEADGATE_URL", served.url)
        monkeypatch.setenv("HEADGATE_TOKEN", service.TOKEN)
        monkeypatch.setenv("GITHUB_REPOSITORY", "octo/widgets")
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
        served.says(service.SUSPECTS, {"tests": TESTS})
        yield served


@pytest.mark.parametrize(
    ("spelling", "names"),
    [
        (
            "names",
            [
                "tests/test_cart.py::test_total[1]",
                "tests.test_mail::test_mail",
                "src/cart.test.js::cart adds up",
            ],
        ),
        (
            "pytest",
            ["tests/test_cart.py::TestTotal::test_total[1]", "tests/test_mail.py::test_mail"],
        ),
        ("jest", ["tests/test_cart.py", "src/cart.test.js"]),
    ],
)
def test_names_are_printed_as_a_runner_takes_them(api, capsys, spelling, names):
    assert app.run(["suspects", "--format", spelling, "--sha", SHA]) == 0
    assert capsys.readouterr().out.splitlines() == names
    ((path, query, _),) = api.asked
    assert path == service.SUSPECTS
    about = {"host": "github.com", "owner": "octo", "name": "widgets"}
    assert query == {**about, "sha": SHA}


def test_the_number_of_names_is_limited(api, capsys):
    assert app.run(["suspects", "--limit", "1", "--sha", SHA, "--json"]) == 0
    (test,) = json.loads(capsys.readouterr().out)["tests"]
    assert test["name"] == "test_total[1]"


def test_a_refused_token_is_an_error(api, capsys, monkeypatch):
    monkeypatch.setenv("HEADGATE_TOKEN", "hgt_another")
    assert app.run(["suspects", "--sha", SHA]) != 0
    assert "token" in capsys.readouterr().err


def test_a_command_gets_the_file_of_suspected_tests(api, tmp_path):
    api.says(service.SUSPECTS, {"tests": TESTS})
    program = (
        "import json, os, sys; tests = json.load(open(os.environ['HEADGATE_SUSPECTS']))['tests'];"
        " open('seen', 'w').write(tests[0]['file']); sys.exit(3)"
    )
    arguments = ["test", "--junit", "no.xml", "--sha", SHA, "--", sys.executable, "-c", program]
    assert app.run(arguments) == 3
    assert Path("seen").read_text() == "tests/test_cart.py"


SUITE = "".join(f"def test_{number:03}(): pass\n" for number in range(200))


def order_of(folder: Path, **variables: str) -> list[str]:
    """The tests of a folder in the order in which real pytest runs them with our plug-in."""
    (folder / "headgate_pytest.py").write_text(live.PYTEST_PLUGIN.read_text())
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "headgate_pytest", "test_a.py", "test_b.py"],
        cwd=folder,
        env={**environment(PYTHONWARNINGS=""), "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split()[0] for line in done.stdout.splitlines() if " PASSED" in line]


def test_pytest_runs_suspects_first_and_the_others_in_their_order(tmp_path):
    (tmp_path / "test_a.py").write_text(SUITE)
    (tmp_path / "test_b.py").write_text(SUITE)
    usual = order_of(tmp_path)
    tests = [
        {"name": "test_190", "classname": "test_b", "file": ""},
        {"name": "test_007", "classname": "", "file": "test_a.py"},
        {"name": "test_008", "classname": "", "file": "other.py"},
    ]
    chosen = tmp_path / "suspects.json"
    chosen.write_text(json.dumps({"v": 1, "tests": tests}))
    first = ["test_b.py::test_190", "test_a.py::test_007"]
    found = order_of(tmp_path, HEADGATE_SUSPECTS=str(chosen))
    assert found == first + [each for each in usual if each not in first]


@pytest.mark.parametrize("content", ["", "[]", '{"tests": 3}', '{"tests": [{}]}', "\ud7ff{"])
def test_a_list_that_cannot_be_read_changes_nothing(tmp_path, content):
    (tmp_path / "test_a.py").write_text("def test_1(): pass\ndef test_2(): pass\n")
    (tmp_path / "test_b.py").touch()
    (tmp_path / "list").write_text(content, "utf-8")
    found = order_of(tmp_path, HEADGATE_SUSPECTS=str(tmp_path / "list"))
    assert found == ["test_a.py::test_1", "test_a.py::test_2"]


def test_a_spoilt_line_hides_no_failure_that_a_test_takes_back_by_passing(tmp_path):
    live = tmp_path / "live"
    failed = {"v": 1, "event": "test", "name": "test_007", "classname": "test_b", "final": True}
    lines = ['{"v": 1, "eve', '{"event": "suite"}', json.dumps({**failed, "outcome": "failed"})]
    live.write_text("\n".join(lines) + "\n")
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(SUITE)
    order_of(tmp_path, HEADGATE_LIVE=str(live))
    told = map(json.loads, live.read_text().splitlines()[len(lines) :])
    (taken_back,) = [each for each in told if each["event"] == "test"]
    assert (taken_back["name"], taken_back["outcome"]) == ("test_007", "passed")
