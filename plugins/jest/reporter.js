'use strict';
const fs = require('fs');
const path = require('path');
const { atExit, begin, guard, slashed } = require('./lines.cjs');
const { version } = require('./package.json');
const resolved = require('./resolved.js');

module.exports = class {
  constructor(config) {
    this.config = config;
    this.run = begin('jest');
    this.root = fs.realpathSync(process.cwd());
    this.counts = { planned: 0, passed: 0, failed: 0, skipped: 0, not_run: 0 };
    this.files = { planned: 0, ended: 0 };
    this.results = null;
    guard(this, ['onRunStart', 'onTestResult', 'onRunComplete']);
  }

  onRunStart({ numTotalTestSuites }) {
    const { shard } = this.config;
    this.files.planned = numTotalTestSuites;
    this.run.start({
      runnerVersion: versionOfJest(),
      pluginVersion: version,
      shard: shard && { index: shard.shardIndex, count: shard.shardCount },
    });
    atExit((code, drained) => this.end(code, drained));
  }

  onTestResult(_test, result) {
    const file = slashed(path.relative(this.root, result.testFilePath));
    const tests = result.testResults;
    this.files.ended += 1;
    if (result.testExecError) {
      const said = result.failureMessage || result.testExecError.message || '';
      const message = said.replace('● Test suite failed to run', '');
      if (tests.length) this.run.errorOutside(file, message);
      else this.run.didNotLoad(file, message);
    }
    for (const test of tests) {
      this.counts[{ passed: 'passed', failed: 'failed' }[test.status] || 'skipped'] += 1;
      const failedBefore = Math.max(0, (test.invocations || 1) - 1);
      const hasFailed = test.status === 'failed';
      this.run.test(namesOf(test, tests[0], file), { failedBefore, hasFailed });
    }
  }

  // Jest calls this before it compares the coverage with its thresholds, and before the global
  // teardown. It goes on to change `results`, which are whole when the process ends.
  onRunComplete(_contexts, results) {
    this.results = results;
    this.handles = results.openHandles;
  }

  end(code, drained) {
    const { results, config, files, counts } = this;
    const hasCrashed = !results || Boolean(results.runExecError);
    const isStopped = config.bail > 0 && files.ended < files.planned && counts.failed >= config.bail;
    const isKnown = files.ended >= files.planned;
    const failures = counts.failed + this.run.unloaded.length + this.run.errorsOutside.length;
    const hasThreshold = config.collectCoverage && Boolean(config.coverageThreshold);
    const isBelow = !hasCrashed && !isStopped && !failures && hasThreshold && results.success === false;
    if (!hasCrashed && !isStopped) this.noteEnd(code, drained, failures > 0 || isBelow);
    counts.planned = counts.passed + counts.failed + counts.skipped;
    this.run.end({
      is: {
        internal: hasCrashed,
        interrupted: Boolean(results && results.wasInterrupted),
        threshold: isBelow,
        stopped_early: isStopped,
        no_tests: counts.planned === 0,
      },
      counts: isKnown ? counts : { ...counts, planned: null, not_run: null },
      // Whether the coverage is below as well cannot be known: Jest fails by the same code.
      exitCode: counts.failed && hasThreshold ? null : code,
    });
  }

  // Note what failed beside the tests: nobody tells a reporter.
  noteEnd(code, drained, isExplained) {
    const { snapshot, openHandles, success } = this.results;
    // After the global teardown Jest replaces the list of open handles, and lets the process end.
    const isWhole = drained || (this.config.forceExit && openHandles !== this.handles);
    if (!isWhole) {
      this.run.errorOutside('', `Jest was ended with ${code} before it had settled its result: `
        + 'the global teardown failed, or another reporter or processor ended it');
    } else if (snapshot.failure && (snapshot.unchecked || snapshot.filesRemoved)) {
      this.run.errorOutside('', 'there are snapshots that belong to no test');
    } else if (!isExplained && (success === false || code !== 0)) {
      this.run.errorOutside('', `Jest ended with ${code} although its tests passed`);
    }
  }
};

// As jest-junit writes them with `addFileAttribute`: its suite is named after the first test.
function namesOf({ ancestorTitles, title }, first, file) {
  const name = '{classname} {title}'
    .replace('{classname}', ancestorTitles.join(' '))
    .replace('{title}', title);
  const parent = '{title}'.replace('{title}', first.ancestorTitles[0]);
  return { name, classname: name, parent, file };
}

function versionOfJest() {
  try {
    return require(resolved('jest/package.json')).version;
  } catch {
    return 'unknown';
  }
}
