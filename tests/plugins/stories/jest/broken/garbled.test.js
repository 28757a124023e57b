test('a' =>
