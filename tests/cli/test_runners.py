"""The runner's name, by which the service tells what the exit code of a command means."""

import pytest

from bot.cli import upload

NOTHING: dict[str, str] = {}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        (["pytest", "-q"], "pytest"),
        (["uv", "run", "python3.12", "-m", "pytest"], "pytest"),
        (["php", "vendor/bin/phpunit.phar"], "phpunit"),
        (["env", "CI=1", "npx", "mocha"], "mocha"),
        (["npm", "exec", "mocha"], "mocha"),
        (["pnpm", "dlx", "mocha"], "mocha"),
        (["python", "-m"], ""),
        (["C:\\Python\\python3.exe", "-m", "pytest"], "pytest"),
        (["bin/npx.cmd", "jest"], "jest"),
        (["ctest", "--output-junit", "r.xml"], "ctest"),
        (["cargo", "+nightly", "nextest", "run"], "cargo nextest"),
        (["bazelisk", "--batch", "test", "//..."], "bazel test"),
        (["sh", "-c", "A=1 python -m pytest -q"], "pytest"),
    ],
)
def test_the_runner_is_the_first_program_that_is_no_launcher(command, runner):
    assert upload.runner_of(command, NOTHING) == runner


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        (["sh", "-c", "phpunit; coverage report"], "sh"),
        (["bash", "-c", "pytest && ruff check"], "bash"),
        (["sh", "-c", "pytest || exit 1"], "sh"),
        (["sh", "-c", "pytest\nruff check"], "sh"),
        (["sh", "-c", "! pytest"], "sh"),
        (["sh", "-c", "pytest $(more)"], "sh"),
        (["sh", "-c", "pytest 'open"], "sh"),
        (["sh", "test.sh"], "sh"),
        (["make", "pytest"], "make"),
        (["npm", "run", "mocha"], "npm"),
        (["yarn", "mocha"], "yarn"),
        (["cargo", "run", "nextest"], "cargo run"),
        (["bazel", "run", "//ci:test"], "bazel run"),
        (["go", "run", "./gotestsum"], "go run"),
        (["python", "run.py", "jest"], "run"),
        (["node", "exec.js", "vitest"], "exec"),
    ],
)
def test_a_program_that_runs_more_than_tests_is_not_the_runner(command, runner):
    assert upload.runner_of(command, NOTHING) == runner


@pytest.mark.parametrize(
    "options",
    [
        ["--cov", "--cov-fail-under=80"],
        ["--cov=src"],
        ["-c", "other.ini"],
        ["--config-file=other.ini"],
        ["--rootdir", ".."],
        ["@options.txt"],
    ],
)
def test_pytest_with_coverage_is_another_runner(options):
    assert upload.runner_of(["pytest", *options], NOTHING) == "pytest-cov"
    assert upload.runner_of(["sh", "-c", " ".join(["pytest", *options])], NOTHING) == "pytest-cov"


def test_coverage_is_found_where_the_environment_or_a_file_turns_it_on(folder):
    command = ["pytest", "tests/unit::test_total"]
    assert upload.runner_of(command, {"PYTEST_ADDOPTS": "--cov"}) == "pytest-cov"
    (folder / "tests").mkdir()
    (folder / "tests" / "unit").touch()
    assert upload.runner_of(command, NOTHING) == "pytest"
    settings = folder / "tests" / "pytest.ini"
    settings.write_text("[pytest]\naddopts = --cov=src\n")
    assert upload.runner_of(command, NOTHING) == "pytest-cov"
    assert upload.runner_of(["pytest"], NOTHING) == "pytest"
    settings.rename(folder / "pytest.ini")
    assert upload.runner_of(["pytest"], NOTHING) == "pytest-cov"
