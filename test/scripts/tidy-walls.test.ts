import { type Row, testRows } from './plant.js';

const walls: readonly Row[] = [
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
    title: 'a package that is not named is a fault, of the workspace or not',
    given: {
      'packages/machine/src/a.ts': 'export const a = 1;\n',
      'packages/agent/src/tools/b.ts': "import 'zod';\n",
      'packages/pawl/src/c.ts': "import '@pawl/machine/a';\n",
    },
    then: [
      'packages/agent/src/tools/b.ts:1 packages/agent/package.json does not name zod',
      'packages/pawl/src/c.ts:1 packages/pawl/package.json does not name @pawl/machine',
    ],
  },
  {
    title: 'no file of another package is imported by a path',
    given: {
      'packages/agent/src/tools/a.ts': 'export const a = 1;\n',
      'packages/pawl/src/b.ts':
        "import '../../agent/src/tools/a.js';\nimport '../../../test/c.js';\n",
      'test/c.ts': '',
    },
    then: [
      'packages/pawl/src/b.ts:1 another package is imported by its name',
      'packages/pawl/src/b.ts:2 another package is imported by its name',
    ],
  },
  {
    title: 'a package never imports itself by its name',
    given: {
      'packages/agent/src/tools/a.ts': "import '@pawl/agent/tools/b';\n",
      'packages/agent/src/tools/b.ts': '',
    },
    then: ['packages/agent/src/tools/a.ts:1 a package never imports itself'],
  },
  {
    title: 'a package has a package.json',
    given: { 'packages/other/src/a.ts': "import './b.js';\n", 'packages/other/src/b.ts': '' },
    then: ['packages/other/src/a.ts:1 packages/other has no package.json'],
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
      'packages/pawl/src/e.ts':
        "import '@pawl/agent/tools/a';\nimport '@pawl/agent/tools/in/d';\nimport '@pawl/agent/models/b';\n",
      'packages/pawl/src/f.ts': "import '@pawl/agent/tools/c';\n",
    },
    then: [
      'packages/agent/src/models:1 circle of folders: packages/agent/src/models, packages/agent/src/tools',
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
      'packages/pawl/test/e.test.ts:1 a test imports another package by its name, and no tests of another one',
      'packages/pawl/test/e.test.ts:2 a test imports another package by its name, and no tests of another one',
      'packages/pawl/test/e.test.ts:3 packages/pawl/package.json does not name @pawl/machine',
      'test/h.ts:1 what all tests share imports no tests of a package',
    ],
  },
];

const smallFiles: readonly Row[] = [
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
];

const TIME_OF_DAY =
  'asks for the time of day, which may jump: use performance.now(), or the clock you are given';

const purity: readonly Row[] = [
  ...[
    'Date.now()',
    'Math.random()',
    'process.pid',
    "fetch('x')",
    'setTimeout(a)',
    'globalThis.x',
  ].map(
    (expression): Row => ({
      title: `the pure core does not say ${expression}`,
      given: {
        'packages/agent/src/machine/a.ts': `\nexport const a = (): unknown => ${expression};\n`,
        'packages/pawl/src/b.ts': `${expression};\n`,
      },
      then: [
        `packages/agent/src/machine/a.ts:2 '${/^(Math\.random|\w+)/.exec(expression)?.[0]}' in the pure core`,
        ...(expression === 'Date.now()' ? ['agent/src/machine/a.ts:2', 'pawl/src/b.ts:1'] : []).map(
          (place) => `packages/${place} ${TIME_OF_DAY}`,
        ),
      ],
    }),
  ),
  {
    title: 'nobody prints by console, and the pure core does not name it at all',
    given: {
      'packages/agent/src/machine/a.ts': '\nexport const a = (): unknown => console.log(1);\n',
      'packages/pawl/src/b.ts': 'console.log(1);\n',
    },
    then: [
      "packages/agent/src/machine/a.ts:2 'console' in the pure core",
      'packages/agent/src/machine/a.ts:2 console: everything that is printed goes through',
      'packages/pawl/src/b.ts:1 console: everything that is printed goes through',
    ],
  },
  {
    title: 'the pure core does not wait, promise or throw',
    given: {
      'packages/machine/src/a.ts':
        'export const a = async () => {\n  await 1;\n  throw 2;\n};\nexport type P = Promise<void>;\n',
    },
    then: [
      "packages/machine/src/a.ts:1 'async' in",
      "packages/machine/src/a.ts:2 'await' in",
      "packages/machine/src/a.ts:3 'throw' in",
      "packages/machine/src/a.ts:5 'Promise' in",
    ],
  },
  {
    title: 'the drivers of the kernel may wait and throw, but read no clock',
    given: {
      'packages/machine/src/builder/drive.ts':
        'export const a = async () => {\n  await 1;\n  throw Date;\n};\n',
    },
    then: [
      "packages/machine/src/builder/drive.ts:3 'Date' in the pure core",
      `packages/machine/src/builder/drive.ts:3 ${TIME_OF_DAY}`,
    ],
  },
  {
    title: 'a field, a comment and a string may be called like the world',
    given: {
      'packages/agent/src/machine/a.ts':
        "// Date\nexport const a = (b: { fetch: 1 }) => [b.fetch, 'process', { console: 1 }];\n",
    },
    then: [],
  },
];

testRows('walls', walls);
testRows('small files', smallFiles);
testRows('purity', purity);
