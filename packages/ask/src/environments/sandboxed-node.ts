/** JavaScript in a separate Node process inside a bubblewrap sandbox. */

import { realpathSync } from 'node:fs';
import path from 'node:path';
import type { EnvironmentKind, EnvironmentOptions } from '../ports.js';
import { programFile } from './bundled-program-file.js';
import { createEnvironment } from './restartable-environment.js';
import { rewriteCell } from './rewrite-cell.js';
import { listLibraries, probeProgramSandbox, type SandboxedProgram } from './run-program.js';
import { type Inputs, programInput, startProcess } from './sandboxed-repl.js';

const MEGABYTE = 1024 * 1024;
/**
 * Memory of Node itself: data and thread stacks. V8 13 and later also reserves 512 MB for the
 * machine code of each thread: there is room for the main thread and one that the program starts.
 */
const NODE_BYTES = (Number.parseInt(process.versions.v8, 10) > 12 ? 1_280 : 256) * MEGABYTE;
/** Bytes of memory per byte of input: one for the file, up to two for the text. */
const CONTEXT_FACTOR = 3;
/** The program's files, and their folder inside the sandbox. */
const INSIDE = '/program';
const PROGRAM = 'javascript-program/main.cjs';
const PRELUDE = 'javascript-prelude.js';

const nodeProgram = async (): Promise<Omit<SandboxedProgram, 'words' | 'memoryMax'>> => {
  const program = realpathSync(process.execPath);
  const libraries = await listLibraries(program);
  return {
    program,
    readable: libraries.map((library) => ({ from: library, to: library })),
    hidden: [],
    environment: {},
  };
};

type Launch = { readonly program: SandboxedProgram; readonly inputs: Inputs };

const prepareLaunch = async (options: EnvironmentOptions): Promise<Launch> => {
  const node = await nodeProgram();
  const { settings, inputs, readable, contextBytes } = programInput(options);
  const heapBytes = options.memoryMax + CONTEXT_FACTOR * contextBytes;
  const files = [
    { from: path.dirname(programFile(PROGRAM)), to: path.join(INSIDE, path.dirname(PROGRAM)) },
    { from: programFile(PRELUDE), to: path.join(INSIDE, PRELUDE) },
  ];
  const program = {
    ...node,
    readable: [...node.readable, ...readable, ...files],
    words: [
      `--max-old-space-size=${Math.ceil(heapBytes / MEGABYTE)}`,
      '--no-warnings',
      path.join(INSIDE, PROGRAM),
      JSON.stringify(settings),
    ],
    memoryMax: NODE_BYTES + heapBytes,
  };
  return { program, inputs };
};

/** Rewrites a cell. Code with a syntax error stays unchanged, so that V8 reports the error. */
const prepare = (code: string): string => {
  const written = rewriteCell(code);
  return written.status === 'ok' ? written.code : code;
};

export const javascript: EnvironmentKind = {
  name: 'javascript',
  language: 'javascript',
  probe: async () =>
    probeProgramSandbox({
      ...(await nodeProgram()),
      words: ['--version'],
      memoryMax: NODE_BYTES + 256 * MEGABYTE,
    }),
  async start(options) {
    const { program, inputs } = await prepareLaunch(options);
    return createEnvironment('Node', () => startProcess(program, inputs, options, prepare));
  },
};
