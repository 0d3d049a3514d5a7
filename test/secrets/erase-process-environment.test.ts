import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** What another process of the same user reads in /proc/PID/environ. */

const source = fileURLToPath(new URL('../../src/secrets/erase-process-environment.ts', import.meta.url));

/** A process that hides, or not; its own view of its variables, and that of a child that inherits none of them. */
const look = (call: string): Record<string, string> => {
  const script = `
    import { spawnSync } from 'node:child_process';
    import { hideEnvironment } from ${JSON.stringify(source)};
    ${call}
    const read = "process.stdout.write(require('fs').readFileSync('/proc/' + process.ppid + '/environ', 'latin1'))";
    const seen = spawnSync(process.execPath, ['-e', read], { encoding: 'latin1', env: {} }).stdout;
    const copy = spawnSync(process.execPath, ['-p', 'process.env.ANTHROPIC_API_KEY'], { encoding: 'utf8' }).stdout;
    const { ANTHROPIC_API_KEY, PLAIN, NPM_TOKEN, HTTPS_PROXY } = process.env;
    console.log(JSON.stringify({ seen, copy: copy.trim(), ANTHROPIC_API_KEY, PLAIN, NPM_TOKEN, HTTPS_PROXY }));
  `;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { encoding: 'utf8', env: { ...variables, PATH: process.env.PATH } },
  );
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
};

const variables = {
  ANTHROPIC_API_KEY: 'sk-ant-hidden-key',
  PLAIN: 'seen-by-all',
  NPM_TOKEN: 'npm-hidden-token',
  HTTPS_PROXY: 'http://user:hidden-password@proxy.example:3128',
};

test('secrets are gone from /proc/PID/environ, and the program still has them', () => {
  const { seen = '', copy, ...own } = look('hideEnvironment(); hideEnvironment();');
  assert.deepEqual(own, variables);
  assert.equal(copy, variables.ANTHROPIC_API_KEY, 'what it passes on on purpose arrives');
  if (process.platform === 'linux') {
    assert.doesNotMatch(seen, /hidden/);
    assert.match(seen, /PLAIN=seen-by-all/);
  }
});

test('control: without it they are there', () => {
  const { seen = '' } = look(
    'for (const name of Object.keys(process.env)) if (/KEY|TOKEN/.test(name)) process.env[name] = String(process.env[name]);',
  );
  if (process.platform === 'linux')
    for (const secret of [/sk-ant-hidden-key/, /npm-hidden-token/]) assert.match(seen, secret);
});
