jest.retryTimes(2);
let tries = 0;
describe('zeta', () => {
  test('passes at the second try', () => { tries += 1; if (tries < 2) throw new Error('once'); });
  test('never passes', () => { throw new Error('always'); });
  describe('with a hook that fails', () => {
    beforeEach(() => { throw new Error('before each'); });
    test('has an error', () => {});
  });
});
