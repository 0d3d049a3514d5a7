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
const fs = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { cachedDataVersionTag, getHeapCodeStatistics, setFlagsFromString } = require('node:v8');
const vm = require('node:vm');
const { crc32 } = require('node:zlib');

const PREFIX = 'code-';
const SUM_BYTES = 4;
/** Behind the sum: how much was compiled when it was kept. */
const COUNT_BYTES = 8;
/** Compiled code at the end of a start, against that at the end of the one that kept it; alike, they differ by 0.001. */
const MORE = 1.04;
/**
 * To find out how much was compiled takes 5 ms. Once the kept code is older than this, one run in eight looks: the
 * commands that somebody uses are mostly known by then.
 */
const NEW_MS = 3_600_000;
const LOOKS = 1 / 8;
/**
 * Code is only good for the flags that it was made with. These are the ones that the program changes, as a start has
 * them: packages/pawl/src/sessions/open-session.ts, packages/agent/src/policy/shell/grammar.ts (`--liftoff-only` turns two off).
 */
const FLAGS_AT_START = ['--semi-space-growth-factor=2', '--wasm-tier-up', '--wasm-dynamic-tiering'];
/** Exit code of a command line that was refused: whatever word stands in it, it is no command. */
const REFUSED = 2;

/**
 * Against damage, not against forgery: whoever can write the file can write its sum.
 * @param {Buffer} code
 */
const sumOf = (code) => {
  const sum = Buffer.alloc(SUM_BYTES);
  sum.writeUInt32LE(crc32(code));
  return sum;
};

/** Null if there is no home: a user id without an account, and no HOME. */
const cacheFolder = () => {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME;
  try {
    return path.join(homedir(), '.cache');
  } catch {
    return null; // the program says what is missing
  }
};

/** @param {string} content what the program's first line calls it */
const cacheFile = (content) => {
  const caches = cacheFolder();
  if (caches === null || !path.isAbsolute(caches)) return null;
  const [, , word = ''] = process.argv;
  const command = /^[a-z]{1,20}$/.test(word) ? word : 'any';
  return path.join(
    caches,
    'pawl',
    `${PREFIX}${content}-${process.version}-${process.arch}-${command}`,
  );
};

/** @param {fs.Stats} status */
const isOurs = ({ uid, mode }) =>
  process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);

/**
 * What an earlier start kept: its code, how much was compiled at its end, and whether that was lately.
 * @param {string | null} file
 */
const readKept = (file) => {
  if (file === null || !fs.existsSync(file)) return undefined;
  let handle = null;
  try {
    handle = fs.openSync(file, 'r');
    if (!isOurs(fs.fstatSync(handle)) || !isOurs(fs.lstatSync(path.dirname(file))))
      return undefined;
    const isNew = Date.now() - fs.fstatSync(handle).mtimeMs < NEW_MS;
    const bytes = fs.readFileSync(handle);
    const kept = bytes.subarray(SUM_BYTES);
    if (!sumOf(kept).equals(bytes.subarray(0, SUM_BYTES))) return undefined;
    return { code: kept.subarray(COUNT_BYTES), compiled: kept.readDoubleLE(0), isNew };
  } catch {
    return undefined; // what can't be read is compiled again
  } finally {
    if (handle !== null) fs.closeSync(handle);
  }
};

/** @param {string} file @param {string} content @param {Buffer} code @param {number} compiled */
const keep = (file, content, code, compiled) => {
  const folder = path.dirname(file);
  const fresh = `${file}.${process.pid}`;
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!isOurs(fs.lstatSync(folder))) return;
    for (const name of fs.readdirSync(folder)) {
      const isOld = name.startsWith(PREFIX) && !name.startsWith(PREFIX + content);
      if (isOld) fs.rmSync(path.join(folder, name), { force: true });
    }
    const count = Buffer.alloc(COUNT_BYTES);
    count.writeDoubleLE(compiled);
    const kept = Buffer.concat([count, code]);
    fs.writeFileSync(fresh, Buffer.concat([sumOf(kept), kept]), { mode: 0o600, flag: 'wx' });
    fs.renameSync(fresh, file);
  } catch {
    // The next start compiles again; nothing else depends on it.
  }
};

/** @param {string} program path of a CommonJS file, in ASCII only: it is read as such */
exports.runCached = (program) => {
  const source = fs.readFileSync(program, 'latin1');
  const content = source.slice(2, source.indexOf('\n'));
  const file = cacheFile(content);
  const kept = readKept(file);
  const flags = cachedDataVersionTag();
  const script = new vm.Script(Module.wrap(source), { filename: program, cachedData: kept?.code });
  // The code itself is not held: it is 2 MB.
  const before =
    kept === undefined
      ? null
      : { compiled: kept.compiled, looks: kept.isNew || Math.random() < LOOKS };
  // At the end, so that what this run compiled on the way is kept, too.
  process.once('exit', (exitCode) => {
    if (file === null || exitCode === REFUSED) return;
    const isGood = before !== null && !script.cachedDataRejected;
    if (isGood && !before.looks) return;
    const compiled = getHeapCodeStatistics().bytecode_and_metadata_size;
    if (isGood && compiled < before.compiled * MORE) return;
    for (const flag of FLAGS_AT_START) setFlagsFromString(flag);
    if (cachedDataVersionTag() !== flags) return; // the next start could not use it, and would write it again
    keep(file, content, script.createCachedData(), compiled);
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
