import { realpathSync } from 'node:fs';
import path from 'node:path';
import type { EnvironmentKind, EnvironmentOptions } from '../needs-recursive.js';
import { probeSandbox, type SandboxedProgram } from '../sandbox/bubblewrap.js';
import { librariesOf } from '../sandbox/libraries.js';
import { createEnvironment } from './lives.js';
import { programFile } from './program-file.js';
import { beginLife } from './program-life.js';
import { programInput } from './program-order.js';
import { redeclare } from './redeclare.js';

/** JavaScript in a Node of its own behind bubblewrap, at V8's speed. */

const MEGABYTE = 1024 * 1024;
/** What Node uses itself: its data and its threads' stacks; from V8 13 on also 512 MB that it sets aside for machine code. */
const NODE_BYTES = (Number.parseInt(process.versions.v8, 10) > 12 ? 768 : 256) * MEGABYTE;
/** An input in memory: its file's bytes, and a text with up to two bytes for each. */
const CONTEXT_FACTOR = 3;
/** Files of the program, and where they are inside. */
const INSIDE = '/program';
const PROGRAM = 'javascript-program/main.cjs';
const PRELUDE = 'javascript-prelude.js';

const nodeProgram = async (): Promise<Omit<SandboxedProgram, 'words' | 'memoryMax'>> => {
  const program = realpathSync(process.execPath);
  const libraries = await librariesOf(program);
  return {
    program,
    readable: libraries.map((library) => ({ from: library, to: library })),
    hidden: [],
    environment: {},
  };
};

const orderFor = async (options: EnvironmentOptions): Promise<SandboxedProgram> => {
  const node = await nodeProgram();
  const { settings, readable, contextBytes } = programInput(options);
  const heapBytes = options.memoryMax + CONTEXT_FACTOR * contextBytes;
  const files = [
    { from: path.dirname(programFile(PROGRAM)), to: path.join(INSIDE, path.dirname(PROGRAM)) },
    { from: programFile(PRELUDE), to: path.join(INSIDE, PRELUDE) },
  ];
  return {
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
};

/** Top-level declarations may be repeated; code that can't be read goes as it is, for V8 to say why. */
const prepare = (code: string): string => {
  const written = redeclare(code);
  return written.status === 'ok' ? written.code : code;
};

export const javascript: EnvironmentKind = {
  name: 'javascript',
  language: 'javascript',
  probe: async () =>
    probeSandbox({ ...(await nodeProgram()), words: ['--version'], memoryMax: NODE_BYTES + 256 * MEGABYTE }),
  async start(options) {
    const order = await orderFor(options);
    return createEnvironment('Node', () => beginLife(order, options, prepare));
  },
};
