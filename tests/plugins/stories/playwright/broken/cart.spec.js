const { test } = require('@playwright/test');

test('stands alone', () => {});
