import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { EnvironmentKind, EnvironmentOptions } from '../needs-recursive.js';
import { probeSandbox, type SandboxedProgram } from '../sandbox/bubblewrap.js';
import { librariesOf } from '../sandbox/libraries.js';
import { createEnvironment } from './lives.js';
import { programFile } from './program-file.js';
import { beginLife } from './program-life.js';
import { programInput } from './program-order.js';

/** The system's Python behind bubblewrap, with its standard library and nothing else that was installed for it. */

const MEGABYTE = 1024 * 1024;
/** What Python uses itself. */
const PYTHON_BYTES = 96 * MEGABYTE;
/** An input in memory: its file's bytes, and a text with up to four bytes for each. */
const CONTEXT_FACTOR = 5;
const PROGRAM = 'python-program.py';
/** No settings of the user's, no packages; UTF-8 whatever the language of the system is. */
const FLAGS = ['-I', '-S', '-B', '-X', 'utf8'];

/** The first that works is taken; the system's own comes before what a PATH with shims would start. */
const CANDIDATES = ['/usr/bin/python3', 'python3'];
/** `python3` may be a script that chooses one, or live in a virtual environment: the interpreter itself knows. */
const WHERE =
  'import sys, json; print(json.dumps([getattr(sys, "_base_executable", sys.executable), sys.path]))';
const INSTALL = 'Install it: apt-get install python3, or your system’s package of it';

type Python = { readonly program: string; readonly library: readonly string[] };

const askPython = (candidate: string): Promise<Python | null> =>
  new Promise((resolve) => {
    execFile(candidate, [...FLAGS, '-c', WHERE], { encoding: 'utf8' }, (error, stdout) => {
      if (error !== null) return resolve(null);
      // Printed by WHERE.
      const [program, library] = JSON.parse(stdout) as readonly [string, readonly string[]];
      resolve({ program: realpathSync(program), library: library.filter((place) => existsSync(place)) });
    });
  });

/** Modules of the standard library load libraries too: these are where the C library is. */
const systemFolders = (libraries: readonly string[]): readonly string[] =>
  libraries
    .filter((library) => /^libc[.-]/.test(path.basename(library)))
    .map((library) => path.dirname(library))
    .flatMap((folder) => [folder, path.join('/usr', folder)])
    .filter((folder) => existsSync(folder));

type Base = Omit<SandboxedProgram, 'words' | 'memoryMax'>;

const findPython = async (): Promise<Base> => {
  for (const candidate of CANDIDATES) {
    const python = await askPython(candidate);
    if (python === null) continue;
    const libraries = await librariesOf(python.program);
    const readable = new Set([...systemFolders(libraries), ...libraries, ...python.library]);
    const packages = python.library.flatMap((place) => [
      path.join(place, 'site-packages'),
      path.join(place, 'dist-packages'),
    ]);
    return {
      program: python.program,
      readable: [...readable].map((place) => ({ from: place, to: place })),
      hidden: packages.filter((place) => existsSync(place)),
      environment: {},
    };
  }
  throw new Error(`python3 does not work here. ${INSTALL}`);
};

let known: Promise<Base> | null = null;

/** Looks for it once; again where it was not there. */
const knownPython = async (): Promise<Base> => {
  known ??= findPython();
  try {
    return await known;
  } catch (error) {
    known = null;
    throw error;
  }
};

const orderFor = async (options: EnvironmentOptions): Promise<SandboxedProgram> => {
  const base = await knownPython();
  const { settings, readable, contextBytes } = programInput(options);
  const inside = `/program/${PROGRAM}`;
  return {
    ...base,
    readable: [...base.readable, ...readable, { from: programFile(PROGRAM), to: inside }],
    words: [...FLAGS, inside, JSON.stringify(settings)],
    memoryMax: PYTHON_BYTES + CONTEXT_FACTOR * contextBytes + options.memoryMax,
  };
};

export const python: EnvironmentKind = {
  name: 'python',
  language: 'python',
  async probe() {
    try {
      return await probeSandbox({
        ...(await knownPython()),
        words: [...FLAGS, '-c', 'pass'],
        memoryMax: 2 * PYTHON_BYTES,
      });
    } catch (error) {
      // Nothing is lost: why it does not work is the answer.
      return error instanceof Error ? error.message : String(error);
    }
  },
  async start(options) {
    const order = await orderFor(options);
    return createEnvironment('Python', () => beginLife(order, options, (code) => code));
  },
};
