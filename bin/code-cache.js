'use strict';
/**
 * Runs the program from compiled code that an earlier start kept: compiling is most of what a start costs.
 *
 * 1. Kept code belongs to one content of the program, one build of Node and one command: its name says which. Code
 *    that another command never ran is not in it.
 * 2. V8 refuses code that is not its own; then, and whenever the cache can't be read or written, the program is
 *    compiled as usual. A start never fails because of the cache.
 */
const { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const vm = require('node:vm');

const PREFIX = 'code-';

/** @param {string} content what the program's first line calls it */
const cacheFile = (content) => {
  const caches = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');
  const [, , word = ''] = process.argv;
  const command = /^[a-z]{1,20}$/.test(word) ? word : 'any';
  return path.join(caches, 'pawl', `${PREFIX}${content}-${process.version}-${process.arch}-${command}`);
};

/** @param {string} file */
const readKept = (file) => {
  try {
    return readFileSync(file);
  } catch {
    return undefined; // nothing was kept yet
  }
};

/** @param {string} file @param {string} content @param {Buffer} code */
const keep = (file, content, code) => {
  const folder = path.dirname(file);
  const fresh = `${file}.${process.pid}`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) {
      const isOld = name.startsWith(PREFIX) && !name.startsWith(PREFIX + content);
      if (isOld) rmSync(path.join(folder, name), { force: true });
    }
    writeFileSync(fresh, code, { mode: 0o600 });
    renameSync(fresh, file);
  } catch {
    // The next start compiles again; nothing else depends on it.
  }
};

/** @param {string} program path of a CommonJS file */
exports.runCached = (program) => {
  const source = readFileSync(program, 'utf8');
  const content = source.slice(2, source.indexOf('\n'));
  const file = cacheFile(content);
  const cachedData = readKept(file);
  const script = new vm.Script(Module.wrap(source), {
    filename: program,
    cachedData,
  });
  // At the end, so that what this run compiled on the way is kept, too.
  if (cachedData === undefined || script.cachedDataRejected)
    process.once('exit', () => keep(file, content, script.createCachedData()));
  const module = { exports: {} };
  script.runInThisContext()(
    module.exports,
    Module.createRequire(program),
    module,
    program,
    path.dirname(program),
  );
};
