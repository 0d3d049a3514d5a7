import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import { processesOf } from './command-processes.js';
import { killed } from './interrupted-command.js';
import { makeServed, startPawl, uniqueSleep } from './pawl.js';
import { call, done, message } from './wire-words.js';

/** Formatters and hooks end with Pawl, also if it is killed, and also outside the sandbox. */

for (const sandbox of [[], ['--sandbox', 'off', '--formatter', 'on']])
  test(`a formatter ends with a killed program, and the file is whole ${sandbox.join(' ')}`, async (context) => {
    const write = call('w', 'write', { path: 'a.go', content: 'rough\n' });
    const place = await makeServed(context, [message(write), done]);
    const { workspace, home, folder, environment } = place;
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    // it is asked twice: whether the file was formatted before, and for the formatted text
    writeFileSync(
      join(programs, 'gofmt'),
      `#!/bin/bash\ntouch ${folder}/formats; echo half; sleep 1000 & wait\n`,
    );
    chmodSync(join(programs, 'gofmt'), 0o755);
    writeFileSync(join(workspace, 'go.mod'), 'module x\n');
    const env = { PATH: process.env.PATH, HOME: home };
    execFileSync('git', ['init', '-q'], { cwd: workspace, env });
    const own = {
      ...place,
      environment: { ...environment, PATH: `${programs}:${process.env.PATH}` },
    };
    const running = startPawl(own, ['-p', 'work', ...sandbox]);
    await until(
      () => `the formatter runs\n${running.stderr()}`,
      () => processesOf(place).some(({ line }) => line.includes('gofmt')),
    );
    await killed(running);
    await until('nothing runs', () => processesOf(place).length === 0);
    assert.equal(readFileSync(join(workspace, 'a.go'), 'utf8'), 'rough\n');
    assert.deepEqual(readdirSync(workspace).sort(), ['.git', 'a.go', 'go.mod']);
  });

test('a hook outside the sandbox ends with a killed program, with its children', async (context) => {
  const mark = uniqueSleep(context);
  const place = await makeServed(context, [
    message(call('w', 'write', { path: 'a.txt', content: 'x\n' })),
    done,
  ]);
  const config = join(place.home, '.config/pawl');
  mkdirSync(config, { recursive: true });
  const command = `trap "" TERM HUP INT; sleep ${mark} & sleep ${mark}; echo late`;
  writeFileSync(
    join(config, 'config.toml'),
    `[hook.slow]\non = "before-tool"\ncommand = '${command}'\nsandbox = "off"\n`,
  );
  const running = startPawl(place, ['-p', 'work']);
  await until(
    () => `both sleep\n${running.stderr()}`,
    () => processesWith(mark).filter((line) => line.startsWith('sleep')).length === 2,
  );
  await killed(running);
  await until('nothing of it runs', () => processesWith(mark).length === 0);
});
