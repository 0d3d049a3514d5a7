import { type Row, testRows } from './plant.js';

const floors: readonly Row[] = [
  {
    title: 'an import downwards is fine, of a value and of a type',
    given: {
      'src/machine-kit/a.ts': 'export const a = 1;\n',
      'src/agent/b.ts': "import { a } from '../machine-kit/a.js';\nexport const b = a;\n",
      'src/ports/clock.ts': "import type { b } from '../agent/b.js';\nexport type B = typeof b;\n",
    },
    then: [],
  },
  {
    title: 'an import upwards is a fault',
    given: {
      'src/machine-kit/a.ts': "import { b } from '../agent/b.js';\nexport const a = b;\n",
      'src/agent/b.ts': '',
    },
    then: ['src/machine-kit/a.ts:1 machine-kit (floor 1) may not import agent (floor 2)'],
  },
  {
    title: 'parts of one floor do not import each other, not even a type',
    given: {
      'src/tools/a.ts': "\nimport type { B } from '../models/b.js';\nexport type A = B;\n",
      'src/models/b.ts': '',
    },
    then: ['src/tools/a.ts:2 tools (floor 5) may not import models (floor 5)'],
  },
  {
    title: 'a type import written inside a type counts',
    given: { 'src/journal/a.ts': "export type A = import('../runtime/b.js').B;\n", 'src/runtime/b.ts': '' },
    then: ['src/journal/a.ts:1 journal (floor 5) may not import runtime (floor 5)'],
  },
  {
    title: 'a lazy import counts',
    given: { 'src/models/a.ts': "export const a = () => import('../cli/b.js');\n", 'src/cli/b.ts': '' },
    then: ['src/models/a.ts:1 models (floor 5) may not import cli (floor 9)'],
  },
  {
    title: 'a part without a floor is a fault',
    given: {
      'src/somewhere/a.ts': "import { b } from './b.js';\nexport const a = b;\n",
      'src/somewhere/b.ts': '',
    },
    then: ['src/somewhere/a.ts:1 somewhere stands on no floor'],
  },
  {
    title: 'machine-kit and agent import nothing from outside',
    given: {
      'src/machine-kit/a.ts': "import 'valibot';\n",
      'src/agent/b.ts': "import 'node:fs';\n",
      'src/tools/c.ts': "import 'node:fs';\n",
    },
    then: [
      "src/agent/b.ts:1 agent imports nothing from outside ('node:fs')",
      'src/machine-kit/a.ts:1 machine-kit imports nothing',
    ],
  },
  {
    title: 'only the faces above ask import it: the agent does not',
    given: {
      'src/ask/run/a.ts': 'export const a = 1;\n',
      'src/ask/tree/b.ts': "import { a } from '../run/a.js';\nexport const b = a;\n",
      'src/index.ts': "export { a } from './ask/run/a.js';\n",
      'src/runtime/c.ts': "import { a } from '../ask/run/a.js';\nexport const c = a;\n",
      'src/testing/d.ts': "import type { b } from '../ask/tree/b.js';\nexport type D = typeof b;\n",
    },
    then: [
      "src/runtime/c.ts:1 runtime may not import ask ('../ask/run/a.js')",
      "src/testing/d.ts:1 testing may not import ask ('../ask/tree/b.js')",
    ],
  },
  {
    title: 'src imports nothing that lies beside it',
    given: { 'src/cli/a.ts': "import '../../test/b.js';\n", 'test/b.ts': '' },
    then: ['src/cli/a.ts:1 src/ imports only from src/'],
  },
  {
    title: 'a circle within a part is a fault, type imports counted',
    given: {
      'src/agent/a.ts': "import type { B } from './b.js';\nexport type A = B;\n",
      'src/agent/b.ts': "import type { C } from './c.js';\nexport type B = C;\n",
      'src/agent/c.ts': "import type { A } from './a.js';\nexport type C = A;\n",
    },
    then: [
      'src/agent/c.ts:1 circle of imports: src/agent/a.ts -> src/agent/b.ts -> src/agent/c.ts -> src/agent/a.ts',
    ],
  },
];

const TIME_OF_DAY =
  'asks for the time of day, which may jump: use performance.now(), or the clock you are given';

const purity: readonly Row[] = [
  ...['Date.now()', 'Math.random()', 'process.pid', "fetch('x')", 'setTimeout(a)', 'globalThis.x'].map(
    (expression): Row => ({
      title: `the pure core does not say ${expression}`,
      given: {
        'src/agent/a.ts': `\nexport const a = (): unknown => ${expression};\n`,
        'src/cli/b.ts': `${expression};\n`,
      },
      then: [
        `src/agent/a.ts:2 '${/^(Math\.random|\w+)/.exec(expression)?.[0]}' in the pure core`,
        ...(expression === 'Date.now()' ? ['agent/a.ts:2', 'cli/b.ts:1'] : []).map(
          (place) => `src/${place} ${TIME_OF_DAY}`,
        ),
      ],
    }),
  ),
  {
    title: 'nobody prints by console, and the pure core does not name it at all',
    given: {
      'src/agent/a.ts': '\nexport const a = (): unknown => console.log(1);\n',
      'src/cli/b.ts': 'console.log(1);\n',
    },
    then: [
      "src/agent/a.ts:2 'console' in the pure core",
      'src/agent/a.ts:2 console: everything that is printed goes through',
      'src/cli/b.ts:1 console: everything that is printed goes through',
    ],
  },
  {
    title: 'the pure core does not wait, promise or throw',
    given: {
      'src/machine-kit/a.ts':
        'export const a = async () => {\n  await 1;\n  throw 2;\n};\nexport type P = Promise<void>;\n',
    },
    then: [
      "src/machine-kit/a.ts:1 'async' in",
      "src/machine-kit/a.ts:2 'await' in",
      "src/machine-kit/a.ts:3 'throw' in",
      "src/machine-kit/a.ts:5 'Promise' in",
    ],
  },
  {
    title: 'the drivers of the kernel may wait and throw, but read no clock',
    given: {
      'src/machine-kit/builder/drive-machine.ts':
        'export const a = async () => {\n  await 1;\n  throw Date;\n};\n',
    },
    then: [
      "src/machine-kit/builder/drive-machine.ts:3 'Date' in the pure core",
      `src/machine-kit/builder/drive-machine.ts:3 ${TIME_OF_DAY}`,
    ],
  },
  {
    title: 'a field, a comment and a string may be called like the world',
    given: {
      'src/agent/a.ts':
        "// Date\nexport const a = (b: { fetch: 1 }) => [b.fetch, 'process', { console: 1 }];\n",
    },
    then: [],
  },
];

testRows('floors', floors);
testRows('purity', purity);
