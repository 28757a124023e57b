"""The plug-in of Playwright in runs of Playwright Test, none of which needs a browser."""

import signal

import pytest

ATTEMPTS = {
    "zeta \u203a passes at the second try": ["failed?", "passed"],
    "zeta \u203a never passes": ["failed?", "failed"],
}
BESIDE = {"with a hook that fails \u203a has an error": ["failed"], "is killed": ["failed"]}
TWO = [{"name": "one"}, {"name": "two", "testMatch": "cart.spec.js"}]
LATER = pytest.param("oldest", marks=pytest.mark.soak)


def test_failed_tests_alone_end_a_run_of_two_projects(lay_out):
    said = lay_out("playwright", "newest", "plain", projects=TWO).run()
    assert (said.code, said.reason) == (1, ("tests_failed", 1))
    assert said.counts == (12, 7, 1, 4, 0)
    assert said.attempts() == ATTEMPTS
    assert said.failed() == said.failed_in_report()


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_a_hook_that_fails_and_a_killed_worker_fail_their_tests(lay_out, age):
    said = lay_out("playwright", age, "errors").run()
    assert (said.code, said.reason) == (1, ("tests_failed", 1))
    assert said.counts == (3, 0, 2, 0, 1)
    assert said.attempts() == BESIDE
    assert said.failed() == said.failed_in_report()


def test_the_oldest_playwright_says_the_same(lay_out):
    said = lay_out("playwright", "oldest", "plain").run()
    assert (said.code, said.reason) == (1, ("tests_failed", 1))
    assert said.counts == (7, 4, 1, 2, 0)
    assert said.attempts() == ATTEMPTS
    assert said.failed() == said.failed_in_report()


@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_a_file_that_does_not_load_is_listed(lay_out, age):
    said = lay_out("playwright", age, "broken").run()
    assert (said.code, said.reason) == (1, ("unloaded", 1))
    assert said.end["planned"] is None
    (unloaded,) = said.end["unloaded"]
    assert unloaded["file"] == "garbled.spec.js"
    assert "SyntaxError: " in unloaded["message"]


@pytest.mark.parametrize("age", ["newest", LATER])
@pytest.mark.parametrize(
    "when", ["globalTeardown", pytest.param("globalSetup", marks=pytest.mark.soak)]
)
def test_failures_around_all_tests_are_errors_outside(lay_out, age, when):
    said = lay_out("playwright", age, "outside", **{when: "./teardown.js"}).run()
    assert (said.code, said.reason) == (1, ("error_outside", 1))
    (outside,) = said.end["errors_outside"]
    assert outside["file"] == "teardown.js"
    assert "the end of all" in outside["message"]


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_a_stop_after_a_failure_in_a_shard_is_no_end_by_failed_tests(lay_out, age):
    playwright = lay_out("playwright", age, "plain")
    content = "const { test } = require('@playwright/test'); test('fails', () => { throw 1; });"
    for number in range(4):
        (playwright.folder / f"more{number}.spec.js").write_text(content)
    said = playwright.run("-x", "--shard=2/2")
    assert (said.code, said.reason) == (1, ("stopped_early", 1))
    assert said.end["shard"] == "2/2"
    assert said.end["not_run"] > 0


@pytest.mark.soak
def test_a_flaky_test_that_fails_the_run_is_a_missed_threshold(lay_out):
    said = lay_out("playwright", "newest", "plain").run("--fail-on-flaky-tests", "-g", "second try")
    assert (said.code, said.reason) == (1, ("threshold", 1))


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_no_test_is_a_reason(lay_out, age):
    said = lay_out("playwright", age, "outside").run("nowhere")
    assert (said.code, said.reason) == (1, ("no_tests", 1))


@pytest.mark.soak
@pytest.mark.parametrize("age", ["newest", "oldest"])
def test_a_run_that_takes_too_long_is_no_end_by_failed_tests(lay_out, age):
    said = lay_out("playwright", age, "hanging").run("--global-timeout=9000")
    assert (said.code, said.reason) == (1, ("error_outside", 1))
    assert said.end["errors_outside"][0]["message"].startswith("Timed out waiting")


@pytest.mark.soak
def test_a_list_of_the_tests_is_no_run(lay_out):
    said = lay_out("playwright", "newest", "outside").run("--list")
    assert (said.code, said.lines) == (0, [])


@pytest.mark.parametrize("age", ["newest", LATER])
def test_an_interrupted_playwright_says_so(lay_out, age):
    said = lay_out("playwright", age, "hanging").ended_by(signal.SIGINT)
    assert (said.code, said.reason) == (130, ("interrupted", 130))
    assert said.counts == (1, 0, 0, 0, 1)


@pytest.mark.soak
def test_a_killed_playwright_has_begun_and_not_ended(lay_out):
    said = lay_out("playwright", "newest", "hanging").ended_by(signal.SIGKILL)
    assert said.code == -signal.SIGKILL
    assert [line["event"] for line in said.lines] == ["start"]
