import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeFolderSync } from '../../../../test/temporary-folder.js';

const root = path.join(fileURLToPath(import.meta.url), '../../../../..');

describe('bin/pawl.js, before the program is loaded', () => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'pawl-bin-'));
  const start = path.join(scratch, 'bin', 'pawl.js');
  cpSync(path.join(root, 'packages/pawl/bin'), path.join(scratch, 'bin'), { recursive: true });
  cpSync(path.join(root, 'package.json'), path.join(scratch, 'package.json'));
  after(() => removeFolderSync(scratch));

  const caches = path.join(scratch, 'caches');
  const env = { ...process.env, XDG_CACHE_HOME: caches };
  const run = (...words: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, words, {
      encoding: 'utf8',
      env,
    });
    return { status, stdout, stderr };
  };

  for (const flag of ['--version', '-V']) {
    it(`answers ${flag} with the version of the package, without a build`, () => {
      const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
      assert.deepEqual(run(start, flag), { status: 0, stdout: `${version}\n`, stderr: '' });
    });
  }

  it('ends with 141 when whoever reads the version went away', () => {
    const reader = 'exec 0<&-; echo gone >&3'; // the version is asked for once the reader has closed its end
    const asker = 'read line <&3; "$@"; echo $? >&2';
    // Opened before both of them begin: what a pipe holds is lost when nobody has it open.
    const fifo = path.join(scratch, 'fifo');
    spawnSync('mkfifo', [fifo]);
    const { stderr } = spawnSync(
      'bash',
      [
        '-c',
        `exec 3<>${fifo}; { ${asker}; } | { ${reader}; }`,
        'bash',
        process.execPath,
        start,
        '--version',
      ],
      { encoding: 'utf8', env },
    );
    assert.equal(stderr, '141\n');
  });

  it('says how to build a copy that is not built, and ends with 78', () => {
    const { status, stdout, stderr } = run(start, 'sessions');
    assert.equal(status, 78);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /^pawl: this copy is not built: dist\/cli\.cjs is missing\. Run `npm ci` or /,
    );
  });

  it('says which Node it needs on one that is too old, and ends with 78', () => {
    const old = path.join(scratch, 'old.cjs');
    writeFileSync(old, "Object.defineProperty(process.versions, 'node', { value: '20.18.9' });\n");
    const { status, stderr } = run('--require', old, start, '--version');
    assert.equal(status, 78);
    assert.match(stderr, /^pawl: Node 20\.19 or newer is needed; this is v/);
  });

  it('hands everything else to the program', () => {
    mkdirSync(path.join(scratch, 'dist'));
    writeFileSync(
      path.join(scratch, 'dist', 'cli.cjs'),
      '//fake\nconsole.log(process.argv.slice(2).join());\n',
    );
    assert.deepEqual(run(start, '--version', '--json'), {
      status: 0,
      stdout: '--version,--json\n',
      stderr: '',
    });
    assert.ok(
      existsSync(path.join(caches, 'pawl')),
      'compiled code is kept here, not in the home of who tests',
    );
    rmSync(path.join(scratch, 'dist'), { recursive: true });
  });
});
