import { writeFileSync } from 'node:fs';
import { test } from 'vitest';

test('hangs', async () => {
  writeFileSync('begun', 'yes');
  await new Promise((end) => setTimeout(end, 1e6));
}, 1e6);
