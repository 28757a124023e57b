'use strict';
const { suspicion } = require('./lines.cjs');
const resolved = require('./resolved.js');

const Sequencer = require(sequencerOfJest()).default;

// Runs files with suspected tests first; all others stay in Jest's own order.
module.exports = class extends Sequencer {
  sort(tests) {
    const rank = suspicion();
    return [...super.sort(tests)].sort((a, b) => rank(a.path) - rank(b.path));
  }
};

function sequencerOfJest() {
  try {
    return resolved('jest', '@jest/core', '@jest/test-sequencer');
  } catch {
    return resolved('@jest/test-sequencer');
  }
}
