import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { bin, makeServed } from './pawl.js';
import { openWindow } from './window.js';
import { call, done, message } from './wire-words.js';

/** `pawl -p` whose stderr is a terminal: one line a call, while it works. */

const watch = async (context: TestContext, flags: string, environment: NodeJS.ProcessEnv = {}) => {
  const replies = [
    message(
      call('a', 'bash', { command: 'until [ -e go ]; do sleep 0.02; done; echo made' }),
      call('b', 'bash', { command: 'exit 3' }),
    ),
    message(call('c', 'bash', { command: 'true', needs: 'network' })),
    done,
  ];
  const place = await makeServed(context, [message(call('z', 'list', { path: '.' })), ...replies]);
  const program = `${process.execPath} ${bin} -p go --on-ask deny ${flags} >out.txt`;
  const window = openWindow(context, place, { program: ['/bin/sh', '-c', program], environment });
  return { place, window };
};

const LINES = [
  /^✓ list \. \d/m,
  /^✓ bash until .*echo made \d+(\.\d)?s$/m,
  /^✗ bash exit 3 failed \d/m,
  /^✗ bash true · denied by policy: /m,
  /^session \S+ · .* tokens · \S+ · 1 call denied$/m,
];

for (const [title, flags, environment] of [
  ['in colour', '', {}],
  ['with --plain', '--plain', {}],
  ['with NO_COLOR', '', { NO_COLOR: '1' }],
] as const)
  test(`a terminal on stderr shows each call when it ends, ${title}; stdout has the answer alone`, async (context) => {
    const { place, window } = await watch(context, flags, environment);
    // The first call is shown while the second one runs.
    await window.sees(LINES[0] ?? '');
    writeFileSync(path.join(place.workspace, 'go'), '');
    assert.equal(await window.ended, 0);
    for (const line of LINES) await window.sees(line);
    const shown = await window.text();
    assert.equal(shown.match(/^[✓✗] /gm)?.length, 4);
    assert.equal(window.raw().includes('\x1b['), title === 'in colour');
    assert.equal(readFileSync(path.join(place.workspace, 'out.txt'), 'utf8'), 'Done.\n');
  });
