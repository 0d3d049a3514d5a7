'use strict';
/**
 * Runs cells (JavaScript programs of the model) in this process, which is inside the sandbox. Its settings are JSON in
 * argv.
 *
 * Cells run in the realm (the global object) of this file. They may break all that they find there. So our own code runs
 * in a realm beside it, with built-ins of its own. What it needs of Node is taken here, before any cell runs.
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

/**
 * The work that `hook` does next. Only a script of Node's `vm` can be ended by SIGINT, and a script can reach us only by a
 * name: so the script `boundary` calls `hook`, which does the work.
 */
let work = () => undefined;
/** Called by scripts of ours, by name. A cell that calls it finds no work. */
const hook = (value) => {
  const what = work;
  work = () => undefined;
  return what(value);
};
// a constant that scripts see, and no property of the global object, where cells would find it
Object.defineProperty(globalThis, HOOK, { value: hook, configurable: true });
new Script(`const ${HOOK} = globalThis.${HOOK};`).runInThisContext();
delete globalThis[HOOK];
const boundary = new Script(`${HOOK}()`);
const runBoundary = boundary.runInThisContext.bind(boundary);

/** Repeats a system call that a signal interrupted before it did anything (EINTR). */
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
  /** The next piece of input, in ASCII as the other side writes it. Ends this process at the end of the channel. */
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
  /** The text of a file; `note` is called if it is not UTF-8. @type {(file: string, note: () => void) => string} */
  readText(file, note) {
    const bytes = readFileSync(file);
    if (isAscii(bytes)) return latin1(bytes);
    if (!isUtf8(bytes)) note();
    return utf8(bytes);
  },
  /** @type {(bytes: Uint8Array) => string} */
  decode: (bytes) => utf8(bytes),
  /** Does the work. Returns 'interrupted' if SIGINT came meanwhile, else null, or what it threw. */
  bounded(what) {
    work = what;
    try {
      runBoundary({ breakOnSigint: true });
      return null;
    } catch (error) {
      return error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? 'interrupted' : { error };
    }
  },
  /** Sets what the next call of the hook does. Returns the code of such a call. */
  onHook(what, value) {
    work = what;
    return `${HOOK}(${value})`;
  },
  /** Runs ticks and promises until none is left. Undocumented, but as old as Node; tests fail if it is gone. */
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
