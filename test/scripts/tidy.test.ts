import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tidy } from '../../scripts/tidy.js';

/** A rule of the house: given these files, then these faults, as `file:line text`; the text may be its beginning. */
type Row = {
  readonly title: string;
  readonly given: Readonly<Record<string, string>>;
  readonly then: readonly string[];
};

/** Packages that may import some others. A row may give its own. */
const MANIFESTS: Row['given'] = {
  'packages/machine/package.json': '{ "name": "@pawl/machine" }',
  'packages/agent/package.json':
    '{ "name": "@pawl/agent", "dependencies": { "@pawl/machine": "*", "valibot": "1.5.0" } }',
  'packages/pawl/package.json': '{ "name": "pawl", "devDependencies": { "@pawl/agent": "*" } }',
};

const isOfSmallFile = (fault: string): boolean => fault.includes(' a small file that only ');

/** One test a row. The files of most rows are small: that fault is looked at in `small files` alone. */
const testRows = (group: string, rows: readonly Row[]): void => {
  describe(`tidy: ${group}`, () => {
    for (const { title, given, then } of rows) {
      it(title, () => {
        const faults = tidy(new Map(Object.entries({ ...MANIFESTS, ...given })));
        const found = faults
          .map(({ file, line, text }) => `${file}:${line} ${text}`)
          .filter((fault) => isOfSmallFile(fault) === (group === 'small files'));
        const expected = then.map((start, index) =>
          found[index]?.startsWith(start) ? found[index] : start,
        );
        assert.deepEqual(found, expected);
      });
    }
  });
};

testRows('walls', [
  {
    title: 'a package imports what its package.json names, by its name',
    given: {
      'packages/machine/src/a.ts': 'export const a = 1;\n',
      'packages/agent/src/machine/b.ts':
        "import { a } from '@pawl/machine/a';\nexport const b = a;\n",
      'packages/agent/src/tools/c.ts': "import 'valibot';\nimport 'node:fs';\n",
    },
    then: [],
  },
  {
    title: 'a package that is not named is a fault, of the workspace or not; so is the own name',
    given: {
      'packages/machine/src/a.ts': 'export const a = 1;\n',
      'packages/agent/src/tools/b.ts': "import 'zod';\nimport '@pawl/agent/tools/d';\n",
      'packages/pawl/src/c.ts': "import '@pawl/machine/a';\n",
      'packages/agent/src/tools/d.ts': '',
    },
    then: [
      'packages/agent/src/tools/b.ts:1 packages/agent/package.json does not name zod',
      'packages/agent/src/tools/b.ts:2 a package never imports itself',
      'packages/pawl/src/c.ts:1 packages/pawl/package.json does not name @pawl/machine',
    ],
  },
  {
    title: 'an export of a workspace package that no other one imports is a fault',
    given: {
      'packages/machine/package.json': JSON.stringify({
        name: '@pawl/machine',
        exports: { './a': './src/a.ts', './b': './src/b.ts' },
      }),
      'packages/machine/src/a.ts': 'export const a = 1;\n',
      'packages/machine/src/b.ts': "import { a } from './a.js';\nexport const b = a;\n",
      'packages/agent/src/machine/c.ts': "export type { a } from '@pawl/machine/a';\n",
    },
    then: ['packages/machine/package.json:1 no other package imports @pawl/machine/b'],
  },
  {
    title: 'no file of another package is imported by a path',
    given: {
      'packages/agent/src/tools/a.ts': 'export const a = 1;\n',
      'packages/pawl/src/b.ts':
        "import '../../agent/src/tools/a.js';\nimport '../../../test/c.js';\n",
      'test/c.ts': '',
    },
    then: [1, 2].map(
      (line) => `packages/pawl/src/b.ts:${line} another package is imported by its name`,
    ),
  },
  {
    title: 'a type import, a type import inside a type and a lazy import count',
    given: {
      'packages/agent/src/tools/a.ts': 'export type A = 1;\n',
      'packages/machine/src/a.ts':
        "import type { A } from '@pawl/agent/tools/a';\nexport type B = A;\n",
      'packages/machine/src/b.ts': "export type C = import('@pawl/agent/tools/a').A;\n",
      'packages/machine/src/c.ts': "export const c = () => import('@pawl/agent/tools/a');\n",
    },
    then: ['a.ts:1', 'b.ts:1', 'c.ts:1'].map(
      (place) => `packages/machine/src/${place} a pure part imports only pure parts`,
    ),
  },
  {
    title: 'the machine and the policy import nothing impure; the grammar of the shell may',
    given: {
      'packages/machine/src/a.ts': "import 'valibot';\n",
      'packages/agent/src/machine/b.ts': "import 'node:fs';\n",
      'packages/agent/src/policy/c.ts': "import '../tools/e.js';\n",
      'packages/agent/src/policy/shell/d.ts': "import 'node:fs';\n",
      'packages/agent/src/tools/e.ts': "import 'node:fs';\n",
    },
    then: [
      "packages/agent/src/machine/b.ts:1 a pure part imports only pure parts ('node:fs')",
      "packages/agent/src/policy/c.ts:1 a pure part imports only pure parts ('../tools/e.js')",
      "packages/machine/src/a.ts:1 a pure part imports only pure parts ('valibot')",
    ],
  },
  {
    title: 'a circle of files is a fault, type imports counted',
    given: {
      'packages/agent/src/machine/a.ts': "import type { B } from './b.js';\nexport type A = B;\n",
      'packages/agent/src/machine/b.ts': "import type { C } from './c.js';\nexport type B = C;\n",
      'packages/agent/src/machine/c.ts': "import type { A } from './a.js';\nexport type C = A;\n",
    },
    then: [
      'packages/agent/src/machine/a.ts:1 circle of files: packages/agent/src/machine/a.ts, packages/agent/src/machine/b.ts, packages/agent/src/machine/c.ts',
    ],
  },
  {
    title: 'folders beside each other have no circle; a folder and the one that it is in may',
    given: {
      'packages/agent/src/tools/a.ts': "import '../models/b.js';\nimport './in/d.js';\n",
      'packages/agent/src/tools/c.ts': '',
      'packages/agent/src/tools/in/d.ts': "import '../c.js';\n",
      'packages/agent/src/models/b.ts': "import '../tools/c.js';\n",
    },
    then: [
      'packages/agent/src/tools:1 circle of folders: packages/agent/src/tools, packages/agent/src/models',
    ],
  },
  {
    title: 'a circle of packages is a fault',
    given: {
      'packages/one/package.json': '{ "name": "@pawl/one", "dependencies": { "@pawl/two": "*" } }',
      'packages/two/package.json': '{ "name": "@pawl/two", "dependencies": { "@pawl/one": "*" } }',
      'packages/one/src/a.ts': "import '@pawl/two/b';\n",
      'packages/one/src/c.ts': '',
      'packages/two/src/b.ts': "import '@pawl/one/c';\n",
    },
    then: ['packages/one/package.json:1 circle of packages: one, two'],
  },
  {
    title:
      'a test imports its own package by paths, others by their names, and what all tests share',
    given: {
      'packages/agent/src/tools/a.ts': 'export const a = 1;\n',
      'packages/agent/test/tools/a.test.ts':
        "import '../../src/tools/a.js';\nimport '@pawl/machine/b';\nimport '../c.js';\nimport '../../../../test/d.js';\nimport 'zod';\n",
      'packages/agent/test/c.ts': "import '../../../scripts/e.js';\n",
      'test/d.ts': "import '../packages/agent/src/tools/a.js';\n",
      'test/f.test.ts': "import '../packages/agent/test/c.js';\n",
    },
    then: [],
  },
  {
    title:
      'a test imports no other package by a path, none that is not named, and no tests of another one',
    given: {
      'packages/agent/test/a.ts': '',
      'packages/agent/test/b.test.ts': "import '@pawl/agent/tools/c';\nimport 'pawl';\n",
      'packages/pawl/test/e.test.ts':
        "import '../../agent/test/a.js';\nimport '../../agent/src/f.js';\nimport '@pawl/machine/g';\n",
      'test/h.ts': "import '../packages/agent/test/a.js';\n",
    },
    then: [
      'packages/agent/test/b.test.ts:1 a package never imports itself by its name',
      'packages/agent/test/b.test.ts:2 packages/agent/package.json does not name pawl',
      'packages/pawl/test/e.test.ts:1 another package is imported by its name, and its tests by none',
      'packages/pawl/test/e.test.ts:2 another package is imported by its name, and its tests by none',
      'packages/pawl/test/e.test.ts:3 packages/pawl/package.json does not name @pawl/machine',
      'test/h.ts:1 what all tests share imports no tests of a package',
    ],
  },
]);

testRows('small files', [
  {
    title:
      'a small file that one other file imports belongs there; one that is loaded late does not',
    given: {
      'packages/agent/src/tools/a.ts':
        "import './b.js';\nexport const a = () => import('./c.js');\n",
      'packages/agent/src/tools/b.ts': '',
      'packages/agent/src/tools/c.ts': "import './d.js';\n",
      'packages/agent/src/tools/d.ts': '//\n'.repeat(60),
    },
    then: [
      'packages/agent/src/tools/b.ts:1 a small file that only packages/agent/src/tools/a.ts imports',
    ],
  },
]);

const TIME = 'asks for the time of day';
const DRIVER = 'packages/machine/src/builder/drive.ts';

testRows('words', [
  {
    title: 'the pure core knows no chance, does not wait and does not throw; its drivers may',
    given: {
      'packages/machine/src/a.ts':
        "export const a = async () => {\n  throw Math.random();\n};\n// throw\nexport const b = ['await', { x: c.throw }];\n",
      [DRIVER]: 'export const d = async () => {\n  throw Math.random();\n};\n',
      'packages/pawl/src/b.ts': 'throw Math.random();\n',
    },
    then: [
      'packages/machine/src/a.ts:1 the pure core does not wait',
      'packages/machine/src/a.ts:2 chance',
      'packages/machine/src/a.ts:2 the pure core does not wait',
      `${DRIVER}:2 chance`,
    ],
  },
  {
    title: 'a text is cut between characters',
    given: {
      'packages/pawl/src/a.ts':
        'export const a = (text: string): string => text.slice(0, TITLE_MAX - 1);\n' +
        'export const b = (names: readonly string[]) => names.slice(0, NAMES_MAX);\n',
    },
    then: ['packages/pawl/src/a.ts:1 cuts a text in the middle of a character'],
  },
  {
    title: 'only the judge of programs says that one is safe to start',
    given: {
      'packages/pawl/src/a.ts': "export const a = 'x' as ProgramPath; // why\n",
      'packages/agent/src/platform/find-program.ts':
        "export const b = 'x' as ProgramPath; // why\n",
    },
    then: ['packages/pawl/src/a.ts:1 only packages/agent/src/platform/find-program.ts says'],
  },
  {
    title: 'the time of day is asked for in a few places only',
    given: {
      'packages/agent/src/platform/clock.ts': 'export const now = () => Date.now();\n',
      'packages/pawl/src/a.ts': [
        'export const a = Date.now();',
        'export const b = new Date();',
        'const { now } = Date;',
        'export const c = (at = Date.now) => at() + now();',
        'export const d = globalThis.Date;',
        'export const e = { at: Date.now() };',
        'export const f = [Date(), { Date }];',
        'export const g = Temporal.Now;',
      ].join('\n'),
    },
    then: [1, 2, 3, 4, 5, 6, 7, 8].map((line) => `packages/pawl/src/a.ts:${line} ${TIME}`),
  },
  {
    title: 'a given time may be read and written as a date',
    given: {
      'packages/pawl/src/a.ts':
        "export const a = (at: number | Date) => at instanceof Date ? at : new Date(at);\nexport const b = { Date: Date.parse('1') + Date.UTC(1) };\n",
    },
    then: [],
  },
  {
    title: 'no test is put off, or skipped by an option',
    given: {
      'test/a.test.ts': `${['skip', 'todo', 'only'].map((word) => `it('a', { ${word}: true }, () => {});\n`).join('')}it.todo('a');\n`,
    },
    then: [1, 2, 3, 4].map((line) => `test/a.test.ts:${line} nothing is skipped`),
  },
  {
    title: 'work that is put off is not left in a comment, and no comment is wider than the code',
    given: {
      'packages/pawl/src/a.ts': `\n// TO${'DO'}: later\n/** ${'long '.repeat(30)}*/\nexport const e = 1;\n`,
    },
    then: [
      `packages/pawl/src/a.ts:2 TO${'DO'}: do it`,
      'packages/pawl/src/a.ts:3 a comment of 152 columns',
    ],
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
    title: 'an exported type has a name of its own; local types and tests may repeat one',
    given: {
      'packages/agent/src/machine/a.ts': 'export type Look = 1;\n',
      'packages/agent/src/tools/b.ts': '\nexport interface Look { readonly a: 1 }\n',
      'packages/agent/src/tools/c.ts': 'type Look = 3;\nexport const c: Look = 3;\n',
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
    then: ['packages:1 488.4 of the words', 'packages:1 21 functions named xOf'],
  },
]);

testRows('one of each', [
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
    title: "a tool's name is found in any form of a comparison, a list and a switch",
    given: {
      'packages/pawl/src/a.ts': [
        "export const a = call.toolName == 'edit';",
        "export const b = 'edit' === calls.at(-1).tool;",
        "export const c = 'edit' === (call.tool);",
        "export const tools = [first(list[0]), 'edit'];",
        "switch (call.at(0).tool) { case 'list': { a(); } }",
        "switch (tool) { case other: { a(); } case 'edit': b(); }",
        "spawn(name ?? 'bash', []);",
      ].join('\n'),
    },
    then: [1, 2, 3, 4, 5, 6, 7].map((line) => `packages/pawl/src/a.ts:${line} the tool name`),
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
    then: [1, 2].map((line) => `packages/pawl/src/a.ts:${line} a field of a tool`),
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
      'packages/agent/src/models/a.ts:1 nobody retries',
      'packages/agent/src/models/a.ts:3 nobody retries',
    ],
  },
]);

/** Written in two pieces, so that this file passes its own rules. */
const REGISTRY = 'https:/' + '/registry.example.org/pawl';
const HOME = '/ho' + 'me/someone/notes';
const SHARED = '.' + './shared/spec';

testRows('texts', [
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
    title: 'what is read from top to bottom stays short',
    given: Object.fromEntries(
      [
        ['AGENTS.md', 81] as const,
        ['README.md', 121] as const,
        ['docs/decisions/0001-a.md', 61] as const,
        ['examples/01-a.ts', 47] as const,
        ['packages/agent/src/machine/table.ts', 526] as const,
        ['packages/ask/src/run/table.ts', 900] as const,
      ].map(([file, count]) => [file, '// line\n'.repeat(count)]),
    ),
    then: [
      'AGENTS.md:81 81 lines',
      'README.md:121 121 lines',
      'docs/decisions/0001-a.md:61 61 lines',
      'examples/01-a.ts:47 47 lines',
      'packages/agent/src/machine/table.ts:526 526 lines',
    ],
  },
]);

const ADVICE = 'everything that is printed goes through packages/terminal/src/write.ts';

/** A line of packages/pawl/src/a.ts, and what is said of it; empty for nothing. */
const printing: readonly (readonly [string, string])[] = [
  ["process.stdout.write('a');", 'a stream of the process'],
  ["process.stderr.end('a');", 'a stream of the process'],
  ['start({ output: process.stdout });', 'a stream of the process'],
  ['child.stdout.pipe(process.stdout);', 'a stream of the process'],
  ["process[name].write('a');", 'a stream of the process'],
  ['const { stdout } = process; stdout;', 'a stream of the process'],
  ['const f = ({ a = {}, stdout } = process) => stdout;', 'a stream of the process'],
  ["process?.stdout.write('a');", 'a stream of the process'],
  ["import { stderr as x } from 'node:process'; x;", 'a stream of the process'],
  ["writeSync(1, 'a');", 'writeSync to a descriptor of the process'],
  ["writeSync /* a */ (1, 'a');", 'writeSync to a descriptor of the process'],
  ["fs.write(2, 'a', done);", 'write to a descriptor of the process'],
  ["writeFileSync('/dev/tty', 'a');", 'writeFileSync to a descriptor of the process'],
  ["appendFileSync('/proc/self/fd/1', 'a');", 'appendFileSync to a descriptor of the process'],
  ["createWriteStream('', { fd: 1 });", 'a stream to a descriptor'],
  ['new WriteStream(3);', 'a stream to a descriptor'],
  ["process._rawDebug('a');", '_rawDebug'],
  ["spawn('a', [], { stdio: 'inherit' });", 'a child that inherits'],
  ["spawn('a', [], { stdio: ['ignore', 1, 'pipe'] });", 'a child that inherits'],
  ["spawn('a', [], { stdio: ['ignore', list[0], 'inherit'] });", 'a child that inherits'],
  [
    "execSync('a') && spawn('b', [], { stdio: 'pipe' });",
    'execSync without stdio, which prints errors',
  ],
  ["execFileSync('a', []);", 'execFileSync without stdio, which prints errors'],
  ['process.stdout.isTTY; process.stderr.columns; process[name].isTTY;', ''],
  ["process.stdout.on('resize', draw); detectLook(process.stderr, process.env);", ''],
  ["writeSync(file, 'a'); spawn('a', [], { stdio: ['ignore', 'pipe', 'pipe'] });", ''],
  ["execFileSync('a', [], { stdio: 'pipe' }); journals.fork(1);", ''],
];

const sequences: readonly (readonly [string, boolean])[] = [
  ["export const a = '\\u001b[2J';", true],
  ['export const a = `\\u001b]0;\\u0007`;', true],
  ["export const a = '\\x9b2J';", true],
  ["export const a = 'text'.includes('\\u001b');", false],
];

testRows('output', [
  ...printing.map(
    ([line, fault]): Row => ({
      title: `${fault === '' ? 'allowed' : 'refused'}: ${line}`,
      given: { 'packages/pawl/src/a.ts': `${line}\n`, 'test/a.ts': `${line}\n` },
      then: fault === '' ? [] : [`packages/pawl/src/a.ts:1 ${fault}: ${ADVICE}`],
    }),
  ),
  ...sequences.map(
    ([line, isRefused]): Row => ({
      title: `${isRefused ? 'refused' : 'allowed'}: ${line}`,
      given: {
        'packages/pawl/src/a.ts': `${line}\n`,
        'packages/terminal/src/paint.ts': `${line}\n`,
      },
      then: isRefused ? ['packages/pawl/src/a.ts:1 a control sequence'] : [],
    }),
  ),
  {
    title: 'the writer writes',
    given: { 'packages/terminal/src/write.ts': "writeSync(1, 'a');\n" },
    then: [],
  },
]);
