import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createProgramTable, parseStartTime } from '../../src/platform/processes.js';

/** What `ps` and `sysctl` print, on systems without /proc. What is not known for sure is unknown. */

const STARTS: readonly (readonly [title: string, text: string, started: string])[] = [
  ['a day of one figure', 'Sun Nov  1 08:09:07 2026', '20261101080907'],
  ['a day of two figures', 'Wed Dec 31 23:59:59 2025', '20251231235959'],
  ['the first month', 'Fri Jan 02 00:00:00 2026', '20260102000000'],
  ['another order', 'Sun 1 Nov 08:09:07 2026', ''],
  ['a day of another language', 'So. Nov  1 08:09:07 2026', '20261101080907'],
  ['a month of another language', 'dim. nov  1 08:09:07 2026', ''],
  ['no such month', 'Sun anF  1 08:09:07 2026', ''],
  ['the clock of twelve hours', 'Sun Nov  1 08:09:07 PM 2026', ''],
  ['half a line', 'Sun Nov  1 08:09', ''],
  ['nothing', '', ''],
];

const launcherText = readFileSync(
  new URL('../../src/command/launcher-ps.sh', import.meta.url),
  'utf8',
);

/** The same by the shell that starts commands: `ps` is a function there. */
const startedByShell = (text: string): string =>
  execFileSync(
    'bash',
    ['-c', `${launcherText}\nps() { echo "$LINE"; }\nreadStart 1\necho "$start"`],
    {
      env: { PATH: process.env.PATH, LINE: text === '' ? '' : `Ss ${text}` },
      encoding: 'utf8',
    },
  ).trim();

for (const [title, text, started] of STARTS)
  test(`a start time with ${title} is read alike by both readers: ${started}`, () => {
    assert.equal(parseStartTime(text), started);
    assert.equal(startedByShell(text), started);
  });

const tableOf = (answers: Readonly<Record<string, string>>) =>
  createProgramTable((program, words) => answers[[program, ...words].join(' ')] ?? '');
const OWN = `ps -o stat= -o lstart= -p ${process.pid}`;
const LIST = 'ps -ax -o pid= -o ppid= -o pgid= -o stat= -o lstart= -o comm=';
const ENVIRONMENTS = 'ps -axwwE -o pid= -o command=';

test('a process has a state and a start time, or both are unknown', () => {
  const read = (line: string) => tableOf({ [OWN]: line }).readProcess(process.pid);
  const started = '20261101080907';
  assert.deepEqual(read('Ss+  Sun Nov  1 08:09:07 2026\n'), { state: 'S', started });
  assert.deepEqual(read('Z    Sun Nov  1 08:09:07 2026\n'), { state: 'Z', started });
  for (const line of ['', 'S', 'ps: illegal option', 'Ss 1 Nov 2026'])
    assert.deepEqual(read(line), { state: '', started: '' }, line);
  const gone = 2 ** 30;
  const table = tableOf({
    [OWN.replace(String(process.pid), String(gone))]: 'S Sun Nov  1 08:09:07 2026',
  });
  assert.deepEqual(table.readProcess(gone), { state: '', started: '' }, 'no such number');
});

test('a list has living processes, whatever their programs are called', () => {
  const lines = [
    '    1     0     1 Ss   Sun Nov  1 08:00:00 2026 /sbin/launchd',
    '  412     1   412 SEs  Sun Nov  1 08:00:01 2026 /Applications/A b.app/99 1 2 S Sun Nov  1 08:00:00 2026',
    '  413     1   413 Z    Sun Nov  1 08:00:01 2026 (zombie)',
    '  414     1   414 S    unknown 2026 late',
    '',
  ];
  const listed = tableOf({ [LIST]: lines.join('\n') }).listProcesses();
  assert.deepEqual(
    listed?.map(({ pid, parent, group, isEnding, identity }) => [
      pid,
      parent,
      group,
      isEnding,
      identity,
    ]),
    [
      [1, 0, 1, false, '1@20261101080000'],
      [412, 1, 412, true, '412@20261101080001'],
    ],
  );
});

test('a marker is looked for in one variable, of the processes that are meant', () => {
  const lines = [
    '  10 node a.js HOME=/ PAWL_CALL=one two TERM=dumb',
    '  11 node b.js PAWL_CALL=other one=1',
    '  12 grep PAWL_CALL=two', // text of its own: it is not asked for
    '  13 sh -c x',
  ];
  const table = tableOf({ [ENVIRONMENTS]: lines.join('\n') });
  assert.deepEqual([...(table.findByVariable([10, 11, 13], 'PAWL_CALL', 'two') ?? [])], [10]);
});

test('a list that the system does not give is not empty', () => {
  assert.equal(tableOf({}).listProcesses(), null);
  assert.equal(tableOf({}).findByVariable([10], 'PAWL_CALL', 'two'), null);
});

test('the boot has a name that stays when the clock is set, or none', () => {
  assert.equal(tableOf({ 'sysctl -n kern.bootsessionuuid': 'A-B\n' }).bootId(), 'A-B');
  assert.equal(tableOf({}).bootId(), '');
});
