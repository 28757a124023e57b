test('is killed', () => { process.kill(process.pid, 'SIGKILL'); });
