const { writeFileSync } = require('fs');
const { test } = require('@playwright/test');

test('hangs', async () => {
  test.setTimeout(1e6);
  writeFileSync('begun', 'yes');
  await new Promise((end) => setTimeout(end, 1e6));
});
