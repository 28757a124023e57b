"""Golden text: compared, rewritten on demand, and never left over."""

import shutil

import pytest

from tests.tidy.tree import ROOT

pytest_plugins = ("pytester",)

HARNESS = ("harness/expect", "harness/machine", "harness/needs", "harness/workers")
WORKERS = ("-p", "tests.harness.workers")
TEST = """from tests.harness.expect import expect
def test_it():
    expect("new").matches("a.txt")
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A project that has nothing but our conftest and harness, and one test with golden text."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Loading what others install for pytest takes longer than such a run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for folder in ("tests/harness", "tests/area/golden"):
        (pytester.path / folder).mkdir(parents=True)
    for file in ("__init__", "conftest", "harness/__init__", *HARNESS):
        shutil.copy(ROOT / f"tests/{file}.py", pytester.path / f"tests/{file}.py")
    conftest = pytester.path / "tests/conftest.py"
    lines = conftest.read_text().splitlines(keepends=True)
    conftest.write_text("".join(line for line in lines if not line.startswith("pytest_plugins")))
    (pytester.path / "tests/area/__init__.py").touch()
    (pytester.path / "tests/area/test_it.py").write_text(TEST)
    pytester.makeini("[pytest]\n")
    return pytester


def write(project, name, text):
    (project.path / "tests/area/golden" / name).write_text(text)


def run(project, *options):
    return project.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_equal_text_passes(project):
    write(project, "a.txt", "new\n")
    assert run(project).ret == 0


def test_other_text_fails_with_a_diff(project):
    write(project, "a.txt", "old\n")
    result = run(project)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["-old", "+new"])


def test_a_missing_file_fails_with_the_remedy(project):
    result = run(project)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*a.txt does not exist; pytest --update-golden writes it*"])


def test_update_golden_rewrites(project):
    write(project, "a.txt", "old\n")
    assert run(project, "--update-golden").ret == 0
    assert (project.path / "tests/area/golden/a.txt").read_text() == "new\n"


@pytest.mark.parametrize("options", [(), (*WORKERS, "-n", "2")], ids=["one process", "two workers"])
def test_a_file_that_no_test_uses_fails_the_run(project, options):
    write(project, "a.txt", "new\n")
    write(project, "left-over.txt", "x\n")
    result = run(project, *options)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["golden file that no test uses: *left-over.txt"])
    result.stdout.no_fnmatch_line("golden file that no test uses: *a.txt")


def test_a_narrowed_run_judges_no_file(project):
    write(project, "left-over.txt", "x\n")
    more = TEST.replace("test_it", "test_more").replace("a.txt", "left-over.txt")
    (project.path / "tests/area/test_more.py").write_text(more.replace("new", "x"))
    write(project, "a.txt", "new\n")
    assert run(project, "tests/area/test_it.py").ret == 0
    assert run(project, "-k", "test_it").ret == 0
    assert run(project, "tests/area/test_more.py::test_more").ret == 0
    assert run(project).ret == 0


def test_a_skipped_test_leaves_its_folder_unjudged(project):
    write(project, "a.txt", "new\n")
    skipping = 'import pytest\n@pytest.mark.skip(reason="x")\n' + TEST.partition("\n")[2]
    (project.path / "tests/area/test_it.py").write_text(skipping)
    assert run(project).ret == 0


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("1", "failed")])
def test_a_lacking_thing_skips_and_fails_where_all_is_required(
    project, monkeypatch, required, outcome
):
    monkeypatch.setenv("HEADGATE_REQUIRE_ALL", required)
    monkeypatch.setenv("PATH", "")
    body = 'from tests.harness.needs import needs\ndef test_it():\n    needs("npm")\n'
    (project.path / "tests/area/test_it.py").write_text(body)
    result = run(project, "-rs")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["*needs npm: npm is not on PATH; install it*"])
