"""Producers that are npm packages, or Node.js itself."""

from tests.laboratory.producer import Change, Home, Producer, Scene

FIRST, BESIDE = "cart.test.js", "tax.test.js"

BODY = """
describe('cart', () => {
  it('passes', () => {});
  it('passes and is renamed', () => {});
  it('fails always', () => { same(10, 11); });
  it('errors always', () => { throw new TypeError('no database'); });
  %(skip)s('is skipped', () => {});
  describe('with ümlauts', () => {
    it('passes', () => {});
  });
});
"""
SAME = "const same = (a, b) => require('assert').strictEqual(a, b);\n"
FLAKE = """
let runs = 0;
%(test)s('fails once then passes', () => { runs += 1; same(runs, 2); });
"""
BESIDE_BODY = """
describe('tax', () => {
  it('passes beside', %(does)s);
});
"""
PASSES = "() => {}"
CRASHES = "() => { process.kill(process.pid, 'SIGKILL'); }"
SLEEPS = (
    "async () => { require('fs').writeFileSync(process.env.STARTED_IN ||"
    " require('path').join(__dirname, 'started'), '');"
    " await new Promise((done) => setTimeout(done, 60000)); }"
)
UNLOADED = "require('./no-such-module');\n"


def _suite(before: str = "", *, skip: str = "it.skip", more: str = "") -> dict[str, str]:
    """The samples of a runner with `describe` and `it`."""
    return {
        FIRST: before + SAME + BODY % {"skip": skip} + more,
        BESIDE: before + BESIDE_BODY % {"does": PASSES},
    }


def _broken(before: str = "", timeout: str = "") -> dict[Scene, Change]:
    """The scenes in which the second file breaks."""
    beside = before + BESIDE_BODY
    return {
        Scene.CRASH: Change({BESIDE: beside % {"does": CRASHES}}),
        Scene.INTERRUPTED: Change({BESIDE: beside % {"does": SLEEPS + timeout}}),
        Scene.UNLOADED: Change({BESIDE: before + UNLOADED + beside % {"does": PASSES}}),
    }


PACKAGE = {"package.json": '{"name": "shop", "private": true}\n'}
SHARDS = {
    Scene.SHARD_1: Change(options=("--shard=1/2",)),
    Scene.SHARD_2: Change(options=("--shard=2/2",)),
}
COVERED = "module.exports.total = () => 1;\nmodule.exports.unused = () => 2;\n"
USES = "require('./shop.js').total();\n"

JEST_CONFIG = """
module.exports = { rootDir: __dirname, testTimeout: 90000, %s };
"""
JEST_PROJECTS = "projects: [{ displayName: 'one' }, { displayName: 'two' }]"
JEST_RETRIES = "jest.retryTimes(2);\n"


def _jest(reporter: str, reports: str, more: str = "") -> Producer:
    return Producer(
        Home.NODE,
        {
            **PACKAGE,
            **_suite(more, more=FLAKE % {"test": "it"} if more else ""),
            "jest.config.js": JEST_CONFIG % "",
        },
        ("jest", f"--reporters={reporter}", "--workerThreads=false", "--maxWorkers=2"),
        reports,
        {
            **_broken(more),
            **SHARDS,
            Scene.PROJECTS: Change({"jest.config.js": JEST_CONFIG % JEST_PROJECTS}),
            Scene.REVERSED: Change(options=("--randomize", "--seed=7")),
            Scene.THRESHOLD: Change(
                {"shop.js": COVERED, BESIDE: USES + BESIDE_BODY % {"does": PASSES}},
                ("--coverage", '--coverageThreshold={"global":{"lines":100,"functions":100}}'),
            ),
        },
        has_retries=bool(more),
    )


VITEST_CONFIG = """
module.exports = { test: { globals: true, pool: 'forks', testTimeout: 90000, %s } };
"""
VITEST_PROJECTS = (
    "projects: [{ extends: true, test: { name: 'one' } }, { extends: true, test: { name: 'two' } }]"
)


def _vitest(retries: int) -> Producer:
    options = f"retry: {retries}" if retries else ""
    return Producer(
        Home.NODE,
        {
            **PACKAGE,
            **_suite(more=FLAKE % {"test": "it"} if retries else ""),
            "vitest.config.js": VITEST_CONFIG % options,
        },
        ("vitest", "run", "--reporter=junit", "--outputFile=report.xml"),
        "report.xml",
        {
            **_broken(),
            **SHARDS,
            Scene.PROJECTS: Change({"vitest.config.js": VITEST_CONFIG % VITEST_PROJECTS}),
            Scene.REVERSED: Change(options=("--sequence.shuffle", "--sequence.seed=7")),
            Scene.THRESHOLD: Change(
                {"shop.js": COVERED, BESIDE: USES + BESIDE_BODY % {"does": PASSES}},
                ("--coverage.enabled", "--coverage.thresholds.functions=100"),
            ),
        },
        has_retries=bool(retries),
    )


MOCHA_ROOT = ("--timeout=90000", "*.test.js")


def _mocha(*options: str, reports: str, retries: int = 0) -> Producer:
    return Producer(
        Home.NODE,
        {**PACKAGE, **_suite(more=FLAKE % {"test": "it"} if retries else "")},
        ("mocha", *options, *((f"--retries={retries}",) if retries else ()), *MOCHA_ROOT),
        reports,
        _broken(),
        has_retries=bool(retries),
    )


NODE_HEAD = "const { describe, it } = require('node:test');\n"
PLAYWRIGHT_HEAD = "const { test, expect } = require('@playwright/test');\n"
PLAYWRIGHT_SAMPLE = (
    PLAYWRIGHT_HEAD
    + """
test.describe('cart', () => {
  test('passes', () => {});
  test('passes and is renamed', () => {});
  test('fails always', () => { expect(10).toBe(11); });
  test('errors always', () => { throw new TypeError('no database'); });
  test.skip('is skipped', () => {});
  test('fails once then passes', ({}, info) => { expect(info.retry).toBe(1); });
});
"""
)
PLAYWRIGHT_CONFIG = """
module.exports = {
  testDir: '.', testMatch: '*.test.js', retries: 2, workers: 2, timeout: 90000,
  reporter: [[%(reporter)s]], %(more)s
};
"""
PLAYWRIGHT_BESIDE = PLAYWRIGHT_HEAD + "test('passes beside', %(does)s);\n"
TWO_PROJECTS = "projects: [{ name: 'one' }, { name: 'two' }],"


def _playwright(reporter: str, reports: str) -> Producer:
    def config(more: str = "") -> dict[str, str]:
        return {"playwright.config.js": PLAYWRIGHT_CONFIG % {"reporter": reporter, "more": more}}

    return Producer(
        Home.NODE,
        {
            **PACKAGE,
            **config(),
            FIRST: PLAYWRIGHT_SAMPLE,
            BESIDE: PLAYWRIGHT_BESIDE % {"does": PASSES},
        },
        ("playwright", "test"),
        reports,
        {
            **SHARDS,
            Scene.PROJECTS: Change(config(TWO_PROJECTS)),
            Scene.CRASH: Change({BESIDE: PLAYWRIGHT_BESIDE % {"does": CRASHES}}),
            Scene.INTERRUPTED: Change({BESIDE: PLAYWRIGHT_BESIDE % {"does": SLEEPS}}),
            Scene.UNLOADED: Change({BESIDE: UNLOADED + PLAYWRIGHT_BESIDE % {"does": PASSES}}),
        },
        has_retries=True,
    )


JASMINE_HELPER = """
const { JUnitXmlReporter } = require('jasmine-reporters');
jasmine.DEFAULT_TIMEOUT_INTERVAL = 90000;
jasmine.getEnv().addReporter(new JUnitXmlReporter({ savePath: 'reports' }));
"""

CUCUMBER_STEPS = """
const { Given, setDefaultTimeout } = require('@cucumber/cucumber');
setDefaultTimeout(90000);
Given('it passes', () => {});
Given('it fails', () => { require('assert').strictEqual(10, 11); });
Given('it errors', () => { throw new TypeError('no database'); });
Given('it is left out', () => 'skipped');
let runs = 0;
Given('it fails once', () => { runs += 1; require('assert').strictEqual(runs, 2); });
Given('it crashes', CRASHES);
Given('it sleeps', SLEEPS);
""".replace("CRASHES", CRASHES).replace("SLEEPS", SLEEPS.replace("__dirname", "process.cwd()"))
CUCUMBER = """Feature: cart
  Scenario: it passes
    Given it passes

  Scenario: it passes and is renamed
    Given it passes

  Scenario: it fails always
    Given it fails

  Scenario: it errors always
    Given it errors

  Scenario: it is skipped
    Given it is left out

  Scenario: it fails once then passes
    Given it fails once
"""
CUCUMBER_BESIDE = "Feature: tax\n  Scenario: it passes beside\n    Given it {}\n"

BATS = """
@test "passes" { true; }
@test "passes and is renamed" { true; }
@test "fails always" { [ 10 -eq 11 ]; }
@test "errors always" { no_such_command; }
@test "is skipped" { skip "not on this machine"; }
"""
BATS_BESIDE = '@test "passes beside" {{ {}; }}\n'

BASHUNIT = """
function test_passes() { assert_same 1 1; }
function test_passes_and_is_renamed() { assert_same 1 1; }
function test_fails_always() { assert_same 10 11; }
function test_errors_always() { no_such_command; assert_same 1 1; }
function test_is_skipped() { bashunit::skip "not on this machine"; }
"""
BASHUNIT_BESIDE = "function test_passes_beside() {{ {}; assert_same 1 1; }}\n"

PRODUCERS = {
    "jest-junit": _jest("jest-junit", "junit.xml"),
    "jest-junit-retried": _jest("jest-junit", "junit.xml", JEST_RETRIES),
    "jest-ctrf": _jest("jest-ctrf-json-reporter", "ctrf/ctrf-report.json", JEST_RETRIES),
    "vitest": _vitest(0),
    "vitest-retried": _vitest(2),
    "mocha-junit-reporter": _mocha(
        *("--reporter", "mocha-junit-reporter"), reports="test-results.xml", retries=2
    ),
    "mocha-xunit": _mocha(
        *("--reporter", "xunit", "--reporter-option", "output=report.xml"), reports="report.xml"
    ),
    "node-test": Producer(
        Home.NODE,
        _suite(NODE_HEAD),
        (
            *("node", "--test", "--test-reporter=junit"),
            "--test-reporter-destination=report.xml",
        ),
        "report.xml",
        {
            **_broken(NODE_HEAD),
            Scene.SHARD_1: Change(options=("--test-shard=1/2",)),
            Scene.SHARD_2: Change(options=("--test-shard=2/2",)),
            Scene.THRESHOLD: Change(
                {"shop.js": COVERED, BESIDE: NODE_HEAD + USES + BESIDE_BODY % {"does": PASSES}},
                ("--experimental-test-coverage", "--test-coverage-functions=100"),
            ),
        },
    ),
    "playwright": _playwright("'junit', { outputFile: 'report.xml' }", "report.xml"),
    "jasmine": Producer(
        Home.NODE,
        {**PACKAGE, **_suite(skip="xit"), "helper.js": JASMINE_HELPER},
        ("jasmine", "--helper=helper.js", "--random=false", "*.test.js"),
        "reports/*.xml",
        {
            **_broken(),
            Scene.REVERSED: Change(
                command=("jasmine", "--helper=helper.js", "--random=true", "--seed=7", "*.test.js")
            ),
        },
    ),
    "cucumber-js": Producer(
        Home.NODE,
        {
            **PACKAGE,
            "features/cart.feature": CUCUMBER,
            "features/tax.feature": CUCUMBER_BESIDE.format("passes"),
            "features/steps.js": CUCUMBER_STEPS,
        },
        ("cucumber-js", "--format", "junit:report.xml", "--retry=2"),
        "report.xml",
        {
            Scene.CRASH: Change({"features/tax.feature": CUCUMBER_BESIDE.format("crashes")}),
            Scene.INTERRUPTED: Change({"features/tax.feature": CUCUMBER_BESIDE.format("sleeps")}),
            Scene.UNLOADED: Change({"features/tax.feature": "Feature: tax\n  Scenario it\n x\n"}),
            Scene.REVERSED: Change(options=("--order=random:7",)),
            Scene.SHARD_1: Change(options=("--shard=1/2",)),
            Scene.SHARD_2: Change(options=("--shard=2/2",)),
        },
        has_retries=True,
    ),
    "bats": Producer(
        Home.NODE,
        {"tests/cart.bats": BATS, "tests/tax.bats": BATS_BESIDE.format("true")},
        # Its package names a folder of programs, which not every npm links into .bin.
        ("node_modules/bats/bin/bats", "--report-formatter", "junit", "--output", ".", "tests"),
        "report.xml",
        {
            Scene.CRASH: Change({"tests/tax.bats": BATS_BESIDE.format("kill -KILL $$")}),
            Scene.INTERRUPTED: Change(
                {
                    "tests/tax.bats": BATS_BESIDE.format(
                        'touch "$BATS_TEST_DIRNAME/../started"; sleep 60'
                    )
                }
            ),
            Scene.UNLOADED: Change({"tests/tax.bats": "load no_such_file\n"}),
        },
    ),
    "bashunit": Producer(
        Home.NODE,
        {"tests/cart_test.sh": BASHUNIT, "tests/tax_test.sh": BASHUNIT_BESIDE.format("true")},
        ("bashunit", "--log-junit", "report.xml", "tests"),
        "report.xml",
        {
            Scene.CRASH: Change({"tests/tax_test.sh": BASHUNIT_BESIDE.format("kill -KILL $$")}),
            Scene.INTERRUPTED: Change(
                {"tests/tax_test.sh": BASHUNIT_BESIDE.format("touch started; sleep 60")}
            ),
            Scene.UNLOADED: Change({"tests/tax_test.sh": "function test_( {\n"}),
        },
    ),
}
