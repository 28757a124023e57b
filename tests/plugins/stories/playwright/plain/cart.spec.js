const { test } = require('@playwright/test');

test('stands alone', () => {});
test.describe('cart', () => {
  test('adds', () => {});
  test.skip('is left out', () => {});
  test('skips itself', () => { test.skip(true, 'not here'); });
  test('fails as expected', () => { test.fail(); throw new Error('yes'); });
});
