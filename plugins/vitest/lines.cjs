'use strict';
// What a test runner says to `headgate test`, and what it is told: docs/reference/live-tests.md of
// Headgate. Each plug-in has a copy of this file, and a test holds that the copies are equal.

const fs = require('fs');
const path = require('path');
const { randomUUID } = require('crypto');
const { stripVTControlCharacters } = require('util');

const LINE_BYTES_MAX = 16384;
const LISTED_MAX = 20;
const TEXT_MAX = 300;
const LISTS = ['unloaded', 'errors_outside'];
const REASONS = [
  ...['internal', 'usage', 'interrupted', 'unloaded', 'error_outside'],
  ...['threshold', 'stopped_early', 'tests_failed', 'no_tests'],
];

// One run of a runner: it appends lines to the file that HEADGATE_LIVE names.
class Run {
  constructor(live, runner) {
    this.live = live;
    this.about = { run: randomUUID(), runner };
    this.shard = {};
    this.unloaded = [];
    this.errorsOutside = [];
    this.hasStarted = false;
  }

  // `shard`: { index, count }, the first is 1; nothing if the tests are not divided.
  start({ runnerVersion, pluginVersion, shard }) {
    this.hasStarted = true;
    this.shard = shard ? { shard: `${shard.index}/${shard.count}` } : {};
    const versions = { runner_version: runnerVersion, plugin_version: pluginVersion };
    this.write({ event: 'start', ...this.about, ...versions, ...this.shard });
  }

  // A test that has ended: its failed attempts that were repeated, then its outcome if it failed
  // or had failed.
  test(names, { failedBefore, hasFailed }) {
    for (let attempt = 0; attempt < failedBefore; attempt++) this.attempt(names, 'failed', false);
    if (hasFailed) this.attempt(names, 'failed', true);
    else if (failedBefore) this.attempt(names, 'passed', true);
  }

  // `names`: name, classname, parent and file, as in the runner's JUnit report. `final`: the test
  // is not tried again.
  attempt(names, outcome, final) {
    this.write({ event: 'test', ...names, outcome, final });
  }

  didNotLoad(file, message) {
    this.unloaded.push({ file, message: message || 'it did not load' });
  }

  errorOutside(file, message) {
    this.errorsOutside.push({ file, message: message || 'an error without a message' });
  }

  // `is`: which reasons are true, beside what the lists say. `counts`: planned, passed, failed,
  // skipped and not_run. `exitCode`: null if it does not follow from this reason alone.
  end({ is, counts, exitCode }) {
    const lists = { unloaded: this.unloaded, errors_outside: this.errorsOutside };
    const found = {
      ...is,
      unloaded: this.unloaded.length > 0,
      error_outside: this.errorsOutside.length > 0,
      tests_failed: counts.failed > 0,
    };
    const reason = REASONS.find((each) => found[each]) || 'passed';
    const says = { event: 'end', ...this.about, reason, exit_code: exitCode, ...counts };
    for (let listed = LISTED_MAX; listed >= 0; listed--) {
      if (this.write({ ...says, ...shortened(lists, listed), ...this.shard })) return;
    }
  }

  // Append a line by one call, so that lines of several processes do not mix; false: too long.
  write(line) {
    const text = JSON.stringify({ v: 1, ...line }) + '\n';
    if (Buffer.byteLength(text) > LINE_BYTES_MAX) return false;
    fs.appendFileSync(this.live, text);
    return true;
  }
}

// The lists with so many errors, and how many more there are.
function shortened(lists, listed) {
  const short = {};
  for (const name of LISTS) {
    const clipped = ({ file, message }) => ({ file: clip(file), message: clip(message) });
    short[name] = lists[name].slice(0, listed).map(clipped);
    if (lists[name].length > listed) short[`${name}_more`] = lists[name].length - listed;
  }
  return short;
}

function clip(text) {
  const plain = stripVTControlCharacters(String(text)).replace(/\s+/g, ' ').trim();
  return Array.from(plain).slice(0, TEXT_MAX).join('');
}

// The run of this process; null if `headgate test` has not started it. The variable is taken out
// of the environment: a runner that a test starts would speak in the name of this one.
function begin(runner) {
  const live = process.env.HEADGATE_LIVE;
  if (!live) return null;
  delete process.env.HEADGATE_LIVE;
  return new Run(live, runner);
}

// Let nothing that goes wrong in these methods reach the runner; without a run they do nothing.
function guard(reporter, methods) {
  for (const name of methods) {
    const method = reporter[name];
    reporter[name] = (...told) => {
      try {
        if (reporter.run) method.apply(reporter, told);
      } catch {
        // A line that is missing is a gap; a runner that we break would be a wrong result.
      }
    };
  }
}

// Call `tell(code, drained)` when the process ends: its exit code, and whether it ends because
// nothing was left to do. Then what the runner does on `exit` comes first: Jest sets the code there.
// Where the process is ended, the code is settled, and ours is first: Vitest 3 lets no other follow.
function atExit(tell) {
  let drained = false;
  const listener = (code) => {
    try {
      tell(Number(process.exitCode ?? code), drained);
    } catch {
      // As in guard.
    }
  };
  process.prependListener('exit', listener);
  process.on('beforeExit', () => {
    drained = true;
    process.off('exit', listener);
    process.on('exit', listener);
  });
}

function slashed(file) {
  return file.split(path.sep).join('/');
}

// The place of a file among those of the suspected tests: 0 is the most suspected. Reports name a
// file by its attribute `file`, or as the class of its tests.
function suspicion() {
  let suspects = [];
  try {
    const { tests } = JSON.parse(fs.readFileSync(process.env.HEADGATE_SUSPECTS, 'utf8'));
    suspects = tests.map(({ file, classname }) => [file, classname].filter(Boolean));
  } catch {
    // There is no list, or none that can be read: every file is as suspected as any other.
  }
  return (file) => {
    const at = suspects.findIndex((names) => names.some((name) => slashed(file).endsWith(`/${name}`)));
    return at < 0 ? suspects.length : at;
  };
}

module.exports = { atExit, begin, guard, slashed, suspicion };
