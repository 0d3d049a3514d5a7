import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

const root = path.join(fileURLToPath(import.meta.url), '../../../../..');

describe('bin/code-cache.js', () => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-cache-'));
  const program = path.join(scratch, 'program.cjs');
  const caches = path.join(scratch, 'caches', 'pawl');
  cpSync(path.join(root, 'packages/pawl/bin'), path.join(scratch, 'bin'), { recursive: true });
  after(() => removeFolderSync(scratch));
  beforeEach(() => rmSync(path.dirname(caches), { recursive: true, force: true }));

  const write = (name: string, says: string): void =>
    writeFileSync(program, `//${name}\nconst say = () => console.log('${says}');\nsay();\n`);
  /** What a start draws by lot. */
  let lot = 0.99;
  const start = (...words: readonly string[]) => {
    const code = "require('./bin/code-cache.js').runCached(process.env.PROGRAM);";
    writeFileSync(path.join(scratch, 'start.cjs'), `Math.random = () => ${lot};${code}`);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['start.cjs', ...words], {
      cwd: scratch,
      encoding: 'utf8',
      env: { ...process.env, PROGRAM: program, XDG_CACHE_HOME: path.dirname(caches) },
    });
    return { status, stdout, stderr };
  };
  const kept = (): readonly string[] => readdirSync(caches).sort();
  const fine = (says: string) => ({ status: 0, stdout: `${says}\n`, stderr: '' });

  it('keeps compiled code for the next start, private to the user', () => {
    write('aaaa', 'one');
    assert.deepEqual(start(), fine('one'));
    const [file = ''] = kept();
    assert.match(file, /^code-aaaa-v\d.*-any$/);
    assert.equal(statSync(path.join(caches, file)).mode & 0o777, 0o600);
    const written = statSync(path.join(caches, file)).mtimeMs;
    assert.deepEqual(start(), fine('one'));
    assert.equal(
      statSync(path.join(caches, file)).mtimeMs,
      written,
      'the second start writes nothing',
    );
  });

  it('never runs the code of another content, and throws it away', () => {
    write('aaaa', 'one');
    start();
    write('bbbb', 'two'); // the same length, which is all that V8 itself compares
    assert.deepEqual(start(), fine('two'));
    assert.deepEqual(
      kept().map((file) => file.slice(0, 9)),
      ['code-bbbb'],
    );
  });

  it('keeps the code of each command apart', () => {
    write('aaaa', 'one');
    start('sessions');
    start('-p');
    assert.deepEqual(
      kept().map((file) => file.split('-').at(-1)),
      ['any', 'sessions'],
    );
  });

  it('keeps it anew when a start had to compile more than the first one, and not again', (context) => {
    const part = (index: number): string =>
      `  const part${index} = () => [${index}, ${index} + 1, say.name];\n  part${index}();`;
    const more = Array.from({ length: 2_000 }, (_, index) => part(index));
    const lines = [
      '//aaaa',
      "const say = () => console.log('one');",
      "if (process.argv.includes('-p')) {",
      ...more,
    ];
    writeFileSync(program, `${[...lines, '}', 'say();'].join('\n')}\n`);
    const sizeAfter = (...words: readonly string[]): number => {
      assert.deepEqual(start(...words), fine('one'));
      return statSync(path.join(caches, kept()[0] ?? '')).size;
    };
    const small = sizeAfter('--help');
    assert.equal(sizeAfter('--help'), small);
    const large = sizeAfter('-p');
    assert.ok(large > small, `${large} bytes were kept after ${small}`);
    assert.equal(sizeAfter('--help'), large, 'a shorter start throws nothing away');
    // Code that is older than an hour: one start in eight looks.
    rmSync(path.join(caches, kept()[0] ?? ''));
    sizeAfter('--help');
    utimesSync(path.join(caches, kept()[0] ?? ''), 0, 0);
    assert.equal(sizeAfter('-p'), small);
    lot = 0.1;
    context.after(() => {
      lot = 0.99;
    });
    assert.equal(sizeAfter('-p'), large);
  });

  it('keeps nothing of a command line that was refused', () => {
    writeFileSync(program, '//aaaa\nprocess.exitCode = 2;\n');
    assert.equal(start('fix').status, 2);
    assert.deepEqual(readdirSync(path.dirname(path.dirname(caches))).includes('caches'), false);
  });

  for (const place of ['beginning', 'middle', 'end']) {
    it(`compiles as usual when a byte at the ${place} of what was kept is damaged, and keeps it anew`, () => {
      write('aaaa', 'one');
      start();
      const file = path.join(caches, kept()[0] ?? '');
      const whole = readFileSync(file);
      const damaged = Buffer.from(whole);
      const index = { beginning: 0, middle: whole.length >> 1, end: whole.length - 1 }[place] ?? 0;
      damaged.writeUInt8((damaged[index] ?? 0) ^ 0xff, index);
      writeFileSync(file, damaged);
      assert.deepEqual(start(), fine('one'));
      assert.ok(!readFileSync(file).equals(damaged));
    });
  }

  it('compiles as usual when what was kept was cut off', () => {
    write('aaaa', 'one');
    start();
    const file = path.join(caches, kept()[0] ?? '');
    writeFileSync(file, readFileSync(file).subarray(0, 20));
    assert.deepEqual(start(), fine('one'));
  });

  /** Keeps the code of a program that says something else under the name of this one, as an attacker would. */
  const plant = (): string => {
    write('aaaa', 'evil');
    start();
    const file = path.join(caches, kept()[0] ?? '');
    write('aaaa', 'good');
    assert.deepEqual(start(), fine('evil'), 'kept code is trusted, so whose it is must be known');
    return file;
  };

  it('takes no code from a file that others can write', () => {
    chmodSync(plant(), 0o666);
    assert.deepEqual(start(), fine('good'));
  });

  it('takes no code from a folder that others can write', () => {
    plant();
    chmodSync(caches, 0o777);
    assert.deepEqual(start(), fine('good'));
  });

  it('takes no code from a path that depends on the current folder', () => {
    const file = plant();
    cpSync(path.dirname(file), path.join(scratch, 'relative', 'pawl'), { recursive: true });
    const code = "require('./bin/code-cache.js').runCached(process.env.PROGRAM);";
    writeFileSync(path.join(scratch, 'start.cjs'), code);
    for (const places of [{ XDG_CACHE_HOME: 'relative' }, { XDG_CACHE_HOME: '', HOME: '' }]) {
      cpSync(path.dirname(file), path.join(scratch, '.cache', 'pawl'), { recursive: true });
      const { stdout } = spawnSync(process.execPath, ['start.cjs'], {
        cwd: scratch,
        encoding: 'utf8',
        env: { PATH: process.env.PATH, PROGRAM: program, ...places },
      });
      assert.equal(stdout, 'good\n', JSON.stringify(places));
    }
  });

  it('starts without a place to keep anything', () => {
    write('aaaa', 'one');
    mkdirSync(path.dirname(caches), { recursive: true });
    writeFileSync(caches, 'a file where the folder should be');
    assert.deepEqual(start(), fine('one'));
  });
});
