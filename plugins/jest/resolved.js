'use strict';
const path = require('path');

// Where the last of these packages is, each looked for from the one before: package managers put
// what Jest needs beside Jest alone. The first is looked for from the folder of the run. Throws if
// one is missing.
module.exports = function resolved(...names) {
  let from = [process.cwd(), __dirname];
  let found = '';
  for (const name of names) {
    found = require.resolve(name, { paths: from });
    from = [path.dirname(found)];
  }
  return found;
};
