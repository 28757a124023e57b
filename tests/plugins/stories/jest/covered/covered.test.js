test('is fine', () => {});
