'use strict';
const path = require('path');
const { stripVTControlCharacters } = require('util');
const { atExit, begin, guard, slashed } = require('./lines.cjs');
const { version } = require('./package.json');

const NOTHING_FOUND = /^(Error: )?No tests found/;
const STOPPED = /^Testing stopped early after \d+ maximum allowed failures/;

module.exports = class {
  constructor() {
    this.run = process.argv.includes('--list') ? null : begin('playwright');
    this.result = null; // null: the run has not ended
    this.isEmpty = false;
    this.isStopped = false;
    guard(this, ['onBegin', 'onTestEnd', 'onError', 'onEnd']);
  }

  // The standard reporter of the terminal stays.
  printsToStdio() {
    return false;
  }

  // Playwright calls this also where no test can run, and tells earlier errors after it.
  onBegin(config, suite) {
    const { shard } = config;
    this.config = config;
    this.suite = suite;
    this.run.start({
      runnerVersion: config.version,
      pluginVersion: version,
      shard: shard && { index: shard.current, count: shard.total },
    });
    atExit((code) => this.end(code));
  }

  onTestEnd(test, result) {
    if (hasFailed(test, result)) {
      this.run.attempt(namesOf(test), 'failed', result.retry >= test.retries);
    } else if (result.status === test.expectedStatus && test.outcome() === 'flaky') {
      this.run.attempt(namesOf(test), 'passed', true);
    }
  }

  onError(error) {
    const { location } = error;
    const message = error.message || String(error.value || '');
    const file = location ? slashed(path.relative(this.config.rootDir, location.file)) : '';
    const isOfRun = [this.config.globalSetup, this.config.globalTeardown].includes(location?.file);
    const isLoading = this.suite.allTests().length === 0 && !isOfRun;
    if (STOPPED.test(stripVTControlCharacters(message))) this.isStopped = true;
    else if (isLoading && NOTHING_FOUND.test(message)) this.isEmpty = true;
    else if (isLoading && location) this.run.didNotLoad(file, message);
    else this.run.errorOutside(file, message);
  }

  onEnd(result) {
    this.result = result;
  }

  end(code) {
    const { maxFailures, failOnFlakyTests } = this.config;
    const { counts, flaky } = this.count();
    const status = this.result && this.result.status;
    const isInterrupted = status ? status === 'interrupted' : code > 128;
    const isLimited = maxFailures > 0 && (counts.failed === 0 || counts.failed >= maxFailures);
    const isStopped = this.isStopped || (isLimited && counts.not_run > 0);
    const isFlaky = Boolean(failOnFlakyTests) && flaky > 0;
    const hasErrors = this.run.unloaded.length + this.run.errorsOutside.length > 0;
    const isExplained = counts.failed || hasErrors || isInterrupted || isStopped || isFlaky || this.isEmpty;
    if (status && code !== 0 && !isExplained) {
      this.run.errorOutside('', `Playwright ended with ${code} although its tests passed`);
    }
    this.run.end({
      is: {
        internal: !status && !isInterrupted,
        interrupted: isInterrupted,
        threshold: isFlaky,
        stopped_early: isStopped,
        no_tests: counts.planned === 0,
      },
      // What kept Playwright from beginning kept the tests from being counted.
      counts: counts.planned || !hasErrors ? counts : { ...counts, planned: null, not_run: null },
      exitCode: code,
    });
  }

  count() {
    const counts = { planned: 0, passed: 0, failed: 0, skipped: 0, not_run: 0 };
    let flaky = 0;
    for (const test of this.suite.allTests()) {
      const outcome = test.outcome();
      const isSkipped = test.results.length > 0 && test.expectedStatus === 'skipped';
      const left = isSkipped ? 'skipped' : 'not_run';
      counts.planned += 1;
      flaky += outcome === 'flaky' ? 1 : 0;
      counts[{ expected: 'passed', flaky: 'passed', unexpected: 'failed' }[outcome] || left] += 1;
    }
    return { counts, flaky };
  }
};

function hasFailed(test, { status }) {
  return !['skipped', 'interrupted', test.expectedStatus].includes(status);
}

// As Playwright's reporter `junit` writes them; its reports name the file as the class.
function namesOf(test) {
  const [, , file, ...titles] = test.titlePath();
  return { name: titles.join(' › '), classname: file, parent: file, file: '' };
}
