#!/usr/bin/env node
'use strict';
// CommonJS (see package.json beside it), because Node starts it without its module loader: a tenth less for `--version`.
const { existsSync, readFileSync } = require('node:fs');
const path = require('node:path');

/** Oldest Node that the program is tested on. */
const MAJOR_MIN = 20;
const MINOR_MIN = 19;
/** Exit code of a wrong set-up. */
const MISCONFIGURED = 78;
/** Exit code when whoever read stdout went away: that of SIGPIPE. */
const CLOSED_PIPE = 141;

const home = path.join(__dirname, '..');
const program = path.join(home, 'dist', 'cli.cjs');

/** @param {string} why */
const refuse = (why) => {
  process.stderr.write(`pawl: ${why}\n`);
  process.exitCode = MISCONFIGURED;
};

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < MAJOR_MIN || (major === MAJOR_MIN && minor < MINOR_MIN)) {
  refuse(
    `Node ${MAJOR_MIN}.${MINOR_MIN} or newer is needed; this is ${process.version} (${process.execPath}).`,
  );
} else if (
  process.argv.length === 3 &&
  (process.argv[2] === '--version' || process.argv[2] === '-V')
) {
  // Answered before anything else is loaded: it costs what Node itself costs.
  process.stdout.on('error', () => process.exit(CLOSED_PIPE));
  process.stdout.write(
    `${JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')).version}\n`,
  );
} else if (!existsSync(program)) {
  refuse(
    `this copy is not built: dist/cli.cjs is missing. Run \`npm ci\` or \`npm run build\` in ${home}`,
  );
} else {
  const { runCached } = require('./code-cache.js');
  runCached(program);
}
