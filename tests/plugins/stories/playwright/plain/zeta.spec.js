const { test } = require('@playwright/test');

test.describe.configure({ retries: 1 });
test.describe('zeta', () => {
  test('passes at the second try', ({}, info) => { if (info.retry < 1) throw new Error('once'); });
  test('never passes', () => { throw new Error('always'); });
});
