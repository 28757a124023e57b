import { beforeAll, describe, test } from 'vitest';

test('is fine', () => {});
describe('with a hook that fails', () => {
  beforeAll(() => { throw new Error('before all'); });
  test('does not begin', () => {});
});
