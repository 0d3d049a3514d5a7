import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

/** What libraries and Node itself print past our own code, in a process of its own. */

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const HOSTILE = String.raw`'\u001b]52;c;eA==\u0007\u009b2J\u202e'`;
const STRAY = `console.log(${HOSTILE}); console.error('%s', ${HOSTILE}); process.stdout.write(${HOSTILE});
process.stderr.write(Buffer.from(${HOSTILE}), () => process.emitWarning(${HOSTILE}));`;

const printed = (
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): string => {
  const { stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: root,
    encoding: 'utf8',
    input: '',
    env: { ...process.env, ...environment },
  });
  return stdout + stderr;
};

test('output of console, streams and warnings is made safe; without the guard it is not', async (context) => {
  const guard = `import { routeStrayOutput } from './packages/terminal/src/write.ts'; routeStrayOutput();`;
  const run = async (code: string) => printed([await bundleProgram(context, { code })]);
  const guarded = await run(`${guard}\n${STRAY}`);
  assert.doesNotMatch(guarded, /[\u001b\u0007\u009b\u202e]/);
  assert.equal(guarded.split('␛]52;c;eA==␇⟨U+009B⟩2J⟨U+202E⟩').length - 1, 5);
  assert.match(await run(STRAY), /\u001b\]52/);
});

test('a fault that nobody caught is told without its control sequences', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'pawl-stray-'));
  try {
    const file = path.join(folder, 'fault.cjs');
    writeFileSync(file, `setTimeout(() => { throw new Error(${HOSTILE}); }, 1); `);
    // Its prompt never comes: it waits for stdin.
    const child = spawn(
      process.execPath,
      ['--require', file, 'packages/pawl/bin/pawl.js', '-p', '-'],
      {
        cwd: root,
      },
    );
    let told = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      told += text;
    });
    const [exit] = await once(child, 'close');
    assert.equal(exit, 70);
    assert.match(
      told,
      /pawl: an internal fault, please report it: Error: ␛\]52;c;eA==␇⟨U\+009B⟩2J⟨U\+202E⟩/,
    );
    assert.doesNotMatch(told, /[\u001b\u0007\u009b\u202e]/);
  } finally {
    removeFolderSync(folder);
  }
});
