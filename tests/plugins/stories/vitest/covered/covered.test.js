import { test } from 'vitest';

test('is fine', () => {});
