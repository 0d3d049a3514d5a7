/**
 * The system's Python inside a bubblewrap sandbox, with its standard library but without installed
 * packages.
 */

import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { ownPrograms, type ProgramPath, searchPrograms } from '@pawl/agent/platform/find-program';
import { askProgram } from '@pawl/agent/platform/start-program';
import type { EnvironmentKind } from '../ports.js';
import { programFile } from './bundled-program-file.js';
import { createProcess } from './repl.js';
import { createEnvironment } from './restartable-environment.js';
import { listLibraries, probeProgramSandbox, type SandboxedProgram } from './run-program.js';
import { programInput, startSandboxedRepl } from './sandboxed-repl.js';

const MEGABYTE = 1024 * 1024;
/** Memory of the Python interpreter itself. */
const PYTHON_BYTES = 96 * MEGABYTE;
/** Bytes of memory per byte of input: one for the file, up to four for the text. */
const CONTEXT_FACTOR = 5;
const PROGRAM = 'python-program.py';
/** Ignores the user's Python settings and packages; uses UTF-8 whatever the system's locale is. */
const FLAGS = ['-I', '-S', '-B', '-X', 'utf8'];

const NAME = 'python3';
/** Tried before the PATH, which may lead to a version manager's wrapper. */
const SYSTEM_PATH = '/usr/bin';
/**
 * Asks the interpreter for its real path: `python3` may be a wrapper script, or part of a virtual
 * environment.
 */
const PRINT_PATHS =
  'import sys, json; print(json.dumps([getattr(sys, "_base_executable", sys.executable), ' +
  'sys.path]))';
const INSTALL = 'Install it: apt-get install python3, or your system’s package of it';

type Python = { readonly program: string; readonly library: readonly string[] };

/** The interpreters to try, in order: the system's, and the one on Pawl's own PATH. */
const candidates = (): readonly ProgramPath[] => {
  const system = searchPrograms({ environment: { PATH: SYSTEM_PATH }, workspace: null });
  return [system.find(NAME), ownPrograms().find(NAME)].filter((program) => program !== null);
};

const askPython = async (candidate: ProgramPath): Promise<Python | null> => {
  const options = { environment: process.env, searchPath: ownPrograms().folders };
  const answer = await askProgram(candidate, [...FLAGS, '-c', PRINT_PATHS], options);
  if (answer === null || answer.code !== 0) return null;
  // Printed by PRINT_PATHS.
  const [program, library] = JSON.parse(answer.output) as readonly [string, readonly string[]];
  return { program: realpathSync(program), library: library.filter((place) => existsSync(place)) };
};

/**
 * The folders of the C library; modules of the standard library load shared libraries from there,
 * too.
 */
const systemFolders = (libraries: readonly string[]): readonly string[] =>
  libraries
    .filter((library) => /^libc[.-]/.test(path.basename(library)))
    .map((library) => path.dirname(library))
    .flatMap((folder) => [folder, path.join('/usr', folder)])
    .filter((folder) => existsSync(folder));

/** How to start Python in the sandbox, without the arguments of a run. */
type PythonProgram = Omit<SandboxedProgram, 'words' | 'memoryMax'>;

const findPython = async (): Promise<PythonProgram> => {
  for (const candidate of candidates()) {
    const found = await askPython(candidate);
    if (found === null) continue;
    const libraries = await listLibraries(found.program);
    const readable = new Set([...systemFolders(libraries), ...libraries, ...found.library]);
    const packages = found.library.flatMap((place) => [
      path.join(place, 'site-packages'),
      path.join(place, 'dist-packages'),
    ]);
    return {
      program: found.program,
      readable: [...readable].map((place) => ({ from: place, to: place })),
      // installed packages are not visible inside
      hidden: packages.filter((place) => existsSync(place)),
    };
  }
  throw new Error(`python3 does not work here. ${INSTALL}`);
};

let cachedPython: Promise<PythonProgram> | null = null;

/** Finds Python once and caches the result; a failed search is repeated at the next call. */
const getPython = (): Promise<PythonProgram> => {
  cachedPython ??= findPython().catch((error: unknown) => {
    cachedPython = null;
    throw error;
  });
  return cachedPython;
};

export const python: EnvironmentKind = {
  name: 'python',
  language: 'python',
  async probe() {
    try {
      return await probeProgramSandbox({
        ...(await getPython()),
        words: [...FLAGS, '-c', 'pass'],
        memoryMax: 2 * PYTHON_BYTES,
      });
    } catch (error) {
      // The error message is the answer.
      return error instanceof Error ? error.message : String(error);
    }
  },
  async start(options) {
    const base = await getPython();
    const { settings, inputs, readable, contextBytes } = programInput(options);
    const inside = `/program/${PROGRAM}`;
    const program = {
      ...base,
      readable: [...base.readable, ...readable, { from: programFile(PROGRAM), to: inside }],
      words: [...FLAGS, inside, JSON.stringify(settings)],
      memoryMax: PYTHON_BYTES + CONTEXT_FACTOR * contextBytes + options.memoryMax,
    };
    return createEnvironment('Python', async () =>
      createProcess(await startSandboxedRepl(program, inputs, options), options),
    );
  },
};
