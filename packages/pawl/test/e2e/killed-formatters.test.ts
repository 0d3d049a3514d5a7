import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import { chooseRows } from '../../../../test/tier.js';
import { runInProcess } from './in-process.js';
import { compileKiller, killVariables, pointsIn } from './kill-points.js';
import { expectCode, expectValid, makeServed, runPawl } from './pawl.js';
import { call, done, last, message } from './wire-words.js';

/**
 * The program is killed while it replaces a file, by its write tool or with what a formatter printed, and resumed: the
 * file is whole and formatted, no temporary file is left, and the model knows what was formatted.
 */

const answer = (body: WireBody) => {
  const wanted = JSON.stringify(last(body));
  if (wanted.includes('make it rough'))
    return message(call('w', 'write', { path: 'a.go', content: 'rough\n' }));
  if (wanted.includes('make it fine'))
    return message(
      call('e', 'edit', { path: 'a.go', edits: [{ oldText: 'smooth', newText: 'fine' }] }),
    );
  return done;
};

const makeGround = async (context: TestContext) => {
  const place = await makeServed(context, answer);
  const { workspace, home, folder } = place;
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  writeFileSync(join(programs, 'gofmt'), '#!/bin/bash\nsed s/rough/smooth/\n');
  chmodSync(join(programs, 'gofmt'), 0o755);
  writeFileSync(join(workspace, 'go.mod'), 'module x\n');
  const named = '-c user.name=Ada -c user.email=ada@example.org';
  const commit = `git init -q; git add .; git ${named} commit -qm first`;
  execFileSync('bash', ['-ec', commit], {
    cwd: workspace,
    env: { PATH: process.env.PATH, HOME: home },
  });
  const environment = { ...place.environment, PATH: `${programs}:${process.env.PATH}` };
  const log = join(folder, 'points');
  const run = (words: readonly string[], more: NodeJS.ProcessEnv) =>
    runPawl({ ...place, environment: { ...environment, ...more } }, words);
  const resume = (...words: readonly string[]) =>
    runInProcess({ ...place, environment }, ['--continue', ...words]);
  return { ...place, run, resume, log, library: compileKiller(folder) };
};

/** The write tool opens and renames a temporary file, and so does the formatter's phase after it. */
const POINTS = ['unlink', 'open', 'rename', 'unlink', 'open', 'rename'];

const kills = [
  [3, false],
  [5, true],
  [6, false],
  [6, true],
] as const;
for (const [at, after] of chooseRows(kills, ([at, after]) => `${at > 3} ${at === 6 && after}`)) {
  const [what, by] = [POINTS[at - 1] ?? '', at > 3 ? 'the formatters' : 'the write tool'];
  const title = `killed ${after ? 'after' : 'before'} the ${what} by ${by}, a file is whole in the resumed session`;
  test(title, async (context) => {
    const { run, resume, log, library, workspace, server } = await makeGround(context);
    const order = { library, path: 'a.go', at, after, children: false, log };
    const killed = await run(['-p', 'make it rough'], killVariables(order));
    assert.equal(killed.code, null, killed.stderr);
    assert.deepEqual(
      pointsIn(log).map((point) => point.split(' ')[0]),
      POINTS.slice(0, at),
    );
    expectCode(await resume('-p', 'make it fine'), 0);
    expectValid(server);
    assert.deepEqual(readdirSync(workspace).sort(), ['.git', 'a.go', 'go.mod']);
    const told = JSON.stringify(server.requests.at(-1)?.body.messages);
    const isDone = at === 6 && after;
    assert.match(told, isDone ? /a\.go was formatted before an interruption/ : /a\.go \(gofmt\):/);
    assert.match(told, /Edited a\.go/);
    assert.equal(readFileSync(join(workspace, 'a.go'), 'utf8'), 'fine\n');
  });
}
