import { test } from 'vitest';

test('is killed', () => { process.kill(process.pid, 'SIGKILL'); });
