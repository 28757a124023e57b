import { beforeEach, describe, test } from 'vitest';

let tries = 0;
describe('zeta', () => {
  test('passes at the second try', { retry: 2 }, () => { tries += 1; if (tries < 2) throw new Error('once'); });
  test('never passes', { retry: 2 }, () => { throw new Error('always'); });
  describe('with a hook that fails', () => {
    beforeEach(() => { throw new Error('before each'); });
    test('has an error', () => {});
  });
});
