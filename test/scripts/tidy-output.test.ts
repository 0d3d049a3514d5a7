import { type Row, testRows } from './plant.js';

const ADVICE = 'everything that is printed goes through packages/terminal/src/write.ts';

/** A line of packages/pawl/src/a.ts, and what is said of it; empty for nothing. */
const lines: readonly (readonly [string, string])[] = [
  ["process.stdout.write('a');", 'a stream of the process'],
  ["process.stderr.end('a');", 'a stream of the process'],
  ['start({ output: process.stdout });', 'a stream of the process'],
  ['child.stdout.pipe(process.stdout);', 'a stream of the process'],
  ["process[name].write('a');", 'a stream of the process'],
  ['const { stdout } = process; stdout;', 'a stream of the process'],
  ["import { stderr as x } from 'node:process'; x;", 'a stream of the process'],
  ["console.error('a');", 'console'],
  ['const { log } = console; log;', 'console'],
  ["writeSync(1, 'a');", 'writeSync to a descriptor of the process'],
  ["fs.write(2, 'a', done);", 'write to a descriptor of the process'],
  ["writeFileSync('/dev/tty', 'a');", 'writeFileSync to a descriptor of the process'],
  ["appendFileSync('/proc/self/fd/1', 'a');", 'appendFileSync to a descriptor of the process'],
  ["createWriteStream('', { fd: 1 });", 'a stream to a descriptor'],
  ['new WriteStream(3);', 'a stream to a descriptor'],
  ["process._rawDebug('a');", '_rawDebug'],
  ["spawn('a', [], { stdio: 'inherit' });", 'a child that inherits'],
  ["spawn('a', [], { stdio: ['ignore', 1, 'pipe'] });", 'a child that inherits'],
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

const rows: readonly Row[] = [
  ...lines.map(
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
    title: 'refused: fork, whose child inherits',
    given: {
      'packages/agent/src/platform/start-program.ts':
        "import { fork } from 'node:child_process'; fork;\n",
    },
    then: [`packages/agent/src/platform/start-program.ts:1 fork, whose child inherits: ${ADVICE}`],
  },
  {
    title: 'the writer writes',
    given: { 'packages/terminal/src/write.ts': "writeSync(1, 'a');\n" },
    then: [],
  },
];

testRows('output', rows);
