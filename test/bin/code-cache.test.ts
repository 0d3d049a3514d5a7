import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = path.join(fileURLToPath(import.meta.url), '../../..');

describe('bin/code-cache.js', () => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-cache-'));
  const program = path.join(scratch, 'program.cjs');
  const caches = path.join(scratch, 'caches', 'pawl');
  cpSync(path.join(root, 'bin'), path.join(scratch, 'bin'), { recursive: true });
  after(() => rmSync(scratch, { recursive: true }));
  beforeEach(() => rmSync(path.dirname(caches), { recursive: true, force: true }));

  const write = (name: string, says: string): void =>
    writeFileSync(program, `//${name}\nconst say = () => console.log('${says}');\nsay();\n`);
  const start = (...words: readonly string[]) => {
    const code = "require('./bin/code-cache.js').runCached(process.env.PROGRAM);";
    writeFileSync(path.join(scratch, 'start.cjs'), code);
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
    assert.equal(statSync(path.join(caches, file)).mtimeMs, written, 'the second start writes nothing');
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

  it('compiles as usual when what was kept is damaged, and keeps it anew', () => {
    write('aaaa', 'one');
    start();
    const file = path.join(caches, kept()[0] ?? '');
    const whole = readFileSync(file).length;
    writeFileSync(file, 'this is no code');
    assert.deepEqual(start(), fine('one'));
    assert.equal(readFileSync(file).length, whole);
  });

  it('starts without a place to keep anything', () => {
    write('aaaa', 'one');
    mkdirSync(path.dirname(caches), { recursive: true });
    writeFileSync(caches, 'a file where the folder should be');
    assert.deepEqual(start(), fine('one'));
  });
});
