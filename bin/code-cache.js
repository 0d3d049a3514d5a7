'use strict';
/**
 * Runs the program from compiled code that an earlier start kept: compiling is most of what a start costs.
 *
 * 1. Kept code belongs to one content of the program, one build of Node and one command: its name says which. Code
 *    that another command never ran is not in it.
 * 2. Compiled code is trusted like the program itself, so it is taken only from a file and a folder that belong to the
 *    user and that nobody else can write, and never from a path that depends on the current folder.
 * 3. V8 crashes on code that was damaged: a checksum stands in front of it. Whenever kept code can't be used, read or
 *    written, the program is compiled as usual. A start never fails because of the cache.
 */
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { getHeapCodeStatistics, setFlagsFromString } = require('node:v8');
const vm = require('node:vm');

const PREFIX = 'code-';
const SUM_BYTES = 32;
/** Compiled code at the end, against that at the start: what Node compiles of its own makes it up to 1.4 times as much. */
const MUCH_MORE = 1.42;
/** Exit code of a command line that was refused: whatever word stands in it, it is no command. */
const REFUSED = 2;

/** @param {Buffer} code */
const sumOf = (code) => createHash('sha256').update(code).digest();

/** @param {string} content what the program's first line calls it */
const cacheFile = (content) => {
  const caches = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');
  if (!path.isAbsolute(caches)) return null;
  const [, , word = ''] = process.argv;
  const command = /^[a-z]{1,20}$/.test(word) ? word : 'any';
  return path.join(caches, 'pawl', `${PREFIX}${content}-${process.version}-${process.arch}-${command}`);
};

/** @param {fs.Stats} status */
const isOurs = ({ uid, mode }) =>
  process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);

/** @param {string | null} file */
const readKept = (file) => {
  if (file === null || !fs.existsSync(file)) return undefined;
  let handle = null;
  try {
    handle = fs.openSync(file, 'r');
    if (!isOurs(fs.fstatSync(handle)) || !isOurs(fs.lstatSync(path.dirname(file)))) return undefined;
    const kept = fs.readFileSync(handle);
    const code = kept.subarray(SUM_BYTES);
    return sumOf(code).equals(kept.subarray(0, SUM_BYTES)) ? code : undefined;
  } catch {
    return undefined; // what can't be read is compiled again
  } finally {
    if (handle !== null) fs.closeSync(handle);
  }
};

/** @param {string} file @param {string} content @param {Buffer} code */
const keep = (file, content, code) => {
  const folder = path.dirname(file);
  const fresh = `${file}.${process.pid}`;
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!isOurs(fs.lstatSync(folder))) return;
    for (const name of fs.readdirSync(folder)) {
      const isOld = name.startsWith(PREFIX) && !name.startsWith(PREFIX + content);
      if (isOld) fs.rmSync(path.join(folder, name), { force: true });
    }
    fs.writeFileSync(fresh, Buffer.concat([sumOf(code), code]), { mode: 0o600, flag: 'wx' });
    fs.renameSync(fresh, file);
  } catch {
    // The next start compiles again; nothing else depends on it.
  }
};

const compiledBytes = () => getHeapCodeStatistics().bytecode_and_metadata_size;

/** @param {string} program path of a CommonJS file */
exports.runCached = (program) => {
  const source = fs.readFileSync(program, 'utf8');
  const content = source.slice(2, source.indexOf('\n'));
  const file = cacheFile(content);
  const cachedData = readKept(file);
  const script = new vm.Script(Module.wrap(source), { filename: program, cachedData });
  const isUsed = cachedData !== undefined && !script.cachedDataRejected;
  const before = compiledBytes();
  // At the end, so that what this run compiled on the way is kept, too.
  process.once('exit', (exitCode) => {
    if (file === null || exitCode === REFUSED) return;
    if (isUsed && compiledBytes() < before * MUCH_MORE) return;
    // Code is only good for the flags it was made with, and the program sets this one (src/cli/open-session.ts).
    setFlagsFromString('--semi-space-growth-factor=2');
    const code = script.createCachedData();
    if (!isUsed || code.length > cachedData.length) keep(file, content, code);
  });
  const module = { exports: {} };
  script.runInThisContext()(
    module.exports,
    Module.createRequire(program),
    module,
    program,
    path.dirname(program),
  );
};
