"""The plug-in of Vitest in runs of Vitest: what it says, against what Vitest did and reported."""

import signal

import pytest

ZETA_FIRST = [{"name": "", "classname": "zeta.test.js", "parent": "zeta.test.js", "file": ""}]
ATTEMPTS = {
    "cart > fails & costs $& {title}": ["failed"],
    "zeta > passes at the second try": ["failed?", "passed"],
    "zeta > never passes": ["failed?", "failed?", "failed"],
    "zeta > with a hook that fails > has an error": ["failed"],
}
LATER = pytest.param("oldest", marks=pytest.mark.soak)


def test_failed_tests_alone_end_a_run_of_two_projects_with_suspects_first(lay_out):
    named = (("one", "*"), ("two", "cart"))
    projects = [
        {"extends": True, "test": {"name": name, "include": [f"{files}.test.js"]}}
        for name, files in named
    ]
    vitest = lay_out("vitest", "newest", "plain", suspects=ZETA_FIRST, projects=projects)
    said = vitest.run("--no-file-parallelism")
    assert (said.code, said.reason) == (1, ("tests_failed", 1))
    assert said.counts == (15, 5, 4, 6, 0)
    assert said.attempts() == {**ATTEMPTS, "cart > fails & costs $& {title}": ["failed"] * 2}
    assert said.failed() == said.failed_in_report()
    assert said.lines[1]["file"] == "zeta.test.js"


def test_the_oldest_vitest_says_the_same_and_which_file_did_not_load(lay_out):
    vitest = lay_out("vitest", "oldest", "plain", "broken", suspects=ZETA_FIRST)
    (vitest.folder / "killed.test.js").unlink()
    said = vitest.run("--pool=threads", "--no-file-parallelism")
    assert (said.code, said.reason) == (1, ("unloaded", 1))
    assert said.counts == (13, 6, 3, 3, 1)
    assert said.attempts() == ATTEMPTS
    assert [each["file"] for each in said.end["unloaded"]] == ["garbled.test.js"]
    outside = [each["file"] for each in said.end["errors_outside"]]
    assert sorted(outside) == ["hook.test.js", "late.test.js"]


def test_what_did_not_load_and_what_belongs_to_no_test_is_listed(lay_out):
    said = lay_out("vitest", "newest", "broken").run()
    assert (said.code, said.reason) == (1, ("unloaded", 1))
    assert said.counts == (5, 3, 0, 0, 2)
    assert [each["file"] for each in said.end["unloaded"]] == ["garbled.test.js"]
    outside = {each["file"]: each["message"] for each in said.end["errors_outside"]}
    assert outside["hook.test.js"] == "before all"
    assert outside["late.test.js"] == "Error: late"
    assert "orker" in outside[""]


@pytest.mark.parametrize("age", ["newest", LATER])
def test_a_stop_after_a_failure_in_a_shard_is_no_end_by_failed_tests(lay_out, age):
    vitest = lay_out("vitest", age, "plain", suspects=ZETA_FIRST)
    content = "import { test } from 'vitest'; test('fails', () => { throw new Error('no'); });"
    for number in range(6):
        (vitest.folder / f"more{number}.test.js").write_text(content)
    said = vitest.run("--bail=1", "--shard=1/2", "--no-file-parallelism")
    assert (said.code, said.reason) == (1, ("stopped_early", 1))
    assert said.end["shard"] == "1/2"
    assert said.end["planned"] is None
    assert said.end["failed"] >= 1


COVERAGE = ("--coverage.enabled", "--coverage.include=cart.js", "--coverage.reporter=text-summary")
THRESHOLD = ("--coverage.thresholds.lines=90",)


@pytest.mark.parametrize("age", ["newest", LATER])
def test_a_coverage_below_its_threshold_is_told(lay_out, age):
    said = lay_out("vitest", age, "covered").run(*COVERAGE, *THRESHOLD)
    assert (said.code, said.reason) == (1, ("threshold", 1))
    assert said.counts == (1, 1, 0, 0, 0)


@pytest.mark.soak
def test_beside_failed_tests_a_threshold_may_leave_the_exit_code_unknown(lay_out):
    vitest = lay_out("vitest", "newest", "plain", "covered")
    assert vitest.run(*COVERAGE, *THRESHOLD).reason == ("tests_failed", 1)


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_failures_around_all_tests_are_errors_outside(lay_out, age):
    vitest = lay_out("vitest", age, "plain", globalSetup=["./around.js"])
    around = vitest.folder / "around.js"
    around.write_text("export function teardown() { throw new Error('the end of all'); }")
    said = vitest.run()
    assert (said.code, said.reason) == (1, ("error_outside", 1))
    message = {"newest": "the end of all", "oldest": "the global teardown failed"}[age]
    assert message in said.end["errors_outside"][0]["message"]


@pytest.mark.soak
def test_no_test_is_a_reason(lay_out):
    said = lay_out("vitest", "newest", "covered").run("nowhere")
    assert (said.code, said.reason) == (1, ("no_tests", 1))


@pytest.mark.parametrize("age", ["newest", LATER])
def test_an_interrupted_vitest_says_so(lay_out, age):
    said = lay_out("vitest", age, "hanging").ended_by(signal.SIGINT)
    assert (said.code, said.reason) == (130, ("interrupted", 130))


@pytest.mark.soak
def test_a_killed_vitest_has_begun_and_not_ended(lay_out):
    said = lay_out("vitest", "newest", "hanging").ended_by(signal.SIGKILL)
    assert said.code == -signal.SIGKILL
    assert [line["event"] for line in said.lines] == ["start"]
