test('hangs', async () => {
  require('fs').writeFileSync('begun', 'yes');
  await new Promise((end) => setTimeout(end, 1e6));
}, 1e6);
