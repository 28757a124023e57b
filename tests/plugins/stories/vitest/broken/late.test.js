import { test } from 'vitest';

test('leaves something behind', () => { setTimeout(() => Promise.reject(new Error('late')), 5); });
test('ends later', () => new Promise((end) => setTimeout(end, 50)));
