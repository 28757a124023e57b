afterAll(() => { throw new Error('after all'); });
test('is fine', () => {});
