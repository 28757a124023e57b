"""The plug-in of Jest in runs of Jest: what it says, against what Jest did and reported."""

import signal

import pytest

from tests.plugins.runs import SEQUENCER

ZETA_FIRST = [{"name": "zeta never passes", "classname": "", "parent": "", "file": "zeta.test.js"}]
ATTEMPTS = {
    "cart fails & costs {title} {title}": ["failed"],
    "zeta passes at the second try": ["failed?", "passed"],
    "zeta never passes": ["failed?", "failed?", "failed"],
    "zeta with a hook that fails has an error": ["failed?", "failed?", "failed"],
}
TWO = [{"displayName": "one"}, {"displayName": "two", "testMatch": ["**/cart.test.js"]}]
SNAPSHOT = """// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing

exports[`gone 1`] = `1`;
"""
LATER = pytest.param("oldest", marks=pytest.mark.soak)


def test_failed_tests_alone_end_a_run_of_two_projects_with_suspects_first(lay_out):
    jest = lay_out("jest", "newest", "plain", suspects=ZETA_FIRST, projects=TWO)
    said = jest.run("-i", SEQUENCER)
    assert (said.code, said.reason) == (1, ("tests_failed", 1))
    assert said.counts == (13, 5, 4, 4, 0)
    assert said.attempts() == {**ATTEMPTS, "cart fails & costs {title} {title}": ["failed"] * 2}
    assert said.failed() == said.failed_in_report()
    assert said.lines[1]["file"] == "zeta.test.js"


def test_the_oldest_jest_says_the_same_and_which_file_did_not_load(lay_out):
    jest = lay_out("jest", "oldest", "plain", "broken")
    (jest.folder / "killed.test.js").unlink()
    said = jest.run("-i", SEQUENCER)
    assert (said.code, said.reason) == (1, ("unloaded", 1))
    assert said.counts == (9, 4, 3, 2, 0)
    assert said.attempts() == ATTEMPTS
    assert [each["file"] for each in said.end["unloaded"]] == ["garbled.test.js"]
    assert [each["file"] for each in said.end["errors_outside"]] == ["hook.test.js"]


def test_what_did_not_load_and_what_belongs_to_no_test_is_listed(lay_out):
    said = lay_out("jest", "newest", "broken").run("-w", "2")
    assert (said.code, said.reason) == (1, ("unloaded", 1))
    assert said.counts == (1, 1, 0, 0, 0)
    unloaded = {each["file"]: each["message"] for each in said.end["unloaded"]}
    assert unloaded["garbled.test.js"].startswith("SyntaxError: ")
    assert "signal=SIGKILL" in unloaded["killed.test.js"]
    assert len(unloaded) == 2
    (outside,) = said.end["errors_outside"]
    assert outside["file"] == "hook.test.js"
    assert outside["message"].startswith("after all")


@pytest.mark.parametrize("age", ["newest", LATER])
def test_a_stop_after_a_failure_in_a_shard_is_no_end_by_failed_tests(lay_out, age):
    jest = lay_out("jest", age, "plain", suspects=ZETA_FIRST)
    for number in range(4):
        (jest.folder / f"more{number}.test.js").write_text("test('fails', () => { throw 1; });")
    said = jest.run("-i", "--bail", "--shard=1/2")
    assert (said.code, said.reason) == (1, ("stopped_early", 1))
    assert said.end["shard"] == "1/2"
    assert said.end["planned"] is None
    assert said.end["failed"] >= 1


COVERAGE = ("--coverage", "--collectCoverageFrom=cart.js", "--coverageReporters=text-summary")
THRESHOLD = {"coverageThreshold": {"global": {"lines": 90}}}


@pytest.mark.parametrize("age", ["newest", LATER])
def test_a_coverage_below_its_threshold_is_told(lay_out, age):
    said = lay_out("jest", age, "covered", **THRESHOLD).run("-i", *COVERAGE)
    assert (said.code, said.reason) == (1, ("threshold", 1))
    assert said.counts == (1, 1, 0, 0, 0)


@pytest.mark.soak
def test_beside_failed_tests_a_threshold_leaves_the_exit_code_unknown(lay_out):
    said = lay_out("jest", "newest", "plain", "covered", **THRESHOLD).run("-i", *COVERAGE)
    assert (said.code, said.reason) == (1, ("tests_failed", None))


def test_a_global_teardown_that_fails_is_an_error_outside(lay_out):
    jest = lay_out("jest", "newest", "plain", globalTeardown="./teardown.js")
    (jest.folder / "teardown.js").write_text(
        "module.exports = () => { throw new Error('the end of all'); };"
    )
    said = jest.run("-i", "cart")
    assert (said.code, said.reason) == (1, ("error_outside", 1))
    assert "the global teardown failed" in said.end["errors_outside"][0]["message"]


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_with_force_exit_failed_tests_alone_still_end_the_run(lay_out, age):
    said = lay_out("jest", age, "plain").run("-i", "--forceExit")
    assert (said.code, said.reason) == (1, ("tests_failed", 1))


@pytest.mark.soak
def test_obsolete_snapshots_are_an_error_outside(lay_out):
    jest = lay_out("jest", "newest", "covered")
    (jest.folder / "__snapshots__").mkdir()
    old = (
        "// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing\n\nexports[`gone 1`] = `1`;\n"
    )
    (jest.folder / "__snapshots__/covered.test.js.snap").write_text(old)
    said = jest.run("-i")
    assert said.code == said.end["exit_code"]
    assert said.end["reason"] == ("error_outside" if said.code else "passed")


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_no_test_is_a_reason(lay_out, age):
    said = lay_out("jest", age, "covered").run("-i", "--passWithNoTests", "nowhere")
    assert (said.code, said.reason) == (0, ("no_tests", 0))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("age", "how"),
    [("newest", signal.SIGINT), ("newest", signal.SIGKILL), ("oldest", signal.SIGINT)],
)
def test_a_jest_that_a_signal_ends_has_begun_and_not_ended(lay_out, age, how):
    said = lay_out("jest", age, "hanging").ended_by(how, "-i")
    assert said.code == -how
    assert [line["event"] for line in said.lines] == ["start"]
