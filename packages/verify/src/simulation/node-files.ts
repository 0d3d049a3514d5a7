/**
 * Makes Node's file functions use simulated disks below `/@pawl/N/` while simulations run, so that
 * production code works on them unchanged. Other paths go to the real system.
 *
 * N is the number of a process. After its end its calls have no effect and never return. The caller
 * of a disk is its process: it decides about crashes, errors and the time that a call takes.
 *
 * From top to bottom: mounted disks, and the place of a path on them; operations by the names of
 * Node's functions; calls of them, at once or later; the replacement of the functions,
 * `simulateFiles`; and files of the simulated kernel.
 */

import fs, { constants } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { type Caller, splitPath, systemError } from './disk.js';
import { type Descriptor, DiskCalls, SimulatedHandle } from './file-operations.js';
import { simulateSockets } from './sockets.js';

const ROOT = '/@pawl/';
/** Above the descriptors of the real system. */
const FIRST_DESCRIPTOR = 1_000_000;

/** A process, and the file functions on its disk. */
type Mount = { readonly caller: Caller; readonly calls: DiskCalls };
type OpenFile = { readonly descriptor: Descriptor; readonly path: string };

const mounts = new Map<number, Mount>();
/** The places of open files, by their descriptors. */
const openPlaces = new Map<number, Place>();
let lastDescriptor = FIRST_DESCRIPTOR;
/** The process whose disk was mounted last: it reads files of the kernel. */
let current: Caller | null = null;

/** Mounts the disk of a process. Returns its state folder. */
export const mountDisk = (processNumber: number, caller: Caller): string => {
  if (!mounts.has(processNumber))
    mounts.set(processNumber, { caller, calls: new DiskCalls(caller.disk, () => caller.now()) });
  current = caller;
  setKernelProcess(processNumber);
  return `${ROOT}${processNumber}/home/state`;
};

/** Forgets all processes and descriptors. */
export const unmountDisks = (): void => {
  mounts.clear();
  openPlaces.clear();
  places.clear();
  current = null;
};

/** A simulated path, as the names below its root; or an open file, by its descriptor (`open`). */
type Place = Mount & { readonly names: readonly string[]; readonly open: OpenFile | null };

const NO_NAMES: readonly string[] = [];

const findOpenFile = (path: string): Place | undefined =>
  path.startsWith('/proc/self/fd/')
    ? openPlaces.get(Number(path.slice('/proc/self/fd/'.length)))
    : undefined;

/** A cache of looked-up paths. */
const places = new Map<string, Place | null>();

const findPlace = (target: unknown): Place | null => {
  if (typeof target === 'number') return openPlaces.get(target) ?? null;
  if (typeof target !== 'string' || !target.startsWith('/')) return null;
  const known = places.get(target);
  if (known !== undefined) return known;
  const existing = findOpenFile(target);
  if (existing !== undefined) return existing; // not cached: it may be closed later
  const isSimulated = target.startsWith(ROOT);
  const place = isSimulated ? findMountedPlace(target.slice(ROOT.length)) : null;
  if (!isSimulated || place !== null) places.set(target, place); // a disk may be mounted later
  return place;
};

const findMountedPlace = (path: string): Place | null => {
  const end = path.indexOf('/');
  const mount = mounts.get(Number(end < 0 ? path : path.slice(0, end)));
  if (mount === undefined) return null;
  return {
    caller: mount.caller,
    calls: mount.calls,
    names: end < 0 ? NO_NAMES : splitPath(path.slice(end)),
    open: null,
  };
};

const openFile = (place: Place, path: string, flags: unknown): number => {
  const { caller, calls } = place;
  const known = typeof flags === 'string' || typeof flags === 'number' ? flags : 'r';
  // An open file is found by its path below /proc/self/fd.
  const descriptor =
    place.open === null ? calls.open(place.names, known) : calls.reopen(place.open.descriptor);
  lastDescriptor += 1;
  openPlaces.set(lastDescriptor, { caller, calls, names: NO_NAMES, open: { descriptor, path } });
  return lastDescriptor;
};

/** One of Node's file functions, on a place that is known. */
type Operation = (place: Place, args: readonly unknown[]) => unknown;

// Production code is type-checked against Node, so the arguments are what Node's functions take.
const toText = (value: unknown): string => value as string;
const toData = (value: unknown): Uint8Array => value as Uint8Array; // likewise
const getNames = (value: unknown): readonly string[] => findPlace(value)?.names ?? [];
const getDescriptor = ({ open: file }: Place): Descriptor => {
  if (file === null) throw systemError('EBADF', 'no open file');
  return file.descriptor;
};
/** An operation on the names of a path. */
const onPath =
  (
    run: (calls: DiskCalls, names: readonly string[], args: readonly unknown[]) => unknown,
  ): Operation =>
  ({ calls, names }, args) =>
    run(calls, names, args);
/** An operation on an open file. */
const onFile =
  (
    run: (calls: DiskCalls, descriptor: Descriptor, args: readonly unknown[]) => unknown,
  ): Operation =>
  (place, args) =>
    run(place.calls, getDescriptor(place), args);
const stat: Operation = (place, [, options]) =>
  place.open === null
    ? place.calls.stat(place.names, options)
    : place.calls.statNode(place.open.descriptor);
/** Modes, owners and times of files: no simulated session looks at them. */
const ignoredNames = ['chmod', 'fchmod', 'utimes', 'futimes', 'chown', 'lchown'];
const nothing: Operation = () => undefined;
const sync = onFile((calls, descriptor) => calls.sync(descriptor));

const toNumbers = (offset: unknown, length: unknown): [number | undefined, number | undefined] => [
  typeof offset === 'number' ? offset : undefined,
  typeof length === 'number' ? length : undefined,
];

/** By their names in `node:fs`. The first argument, a path or descriptor, is already resolved. */
const operations: Readonly<Record<string, Operation>> = {
  open: (place, [path, flags]) => openFile(place, toText(path), flags),
  close: (_place, [fd]) => void openPlaces.delete(Number(fd)),
  stat,
  lstat: stat,
  fstat: stat,
  fsync: sync,
  fdatasync: sync,
  read: onFile((calls, descriptor, [, into, offset, length, position]) =>
    calls.read(
      descriptor,
      toData(into),
      ...toNumbers(offset, length),
      typeof position === 'number' ? position : null,
    ),
  ),
  write: onFile((calls, descriptor, [, written, ...place]) =>
    calls.write(descriptor, toData(written), ...place),
  ),
  ftruncate: onFile((calls, descriptor, [, size]) => calls.truncate(descriptor, Number(size ?? 0))),
  truncate: (place, [, size]) =>
    place.calls.truncate(place.calls.open(place.names, 'r+'), Number(size ?? 0)),
  exists: onPath((calls, names) => calls.exists(names)),
  access: onPath((calls, names) => void calls.stat(names)),
  mkdir: onPath((calls, names, [, options]) => calls.mkdir(names, options)),
  mkdtemp: ({ calls, names }, [path]) => `${toText(path)}${calls.mkdtemp(names)}`,
  rename: onPath((calls, names, [, to]) => calls.rename(names, getNames(to))),
  link: onPath((calls, names, [, to]) => calls.link(names, getNames(to))),
  unlink: onPath((calls, names) => calls.unlink(names)),
  rm: onPath((calls, names, [, options]) => calls.rm(names, options)),
  readdir: onPath((calls, names, [, options]) => calls.readdir(names, options)),
  // No disk has symbolic links, but for those below /proc/self/fd.
  realpath: (_place, [path]) => path,
  readlink: ({ open: file }) => file?.path ?? '',
  readFile: (place, [, options]) =>
    place.open === null
      ? place.calls.readFile(place.names, options)
      : place.calls.readAll(place.open.descriptor, options),
  writeFile: (place, [, written, options]) =>
    place.open === null
      ? place.calls.writeFile(place.names, toData(written), options)
      : void place.calls.write(place.open.descriptor, toData(written)),
  appendFile: (place, [, written]) =>
    place.open === null
      ? place.calls.appendFile(place.names, toData(written))
      : void place.calls.write(place.open.descriptor, toData(written)),
  ...Object.fromEntries(ignoredNames.map((name) => [name, nothing])),
};

/** Writes the first half of the bytes; returns their number. */
const writePart = (
  place: Place,
  [, written, offset, length, position]: readonly unknown[],
): unknown => {
  const bytes = toData(written);
  const start = typeof offset === 'number' ? offset : 0;
  const whole = typeof length === 'number' ? length : bytes.length - start;
  return place.calls.write(getDescriptor(place), bytes, start, (whole + 1) >> 1, position);
};

const perform = (
  name: string,
  place: Place,
  args: readonly unknown[],
  code: string | null,
): unknown => {
  const operation = operations[name];
  if (operation === undefined) throw new Error(`the simulated disk has no ${name}`);
  if (code === null) return operation(place, args);
  // a disk that becomes full during a write takes a part of it
  if (code === 'ENOSPC' && name === 'write' && typeof args[1] !== 'string') writePart(place, args);
  throw systemError(code, name);
};

const never = (): Promise<never> => new Promise(() => undefined);

/** A call of `fs/promises` or of a file handle. */
const callLater = (name: string, place: Place, args: readonly unknown[]): Promise<unknown> => {
  const { caller } = place;
  if (caller.isDead) return never();
  // The process may crash here, or meet an error of the disk, which is its code.
  const code = caller.enter(name, false);
  return new Promise((resolve, reject) => {
    caller.later(() => {
      try {
        resolve(perform(name, place, args, code));
      } catch (error) {
        reject(error);
      }
    });
  });
};

const callNow = (name: string, place: Place, args: readonly unknown[]): unknown => {
  const { caller } = place;
  const code = caller.isDead ? 'EIO' : caller.enter(name, true);
  // It may have crashed just now. What calls synchronously can only be stopped by an error.
  if (caller.isDead) throw systemError('EIO', `${name} of a process that has ended`);
  caller.block(); // time passes
  const isBytes = name === 'write' && typeof args[1] !== 'string';
  if (isBytes && code === null && caller.writesShort()) return writePart(place, args);
  return perform(name, place, args, code);
};

const callHandle = (fd: number, name: string, ...args: readonly unknown[]): Promise<unknown> => {
  const place = findPlace(fd);
  return place === null
    ? Promise.reject(systemError('EBADF', name))
    : callLater(name, place, [fd, ...args]);
};

type Functions = Record<string, unknown>;
type Replacement = { readonly owner: Functions; readonly name: string; readonly original: unknown };
const replacements: Replacement[] = [];

const replace = (
  owner: Functions,
  name: string,
  make: (original: AnyFunction) => AnyFunction,
): void => {
  const original = owner[name];
  if (typeof original !== 'function') return;
  replacements.push({ owner, name, original });
  owner[name] = make((...args) => Reflect.apply(original, owner, args));
};

/** A function of `fs/promises`. Real files are read without waiting while a process runs. */
const asPromise =
  (name: string) =>
  (original: AnyFunction): AnyFunction =>
  (...args) => {
    const place = findPlace(args[0]);
    const fromKernel =
      place === null && current !== null ? readKernelFile(name, args[0]) : undefined;
    if (fromKernel !== undefined) return Promise.resolve(fromKernel);
    if (place === null)
      return current === null ? original(...args) : callRealFile(name, original, args);
    const called = callLater(name, place, args);
    // `open` returns the number of the descriptor
    return name === 'open'
      ? called.then((fd) => new SimulatedHandle(Number(fd), callHandle))
      : called;
  };

const asSync =
  (name: string) =>
  (original: AnyFunction): AnyFunction =>
  (...args) => {
    const place = findPlace(args[0]);
    if (place !== null) return callNow(name, place, args);
    refuseRealChange(name, args);
    return (current === null ? undefined : readKernelFile(name, args[0])) ?? original(...args);
  };

const asCallback =
  (name: string) =>
  (original: AnyFunction): AnyFunction =>
  (...args) => {
    const place = findPlace(args[0]);
    const done = args.at(-1);
    if (place === null) refuseRealChange(name, args);
    if (place === null || typeof done !== 'function') return original(...args);
    callLater(name, place, args.slice(0, -1)).then(
      (value) => done(null, value),
      (error) => done(error),
    );
    return undefined;
  };

const throwNotSimulated = (path: string): never => {
  throw new Error(`${path} is not simulated`);
};

/** Replaces Node's file functions. Returns a function that puts them back. */
export const simulateFiles = (): (() => void) => {
  // the objects behind `node:fs` and `node:fs/promises`
  const [functions, promises] = [fs as unknown as Functions, fs.promises as unknown as Functions];
  for (const name of Object.keys(promises)) replace(promises, name, asPromise(name));
  for (const name of Object.keys(functions)) {
    if (name.endsWith('Sync')) replace(functions, name, asSync(name.slice(0, -'Sync'.length)));
    else if (name in operations) replace(functions, name, asCallback(name));
  }
  const restoreSockets = simulateSockets({
    // A name that begins with a zero byte is abstract: no file stands for it.
    getCaller: (path) => (path.startsWith('\0') ? current : (findPlace(path)?.caller ?? null)),
    create: (path) =>
      void callNow('writeFile', findPlace(path) ?? throwNotSimulated(path), [
        path,
        '',
        { flag: 'wx' },
      ]),
    remove: (path) =>
      void callNow('rm', findPlace(path) ?? throwNotSimulated(path), [path, { force: true }]),
    getName: (path) => findPlace(path)?.names.join('/') ?? path,
    exists: (path) =>
      callNow('exists', findPlace(path) ?? throwNotSimulated(path), [path]) === true,
  });
  syncBuiltinESMExports(); // from here on named imports see the replacements
  return () => {
    restoreSockets();
    for (const { owner, name, original } of replacements.splice(0)) owner[name] = original;
    syncBuiltinESMExports();
  };
};

type AnyFunction = (...args: unknown[]) => unknown;

/** Operations on paths that a simulated process may perform on the real system. */
const READS = new Set([
  ...['access', 'exists', 'lstat', 'opendir', 'readFile', 'readdir', 'readlink', 'realpath'],
  ...['stat', 'statfs', 'watch'],
]);

/** Throws if a simulated process would change a real file. Open files are its output. */
const refuseRealChange = (name: string, [target, flags]: readonly unknown[]): void => {
  if (current === null || typeof target !== 'string' || READS.has(name)) return;
  const changes = constants.O_WRONLY | constants.O_RDWR | constants.O_CREAT;
  const isRead = typeof flags === 'number' ? (flags & changes) === 0 : (flags ?? 'r') === 'r';
  if (name !== 'open' || !isRead) throw systemError('EROFS', `${name} ${target}`);
};

/** Calls the real system synchronously: a simulated process must not wait for real time. */
const callRealFile = async (
  name: string,
  original: AnyFunction,
  args: readonly unknown[],
): Promise<unknown> => {
  const now: unknown = Reflect.get(fs, `${name}Sync`);
  refuseRealChange(name, args);
  return typeof now === 'function' && name !== 'open'
    ? Reflect.apply(now, fs, args)
    : original(...args);
};

// ---- Files of the simulated kernel, which the lock of a journal reads ----

let boots = 1;
let started = 0;

/** Sets the process that reads `/proc`: its start time differs from that of earlier ones. */
const setKernelProcess = (processNumber: number): void => {
  started = processNumber;
};

/** Resets the boot count for a new simulation. */
export const startComputer = (): void => {
  boots = 1;
};

/** Restarts the computer after a power cut. */
export const bootAgain = (): void => {
  boots += 1;
};

/** Reads a simulated file of the kernel; undefined for other paths. */
const readKernelFile = (operation: string, path: unknown): string | undefined => {
  if (path === '/etc/machine-id' && operation === 'readFile') return 'simulated';
  if (typeof path !== 'string' || !path.startsWith('/proc/')) return undefined;
  if (operation === 'readFile' && path.endsWith('/boot_id')) return `boot-${boots}`;
  if (operation === 'readFile' && path.endsWith('/stat'))
    return `1 (node) ${'0 '.repeat(19)}${started}`;
  if (operation === 'readlink' && path.includes('/ns/'))
    return `${path.slice(path.lastIndexOf('/') + 1)}:[1]`;
  return undefined;
};
