'use strict';

/**
 * The thread of scan-thread.ts, as plain JavaScript, since a thread is started from its text. It
 * looks at the files of a workspace, so that nobody else has to wait for it.
 *
 * 1. The kernel queues the event of a change before the call that made it returns, and gives all
 *    events in order. So once a file that was made here is reported, all earlier changes are.
 * 2. Where events may be missing, all names are looked at.
 * 3. Names are bytes as latin1; '' is the workspace.
 */

const fs = require('node:fs');
const path = require('node:path');
const { parentPort, workerData } = require('node:worker_threads');

/** @type {{ workspace: string, marks: string }} */
const { workspace, marks } = workerData;

/** How long to wait for the event of a file that was made here. */
const MARK_MS = 5_000;
const FOLDERS_MAX = 10_000;
/** Share of the watches that the user may have: editors need some too. */
const SHARE_OF_WATCHES = 1 / 4;
/**
 * Types of file systems that are local, and so report all changes: ext, xfs, btrfs, tmpfs, overlay,
 * zfs, f2fs, bcachefs.
 */
const FILE_SYSTEMS = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010, 0xca451a4e,
]);

/** Names to look at, in the order of their rows. @type {string[]} */
const names = [];
/** The row of each name. @type {Map<string, number>} */
const rows = new Map();
/** The rows: mtimeMs, ctimeMs, ino, size, mode of each name. Mode 0: no such file. */
let numbers = new Float64Array(0);
const ROW = 5;
/** Names that may differ from what is known. @type {Set<string>} */
const suspects = new Set();
/** Folders with an event since the last answer. @type {Set<string>} */
const reported = new Set();
/** Folders that were to be watched, and are gone. @type {Set<string>} */
const gone = new Set();
/** @type {Map<string, { inode: bigint, watcher: import('node:fs').FSWatcher }>} */
const watched = new Map();
/** Number of events that were received since the last answer. */
let events = 0;
/** Whether all names are suspects. */
let isUnsure = true;
/** Null: folders can't be watched. */
let limits = readLimits();
/**
 * The file whose event `drain` waits for.
 * @type {{ name: string, seen: (isInOrder: boolean) => void } | null}
 */
let mark = null;
/** Number of such files so far. */
let markCount = 0;

/** @param {string} name */
const toPlace = (name) => {
  const place = name === '' ? workspace : `${workspace}/`;
  if (/^[\0-\x7f]*$/.test(name)) return place + name;
  return Buffer.concat([Buffer.from(place), Buffer.from(name, 'latin1')]);
};

/** @param {string} name */
const lookAt = (name) => {
  try {
    return fs.lstatSync(toPlace(name), { throwIfNoEntry: false });
  } catch {
    return null; // closed, or a file stands where a folder was
  }
};

/** Exact, unlike a number. @param {string} name @param {'dev' | 'ino'} which */
const identity = (name, which) => {
  try {
    return fs.lstatSync(toPlace(name), { bigint: true, throwIfNoEntry: false })?.[which];
  } catch {
    return undefined;
  }
};

function readLimits() {
  try {
    /** @param {string} name */
    const read = (name) => Number(fs.readFileSync(`/proc/sys/fs/inotify/${name}`, 'utf8'));
    if (!FILE_SYSTEMS.has(fs.statfsSync(workspace).type)) return null;
    const folders = Math.min(FOLDERS_MAX, read('max_user_watches') * SHARE_OF_WATCHES);
    // a queue that overflowed has delivered all that it held, which is more
    const limits = { folders, events: read('max_queued_events') / 2 };
    fs.mkdirSync(marks, { recursive: true, mode: 0o700 });
    const watcher = fs.watch(marks, { persistent: false }, (_, name) => {
      if (mark !== null && name === mark.name) mark.seen(true);
    });
    watcher.on('error', stopWatching);
    return limits;
  } catch {
    return null; // another system, or no watches are left
  }
}

function stopWatching() {
  limits = null;
  for (const { watcher } of watched.values()) watcher.close();
  watched.clear();
  mark?.seen(false);
}

/** @param {string} folder @param {string | null} name */
const note = (folder, name) => {
  reported.add(folder);
  suspects.add(folder);
  if (name !== null) suspects.add(folder === '' ? name : `${folder}/${name}`);
  events += 1;
  if (limits !== null && events > limits.events) mark?.seen(false);
};

/** @param {string} folder */
const watch = (folder) => {
  const inode = identity(folder, 'ino');
  if (inode === undefined || !lookAt(folder)?.isDirectory()) {
    gone.add(folder); // git's next list of names shows it, too
    return;
  }
  // another file system: it may report nothing
  if (identity(folder, 'dev') !== identity('', 'dev')) return stopWatching();
  try {
    const options = /** @type {const} */ ({ persistent: false, encoding: 'latin1' });
    const watcher = fs.watch(toPlace(folder), options, (_, name) => note(folder, name));
    watcher.on('error', stopWatching);
    watched.set(folder, { inode, watcher });
    reported.add(folder);
    suspects.add(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'ENOENT' && code !== 'ENOTDIR') stopWatching();
  }
};

/** Whether another folder lies there than the watched one. @param {string} folder */
const isReplaced = (folder) => {
  const known = watched.get(folder);
  return known !== undefined && identity(folder, 'ino') !== known.inode;
};

/** Folders that were moved, removed or made anew; what is in them has reported nothing. */
const watchAnew = () => {
  isUnsure = true;
  for (const [folder, { watcher }] of [...watched]) {
    if (!isReplaced(folder)) continue;
    watcher.close();
    watched.delete(folder);
    watch(folder);
  }
};

/**
 * Watches more folders; what changed in them before is unknown. @param {readonly string[]} folders
 */
const watchMore = (folders) => {
  if (limits !== null && folders.length > limits.folders) stopWatching();
  /** @type {Set<string>} */
  const added = new Set();
  for (const folder of folders) {
    if (limits === null) return;
    if (watched.has(folder)) continue;
    watch(folder);
    added.add(folder);
  }
  if (added.size === 0) return;
  for (const name of names)
    if (added.has(name.slice(0, Math.max(0, name.lastIndexOf('/'))))) suspects.add(name);
};

/** A folder that came back may hold files again that git lists whether they are there or not. */
const watchReturned = () => {
  const returned = [...gone].filter((folder) => lookAt(folder)?.isDirectory());
  for (const folder of returned) gone.delete(folder);
  watchMore(returned);
};

/** Resolves when all changes until now are reported; false: some may be missing. */
const drain = () =>
  new Promise((/** @type {(isInOrder: boolean) => void} */ resolve) => {
    if (limits === null) return resolve(false);
    const name = `${markCount++}`;
    const place = path.join(marks, name);
    const timer = setTimeout(() => mark?.seen(false), MARK_MS);
    mark = {
      name,
      seen: (isInOrder) => {
        mark = null;
        clearTimeout(timer);
        fs.rmSync(place, { force: true });
        resolve(isInOrder);
      },
    };
    try {
      fs.closeSync(fs.openSync(place, 'w', 0o600));
    } catch {
      mark?.seen(false); // a full disk
    }
  });

/** Whether a file is not as it is known. @param {string} name */
const differs = (name) => {
  const row = rows.get(name);
  if (row === undefined) return false;
  const at = row * ROW;
  const status = lookAt(name);
  if (status === null) return true;
  if (status === undefined) return numbers[at + 4] !== 0;
  const { mtimeMs, ctimeMs, ino, size, mode } = status;
  return (
    numbers[at] !== mtimeMs ||
    numbers[at + 1] !== ctimeMs ||
    numbers[at + 2] !== ino ||
    numbers[at + 3] !== size ||
    numbers[at + 4] !== mode
  );
};

/** Fills the rows of which nothing is known, with regular files. */
const fillRows = () => {
  for (const [row, name] of names.entries()) {
    const at = row * ROW;
    const status = numbers[at + 4] === 0 ? lookAt(name) : null;
    if (!status?.isFile()) continue;
    const { mtimeMs, ctimeMs, ino, size, mode } = status;
    numbers.set([mtimeMs, ctimeMs, ino, size, mode], at);
  }
};

/** @param {boolean} isWhole */
const look = async (isWhole) => {
  const isInOrder = await drain();
  if (!isInOrder || limits === null || events > limits.events) isUnsure = true;
  if (isReplaced('') || [...suspects].some(isReplaced)) watchAnew();
  if (reported.size > 0) watchReturned();
  const isAll = isWhole || isUnsure;
  const folders = isAll ? null : [...reported];
  if (isAll) for (const name of names) suspects.add(name);
  reported.clear();
  events = 0;
  // without a watch the next look is at all names too
  isUnsure = limits === null;
  /** @type {string[]} */
  const changed = [];
  for (const name of suspects)
    if (differs(name)) changed.push(name);
    else suspects.delete(name);
  return { changed, reported: folders, isWatching: limits !== null };
};

let queue = Promise.resolve();

parentPort?.on('message', (/** @type {import('./scan-thread.js').ToScanThread} */ message) => {
  queue = queue.then(async () => {
    switch (message.type) {
      case 'names':
        if (message.memory !== null) numbers = new Float64Array(message.memory);
        for (const name of message.names === '' ? [] : message.names.split('\0')) {
          if (!rows.has(name)) rows.set(name, names.push(name) - 1);
          suspects.add(name);
        }
        break;
      case 'folders':
        watchMore(message.folders.split('\0'));
        break;
      case 'scan':
        // what changes from now on is reported, if the folders are watched
        suspects.clear();
        isUnsure = false;
        fillRows();
        parentPort?.postMessage(await look(false));
        break;
      case 'look':
        parentPort?.postMessage(await look(message.isWhole));
        break;
    }
  });
});
