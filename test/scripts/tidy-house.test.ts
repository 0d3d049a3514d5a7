import assert from 'node:assert/strict';
import { it } from 'node:test';
import { faultsOf, type Row, testRows } from './plant.js';

const many = (count: number, line = '// line'): string =>
  `${Array.from({ length: count }, () => line).join('\n')}\n`;
/** Written in two pieces, so that this file passes its own rules. */
const REGISTRY = 'https:/' + '/registry.example.org/pawl';
const HOME = '/ho' + 'me/someone/notes';
const SHARED = '.' + './shared/spec';

const names: readonly Row[] = [
  {
    title:
      'an exported type has a name of its own; local types, tests and re-exports may repeat one',
    given: {
      'packages/agent/src/machine/a.ts': 'export type Look = 1;\n',
      'packages/agent/src/tools/b.ts': '\nexport interface Look { readonly a: 1 }\n',
      'packages/agent/src/tools/c.ts': 'type Look = 3;\nexport const c: Look = 3;\n',
      'packages/pawl/src/index.ts': "export type { Look } from './agent/a.js';\n",
      'test/d.ts': 'export type Look = 4;\n',
    },
    then: [
      "packages/agent/src/tools/b.ts:2 'Look' is also a type of packages/agent/src/machine/a.ts",
    ],
  },
  {
    title: 'few functions are named after what they take, and few things by vague words',
    given: {
      'packages/pawl/src/a.ts': Array.from(
        { length: 21 },
        (_, at) => `const v${at}Of = () => ${at};\n`,
      ).join(''),
      'packages/pawl/src/b.ts': '// given\n'.repeat(21),
    },
    then: ['packages:1 477.3 of the words', 'packages:1 21 functions named xOf'],
  },
  {
    title: 'a few are fine',
    given: {
      'packages/pawl/src/a.ts': Array.from(
        { length: 20 },
        (_, at) => `const v${at}Of = () => ${at};\n`,
      ).join(''),
      'packages/pawl/src/b.ts': '// given\n'.repeat(20),
    },
    then: [],
  },
  {
    title: 'files are kebab-case',
    given: {
      'packages/pawl/src/someThing.ts': '',
      'packages/pawl/src/fine-name.ts': '',
    },
    then: ['packages/pawl/src/someThing.ts:1 file names are kebab-case'],
  },
];

const shapes: readonly Row[] = [
  { title: 'a file may be long', given: { 'packages/pawl/src/a.ts': many(900) }, then: [] },
  {
    title: 'the table of the agent has at most 525 lines',
    given: {
      'packages/agent/src/machine/table.ts': many(526),
      'packages/ask/src/run/table.ts': many(526),
    },
    then: ['packages/agent/src/machine/table.ts:526 526 lines'],
  },
  {
    title: 'an example has at most 46 lines',
    given: { 'examples/01-a.ts': many(47) },
    then: ['examples/01-a.ts:47 47'],
  },
  {
    title: 'a line of a package has at most 100 columns, unless a text or a pattern stands in it',
    given: {
      'packages/pawl/src/a.ts': `export const a = [${'1, '.repeat(27)}1];\n`,
      'packages/pawl/src/b.ts': `export const b = [${'1, '.repeat(26)}1];\n`,
      'packages/pawl/src/c.ts': `export const c = '${'long '.repeat(30)}';\n`,
      'packages/pawl/src/d.ts': `export const d = /${'long'.repeat(30)}/;\n`,
      'packages/pawl/src/e.ts': `/** ${'long '.repeat(30)}*/\nexport const e = 1;\n`,
    },
    then: ['packages/pawl/src/a.ts:1 102 columns', 'packages/pawl/src/e.ts:1 156 columns'],
  },
  {
    title: 'a function has at most 70 lines',
    given: {
      'packages/pawl/src/a.ts': `export const a = () => {\n${many(68)}};\n`,
      'packages/pawl/src/b.ts': `\nexport const b = () => {\n${many(69)}};\n`,
    },
    then: ['packages/pawl/src/b.ts:2 function of 71 lines, at most 70'],
  },
  {
    title: 'enum, any and export * are not used',
    given: {
      'test/a.ts': "enum A { B }\nexport const c = (d: any) => d;\nexport * from './b.js';\n",
      'test/b.ts': '',
    },
    then: ['test/a.ts:1 no enum', "test/a.ts:2 no 'any'", "test/a.ts:3 no 'export *'"],
  },
  {
    title: 'a cast says why it is safe, on its line or right above',
    given: {
      'packages/pawl/src/a.ts':
        'export const a = 1 as unknown; // everything is\n// Everything is.\nexport const b = 1 as unknown;\n\n\nexport const c = 1 as unknown;\nexport const d = [1] as const;\n',
    },
    then: ["packages/pawl/src/a.ts:6 'as' without a comment"],
  },
  {
    title: 'no test is skipped, put off or singled out',
    given: {
      'test/a.test.ts': ['skip', 'todo', 'only']
        .map((word) => `test.${word}('a', () => {});\nit('a', { ${word}: true }, () => {});\n`)
        .join(''),
    },
    then: [1, 2, 3, 4, 5, 6].map((line) => `test/a.test.ts:${line} nothing is skipped`),
  },
  {
    title: 'work that is put off is not left in a comment',
    given: { 'packages/pawl/src/a.ts': `\n// TO${'DO'}: later\n` },
    then: [`packages/pawl/src/a.ts:2 TO${'DO'}: do it`],
  },
];

const oneOfEach: readonly Row[] = [
  {
    title: "a tool's name stands in its own file and in builtin.ts",
    given: {
      'packages/agent/src/tools/bash.ts': "export const bash = { name: 'bash' };\n",
      'packages/agent/src/tools/builtin-tools.ts': "export const names = ['bash', 'read'];\n",
      'packages/agent/src/tools/edit.ts': "export const a = 'bash';\n",
      'packages/pawl/src/a.ts':
        "export const a = (call: { tool: string }) => call.tool === 'edit';\n",
      'packages/agent/src/machine/b.ts':
        "export const b = { tool: 'write' };\nexport const tools = ['search'];\n",
      'packages/pawl/src/c.ts':
        "export const c = (tool: string) => {\n  switch (tool) {\n    case 'read': return 1;\n  }\n};\n",
    },
    then: [
      'packages/agent/src/machine/b.ts:1 the tool',
      'packages/agent/src/machine/b.ts:2 the',
      'packages/agent/src/tools/edit.ts:1 the',
      'packages/pawl/src/a.ts:1 the',
      'packages/pawl/src/c.ts:3 the',
    ],
  },
  {
    title: "the fields of a tool's input are read in packages/agent/src/tools alone",
    given: {
      'packages/agent/src/tools/bash.ts':
        'export const a = (input: { command: string }) => input.command;\n',
      'packages/pawl/src/a.ts':
        'export const a = (call: { input: { command: string } }) => call.input.command;\nexport const b = (input: { width: number; path: string }) => input.width + input.path;\n',
      'packages/pawl/src/b.ts':
        'export const c = (program: { command: string }) => program.command;\n',
    },
    then: ["packages/pawl/src/a.ts:1 'input.command'", "packages/pawl/src/a.ts:2 'input.path'"],
  },
  {
    title: "a tool's name may be a word of everyday life elsewhere",
    given: {
      'packages/pawl/src/a.ts':
        "export const a = (effect: string) => effect === 'read' || open('x', { mode: 'write' }) || spawn('bash', []);\n",
    },
    then: [],
  },
  {
    title: 'nobody retries but the machine',
    given: {
      'packages/agent/src/models/a.ts':
        'withRetries(1);\nreadRetryAfter(2);\ncreate({ maxRetries: 2 });\ncreate({ maxRetries: 0 });\n',
      'packages/agent/src/machine/b.ts': 'export const b = mayRetry(1);\n',
    },
    then: [
      "packages/agent/src/models/a.ts:1 'withRetries': nobody retries",
      'packages/agent/src/models/a.ts:3 nobody retries',
    ],
  },
];

const processes: readonly Row[] = [
  {
    title: 'processes are started in one place, by paths that were judged',
    given: {
      'packages/pawl/src/a.ts':
        "import { spawn } from 'node:child_process';\nimport type { ChildProcess } from 'node:child_process';\nimport { type Stream } from 'node:child_process';\n",
      'packages/pawl/src/b.ts':
        "export const b = async () => (await import('node:child_process')).exec;\nexport const c = 'x' as ProgramPath; // why\n",
      'packages/agent/src/platform/start-program.ts':
        "import { spawn } from 'node:child_process';\nexport const d = 'x' as ProgramPath; // why\n",
      'test/e.ts': "import { spawn } from 'node:child_process';\n",
    },
    then: [
      'packages/pawl/src/a.ts:1 processes are started in',
      'packages/pawl/src/b.ts:1 processes are started in',
      'packages/pawl/src/b.ts:2 a ProgramPath comes from',
    ],
  },
];

const clocks: readonly Row[] = [
  {
    title: 'the time of day is asked for in a few places only',
    given: {
      'packages/agent/src/platform/clock.ts': 'export const now = () => Date.now();\n',
      'packages/pawl/src/a.ts': 'export const a = Date.now();\nexport const b = new Date();\n',
      'packages/pawl/src/b.ts':
        'const { now } = Date;\nexport const b = (at = Date.now) => at() + now();\n',
      'packages/pawl/src/c.ts':
        'export const c = [globalThis.Date, Date(), Temporal.Now, { Date }];\n',
    },
    then: [1, 2]
      .flatMap((line) => [`packages/pawl/src/a.ts:${line} asks for the time of day`])
      .concat(
        ['b.ts:1', 'b.ts:2', 'c.ts:1', 'c.ts:1', 'c.ts:1', 'c.ts:1'].map(
          (place) => `packages/pawl/src/${place} asks for`,
        ),
      ),
  },
  {
    title: 'a given time may be read and written as a date',
    given: {
      'packages/pawl/src/a.ts':
        "export const a = (at: number | Date) => at instanceof Date ? at : new Date(at);\nexport const b = { Date: Date.parse('1') + Date.UTC(1) };\n",
    },
    then: [],
  },
];

const texts: readonly Row[] = [
  {
    title: 'a program in a string imports files that exist',
    given: {
      'packages/pawl/src/a.ts': '',
      'test/a.test.ts': ['a', 'b']
        .map((name) => `run("import 'x' from './packag${'es'}/pawl/src/${name}.ts'");`)
        .join('\n'),
    },
    then: ['test/a.test.ts:2 code in a string imports packages/pawl/src/b.ts'],
  },
  {
    title: 'a comment names no source file that is gone',
    given: {
      'packages/pawl/src/one-file.ts':
        '// see one-file.ts and other-file.ts\nexport const a = 1; // gone-file.ts\n',
      'scripts/other-file.ts': "export const b = 'lost-file.ts';\n",
    },
    then: ['packages/pawl/src/one-file.ts:2 a comment names gone-file.ts'],
  },
  {
    title: 'no text names a registry host, a folder of one machine or a folder outside',
    given: {
      'docs/a.md': `Get it from ${REGISTRY}.\nSee ${HOME}\nand (${SHARED}).\n`,
      'docs/b.md': '~/code/ src/code/\n',
    },
    then: [
      'docs/a.md:1 names a registry',
      'docs/a.md:2 names a folder of one',
      'docs/a.md:3 names a folder outside',
    ],
  },
  {
    title: 'documents stay short enough to be read',
    given: {
      'README.md': many(121, 'text'),
      'AGENTS.md': many(81, 'text'),
      'docs/decisions/0001-a.md': many(61, 'text'),
    },
    then: [
      'AGENTS.md:81 81 lines',
      'README.md:121 121 lines',
      'docs/decisions/0001-a.md:61 61 lines',
    ],
  },
];

testRows('names', names);
testRows('shapes', shapes);
testRows('one of each', oneOfEach);
testRows('processes', processes);
testRows('clocks', clocks);
testRows('texts', texts);

it('tidy: an archive without .git is walked, and what is ignored there stays so', () => {
  const bad = 'export enum A {}\n';
  const given = {
    '.gitignore': '# built\ndist/\n*.tgz\n',
    'packages/pawl/src/a.ts': bad,
    'packages/pawl/src/dist/b.ts': bad,
    'packages/pawl/src/b.tgz': bad,
    'packages/node_modules/c.ts': bad,
    'scripts/deep/d.ts': bad,
  };
  const found = ['packages/pawl/src/a.ts:1 no enum', 'scripts/deep/d.ts:1 no enum'];
  for (const as of ['work tree', 'archive'] as const) {
    const faults = faultsOf(given, as).filter(
      (fault) => !fault.startsWith('packages/node_modules/') || as === 'archive',
    );
    assert.deepEqual(
      faults.map((fault, index) => fault.slice(0, found[index]?.length)),
      found,
      as,
    );
  }
});
