import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';

/** What another process of the same user reads in /proc/PID/environ. */

const source = fileURLToPath(new URL('../../src/secrets/redactor.ts', import.meta.url));

/** A process that hides, or not; its own view of its variables, and that of a child that inherits none of them. */
const look = async (context: TestContext, call: string): Promise<Record<string, string>> => {
  const code = `
    import { spawnSync } from 'node:child_process';
    import { hideEnvironment } from ${JSON.stringify(source)};
    ${call}
    const read = "process.stdout.write(require('fs').readFileSync('/proc/' + process.ppid + '/environ', 'latin1'))";
    const seen = spawnSync(process.execPath, ['-e', read], { encoding: 'latin1', env: {} }).stdout;
    const copy = spawnSync(process.execPath, ['-p', 'process.env.ANTHROPIC_API_KEY'], { encoding: 'utf8' }).stdout;
    const { ANTHROPIC_API_KEY, PLAIN, NPM_TOKEN, HTTPS_PROXY } = process.env;
    console.log(JSON.stringify({ seen, copy: copy.trim(), ANTHROPIC_API_KEY, PLAIN, NPM_TOKEN, HTTPS_PROXY }));
  `;
  const program = await bundleProgram(context, { code });
  const environment = { ...variables, PATH: process.env.PATH };
  const { stdout, stderr } = spawnSync(process.execPath, [program], {
    encoding: 'utf8',
    env: environment,
  });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
};

const variables = {
  ANTHROPIC_API_KEY: 'sk-ant-hidden-key',
  PLAIN: 'seen-by-all',
  NPM_TOKEN: 'npm-hidden-token',
  HTTPS_PROXY: 'http://user:hidden-password@proxy.example:3128',
};

test('secrets are gone from /proc/PID/environ, and the program still has them', async (context) => {
  const { seen = '', copy, ...own } = await look(context, 'hideEnvironment(); hideEnvironment();');
  assert.deepEqual(own, variables);
  assert.equal(copy, variables.ANTHROPIC_API_KEY, 'what it passes on on purpose arrives');
  if (process.platform === 'linux') {
    assert.doesNotMatch(seen, /hidden/);
    assert.match(seen, /PLAIN=seen-by-all/);
  }
});

test('control: without it they are there', async (context) => {
  const { seen = '' } = await look(
    context,
    'for (const name of Object.keys(process.env)) if (/KEY|TOKEN/.test(name)) process.env[name] = String(process.env[name]);',
  );
  if (process.platform === 'linux')
    for (const secret of [/sk-ant-hidden-key/, /npm-hidden-token/]) assert.match(seen, secret);
});
