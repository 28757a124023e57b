test('stands alone', () => {});
describe('cart', () => {
  test('adds', () => {});
  test('fails & costs $& {title}', () => { throw new Error('no'); });
  test.skip('is left out', () => {});
  test.todo('is to come');
});
