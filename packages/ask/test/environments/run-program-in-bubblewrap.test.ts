import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { startSandboxed } from '../../src/environments/run-program.js';
import { MEGABYTE, nodeOrder, runNode } from './sandboxed.js';

const makeFolder = (t: TestContext): string => {
  const folder = temporaryFolder(t, 'sandbox');
  return folder;
};

/** Code that says the error code of each attempt, or what came of it. */
const trying = (...attempts: readonly string[]): string =>
  attempts
    .map(
      (attempt) =>
        `try { say(String(${attempt})) } catch (error) { say(error.code ?? error.message) }`,
    )
    .join('\n');

const SIGINT_BIT = 2n;
/** In the command line of a program of this run of the tests, and of no other. */
const OWN = `own-${process.pid}-program`;

/** Whether a process with this text in its command line is stopped; `interrupted`: and a SIGINT waits for it. */
const isHeld = (text: string, interrupted: boolean): boolean =>
  readdirSync('/proc').some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      const pending = BigInt(`0x${/^ShdPnd:\s*(\w+)$/m.exec(status)?.[1] ?? '0'}`);
      return (
        /^State:\s+T/m.test(status) &&
        (!interrupted || (pending & SIGINT_BIT) !== 0n) &&
        readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text)
      );
    } catch {
      return false; // it has ended
    }
  });

describe('a program behind bubblewrap', () => {
  it('sees what is bound for it and nothing else', async (t) => {
    const folder = makeFolder(t);
    mkdirSync(path.join(folder, 'inner'));
    writeFileSync(path.join(folder, 'note.txt'), 'bound');
    writeFileSync(path.join(folder, 'inner', 'secret.txt'), 'hidden');
    const order = await nodeOrder('');
    const { said, end } = await runNode(
      `const fs = require('fs');
       say([fs.readFileSync('/given/note.txt', 'utf8'), fs.readdirSync('/given/inner')]);
       say(fs.readdirSync('/dev').sort());
       ${trying(...['/etc', '/proc', '/home', '/root', '/bin', folder].map((place) => `fs.readdirSync(${JSON.stringify(place)})`))}`,
      { readable: [...order.readable, { from: folder, to: '/given' }], hidden: ['/given/inner'] },
    );
    assert.equal(end.code, 0, end.stderr);
    assert.deepEqual(said.slice(0, 2), [
      ['bound', []],
      ['null', 'random', 'urandom', 'zero'],
    ]);
    for (const found of said.slice(2)) assert.equal(found, 'ENOENT');
  });

  it('has no variable of ours, and our machine has no name there', async () => {
    process.env.PAWL_TEST_SECRET = 'xyzzy';
    try {
      const { said } = await runNode("say(process.env); say(require('os').hostname())");
      const { HOME, TMPDIR, LANG, TZ, PWD, ...rest } = said[0] as Record<string, string>;
      assert.deepEqual({ HOME, TMPDIR }, { HOME: '/tmp', TMPDIR: '/tmp' });
      assert.deepEqual(rest, {}, `${LANG} ${TZ} ${PWD} are known, this is not`);
      assert.equal(said[1], 'sandbox');
    } finally {
      delete process.env.PAWL_TEST_SECRET;
    }
  });

  it('writes nowhere: no file, and no name of one', async (t) => {
    const folder = makeFolder(t);
    const order = await nodeOrder('');
    const { said } = await runNode(
      `const fs = require('fs');
       ${trying(...['/x', '/dev/x', '/dev/null/x', '/given/x', '/empty/x', '/tmp/x'].map((place) => `fs.writeFileSync('${place}', 'a')`), "fs.mkdirSync('/tmp/folder')")}`,
      {
        readable: [
          ...order.readable,
          { from: folder, to: '/given' },
          { from: folder, to: '/empty' },
        ],
        hidden: ['/empty'],
      },
    );
    assert.deepEqual(said, ['EROFS', 'EROFS', 'ENOTDIR', 'EROFS', 'EROFS', 'EROFS', 'EROFS']);
  });

  it('starts no process, opens no socket, sends no signal', async () => {
    const { said, end } = await runNode(
      `const child = require('child_process');
       ${trying(
         'child.execFileSync(process.execPath, ["--version"])',
         'child.spawnSync("sh", ["-c", ":"]).error.code',
         'process.kill(process.pid, 0)',
         'process.kill(1, "SIGKILL")',
       )}
       require('net').connect(80, '127.0.0.1').on('error', (error) => {
         say(error.code);
         const server = require('net').createServer().on('error', (other) => say(other.code));
         server.listen('/tmp/socket', () => server.close());
         require('dns').lookup('example.com', (third) => say(third !== null));
       });`,
    );
    assert.equal(end.code, 0, end.stderr);
    assert.deepEqual(said, ['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM', true]);
  });

  it('still has threads', async () => {
    const { said } = await runNode(
      `const { Worker } = require('worker_threads');
       new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true }).on('message', say);`,
    );
    assert.deepEqual(said, [42]);
  });

  it('gets no more memory than it may use, touched or not', async () => {
    const { said } = await runNode(
      `const held = [];
       try { while (held.length < 200) held.push(new ArrayBuffer(50e6)); say([held.length, 'no end']) } catch (error) { say([held.length, error.name]) }`,
      { memoryMax: 1_536 * MEGABYTE },
    );
    const [[count, name]] = said as [[number, string]];
    assert.equal(name, 'RangeError');
    assert.ok(count >= 10 && count <= 31, `${count} times 50 MB`);
  });

  it('ends with the exit code of the program and the end of what it wrote to stderr', async () => {
    const { end } = await runNode(
      "console.error('x'.repeat(10000)); console.error('last é'); process.exit(7)",
    );
    assert.deepEqual([end.code, end.signal], [7, null]);
    assert.match(end.stderr, /^x{3,}\nlast é$/);
    assert.ok(end.stderr.length <= 4_000);
  });

  it('hears an interrupt, stands still while it is held, and ends at once when it is killed', async () => {
    const started = startSandboxed(
      await nodeOrder(
        `/* ${OWN} */ let count = 0; process.on('SIGINT', () => say(['interrupted', count])); setInterval(() => { count += 1; if (count < 4) say(count) }, 5);`,
      ),
    );
    let text = '';
    const heard = (what: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!text.includes(what)) return;
          started.channel.off('data', look);
          resolve();
        };
        started.channel.on('data', look);
        look();
      });
    started.channel.on('data', (bytes: Buffer) => {
      text += bytes.toString('utf8');
    });
    await heard('3\n');
    started.hold();
    await until('it stands still', () => isHeld(OWN, false));
    started.interrupt();
    await until('the interrupt waits', () => isHeld(OWN, true));
    assert.doesNotMatch(text, /interrupted/);
    started.release();
    await heard('interrupted');
    started.kill();
    assert.equal((await started.ended).code ?? 'killed', 'killed');
    started.interrupt();
    started.kill();
  });
});
