'use strict';
/**
 * Runs cells of JavaScript in this process, which stands behind the sandbox. Its settings are JSON in argv.
 *
 * Cells run in the realm of this file. Code of a model may break all that it finds there, so our own code runs in a realm
 * beside it, with built-ins of its own; what it needs of Node is taken here, before any cell runs.
 */
const { isAscii, isUtf8 } = require('node:buffer');
const { accessSync, constants, readFileSync, readSync, writeSync } = require('node:fs');
const { Session } = require('node:inspector');
const path = require('node:path');
const { createContext, Script } = require('node:vm');

const CHANNEL = 3;
const READ_BYTES = 65_536;
const HOOK = '__work_of_ours';

const scratch = Buffer.alloc(READ_BYTES);
/** @type {(method: Function) => (self: any, ...rest: any[]) => any} */
const uncurry = (method) => Function.prototype.call.bind(method);
const latin1 = uncurry(Buffer.prototype.latin1Slice);
const utf8 = uncurry(Buffer.prototype.utf8Slice);
const bytesFrom = Buffer.from;
const exit = process.reallyExit.bind(process);
const session = new Session();
session.connect();

let work = () => undefined;
/** Called by scripts of ours, by name; to whoever else calls it there is nothing to do. */
const hook = (value) => {
  const what = work;
  work = () => undefined;
  return what(value);
};
// A binding of scripts and no property of the global object, where a model would find it among its names.
Object.defineProperty(globalThis, HOOK, { value: hook, configurable: true });
new Script(`const ${HOOK} = globalThis.${HOOK};`).runInThisContext();
delete globalThis[HOOK];
const boundary = new Script(`${HOOK}()`);
const runBoundary = boundary.runInThisContext.bind(boundary);

/** A signal may come in the middle of a system call, which then says so and has done nothing. */
const again = (call) => {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (error.code !== 'EINTR') throw error;
    }
  }
};

const node = {
  exit,
  /** Text of what comes next, in ASCII as the other side writes it. The end of the channel is the end of this process. */
  read() {
    const count = again(() => readSync(CHANNEL, scratch, 0, READ_BYTES, null));
    if (count === 0) exit(0);
    return latin1(scratch, 0, count);
  },
  /** @param {string} text */
  write(text) {
    const bytes = bytesFrom(text, 'utf8');
    for (let sent = 0; sent < bytes.length; ) {
      sent += again(() => writeSync(CHANNEL, bytes, sent, bytes.length - sent));
    }
  },
  whyUnreadable(file) {
    try {
      accessSync(file, constants.R_OK);
      return null;
    } catch (error) {
      return error.message;
    }
  },
  /** The text of a file; `note` hears when it is not UTF-8. @type {(file: string, note: () => void) => string} */
  readText(file, note) {
    const bytes = readFileSync(file);
    if (isAscii(bytes)) return latin1(bytes);
    if (!isUtf8(bytes)) note();
    return utf8(bytes);
  },
  /** @type {(bytes: Uint8Array) => string} */
  decode: (bytes) => utf8(bytes),
  /** Does the work. 'interrupted' where SIGINT ended it, before its end or not; else null, or what it threw. */
  bounded(what) {
    work = what;
    try {
      runBoundary({ breakOnSigint: true });
      return null;
    } catch (error) {
      return error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? 'interrupted' : { error };
    }
  },
  /** What the next call of the hook does, and the code of such a call. */
  onHook(what, value) {
    work = what;
    return `${HOOK}(${value})`;
  },
  /** Runs ticks and promises until none is left. As old as Node, but undocumented: the tests would miss it. */
  runTicks: process._tickCallback,
  onRejection: (hear) => process.on('unhandledRejection', hear),
  post: session.post.bind(session),
};

const own = createContext({ __proto__: null });
const load = (file) =>
  new Script(readFileSync(path.join(__dirname, file), 'utf8'), { filename: file }).runInContext(
    own,
  );
const serve = load('cells.js');
serve({
  node,
  guest: globalThis,
  settings: JSON.parse(process.argv[2]),
  createOutput: load('output.js'),
  createTimers: load('timers.js'),
  createNames: load('../javascript-prelude.js'),
});
