const { test } = require('@playwright/test');

test.describe('with a hook that fails', () => {
  test.beforeAll(() => { throw new Error('before all'); });
  test('has an error', () => {});
  test('does not begin', () => {});
});
test('is killed', () => { process.kill(process.pid, 'SIGKILL'); });
