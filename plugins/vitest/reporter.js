import { createRequire } from 'node:module';
import path from 'node:path';
import lines from './lines.cjs';

const { version } = createRequire(import.meta.url)('./package.json');
const OLDEST = 3;

export default class {
  constructor() {
    this.run = lines.begin('vitest');
    this.tests = new Map(); // id to passed, failed, skipped or not_run
    this.planned = new Set(); // ids of tests that are not skipped from the start
    this.skippedLater = []; // of these
    this.files = { planned: 0, collected: 0 };
    this.hangs = false;
    this.reason = null; // passed, failed or interrupted; null: the run has not ended
    const told = ['onInit', 'onTestRunStart', 'onTestModuleCollected'];
    lines.guard(this, [...told, 'onTestCaseResult', 'onTestRunEnd', 'onProcessTimeout']);
  }

  onInit(vitest) {
    this.vitest = vitest;
    const { version: runnerVersion, config, logger } = vitest;
    if (parseInt(runnerVersion, 10) < OLDEST) {
      this.run = null;
      logger.warn(`@headgate/vitest needs Vitest ${OLDEST} or newer, and says nothing of ${runnerVersion}`);
      return;
    }
    this.run.start({ runnerVersion, pluginVersion: version, shard: config.shard });
    this.hearErrorsOfClose(logger);
    lines.atExit((code, drained) => this.end(code, drained));
  }

  // Vitest tells errors of the global teardown to its log alone, and fails by them. Vitest 3 ends
  // the process at once.
  hearErrorsOfClose(logger) {
    const error = logger.error;
    logger.error = (...said) => {
      if (said[0] === 'error during close') {
        this.run.errorOutside('', `${said[0]}: ${said[1]?.message ?? said[1]}`);
      }
      return error.apply(logger, said);
    };
  }

  onTestRunStart(specifications) {
    this.files.planned = specifications.length;
  }

  onTestModuleCollected(module) {
    this.files.collected += 1;
    for (const test of module.children.allTests()) {
      const isPlanned = !['skip', 'todo'].includes(test.options.mode);
      if (isPlanned) this.planned.add(test.id);
      this.tests.set(test.id, isPlanned ? 'not_run' : 'skipped');
    }
  }

  onTestCaseResult(test) {
    const { state } = test.result();
    if (state === 'pending') return;
    this.tests.set(test.id, state);
    if (state === 'skipped' && this.planned.has(test.id)) this.skippedLater.push(test);
    this.run.test(namesOf(test, this.relative(test.module.moduleId)), {
      failedBefore: test.diagnostic()?.retryCount ?? 0,
      hasFailed: state === 'failed',
    });
  }

  onTestRunEnd(modules, errors, reason) {
    this.reason = reason;
    for (const module of modules) this.noteErrors(module);
    // A test that skips itself has run. Vitest skips others after an error of a hook, or a stop.
    for (const test of this.skippedLater) {
      if (reason === 'interrupted' || isBelowErrors(test)) this.tests.set(test.id, 'not_run');
    }
    if (this.vitest.config.dangerouslyIgnoreUnhandledErrors) return;
    for (const error of errors) {
      const file = error.VITEST_TEST_PATH ? this.relative(error.VITEST_TEST_PATH) : '';
      const said = [error.name ?? 'Error', error.message, error.cause?.message];
      this.run.errorOutside(file, said.filter(Boolean).join(': '));
    }
  }

  // Vitest ends a process that does not end by itself, and keeps its exit code.
  onProcessTimeout() {
    this.hangs = true;
  }

  // Note the errors of a file and of its groups: those of a file without tests kept it from loading.
  noteErrors(module) {
    const file = this.relative(module.moduleId);
    const groups = [module, ...module.children.allSuites()];
    const [first, ...others] = groups.flatMap((group) => group.errors());
    if (!first) return;
    if (module.children.size === 0) {
      this.run.didNotLoad(file, first.message);
    } else {
      for (const error of [first, ...others]) this.run.errorOutside(file, error.message);
    }
  }

  end(code, drained) {
    const { config } = this.vitest;
    const counts = { planned: this.tests.size, passed: 0, failed: 0, skipped: 0, not_run: 0 };
    for (const outcome of this.tests.values()) counts[outcome] += 1;
    const isStopped = this.reason === 'interrupted' && config.bail > 0 && counts.failed >= config.bail;
    const isInterrupted = this.reason === null ? code > 128 : this.reason === 'interrupted';
    if (this.reason !== null && !drained && !this.hangs) {
      this.run.errorOutside('', `Vitest was ended with ${code} before it had closed: the global teardown failed, `
        + 'or something else ended it');
    }
    const isKnown = this.files.collected >= this.files.planned;
    const hasThreshold = Boolean(config.coverage?.enabled && config.coverage.thresholds);
    const failures = counts.failed + this.run.unloaded.length + this.run.errorsOutside.length;
    const isUnexplained = this.reason !== null && !isInterrupted && !failures && code !== 0;
    const isEmpty = counts.planned === 0 && this.files.planned === 0;
    if (isUnexplained && !hasThreshold && !isEmpty) {
      this.run.errorOutside('', `Vitest ended with ${code} although its tests passed`);
    }
    this.run.end({
      is: {
        internal: this.reason === null && !isInterrupted,
        interrupted: isInterrupted && !isStopped,
        threshold: isUnexplained && hasThreshold && !isEmpty,
        stopped_early: isStopped,
        no_tests: counts.planned === 0,
      },
      counts: isKnown ? counts : { ...counts, planned: null, not_run: null },
      // Whether the coverage is below its thresholds as well is not told, and fails by the same code.
      exitCode: counts.failed && hasThreshold && config.coverage.reportOnFailure ? null : code,
    });
  }

  relative(file) {
    return lines.slashed(path.relative(this.vitest.config.root, file));
  }
}

function isBelowErrors(test) {
  for (let at = test.parent; at; at = at.type === 'module' ? null : at.parent) {
    if (at.errors().length) return true;
  }
  return false;
}

// As Vitest's reporter `junit` writes them with `addFileAttribute`.
function namesOf(test, file) {
  const titles = [];
  for (let at = test; at.type !== 'module'; at = at.parent) titles.unshift(at.name);
  return { name: titles.join(' > '), classname: file, parent: file, file };
}
