import '../own-process.js';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { DEFAULT_SCHEMA, load } from 'js-yaml';
import { array, looseObject, optional, parse, record, string } from 'valibot';
import { bin, makePlace, makeServed, root, startPawl } from '../../packages/pawl/test/e2e/pawl.js';
import { until } from '../until.js';

/** The files of `integrations/`, run as their hosts run them. */

const folder = path.join(root, 'integrations');
const read = (...names: readonly string[]): string =>
  readFileSync(path.join(folder, ...names), 'utf8');
const { version } = JSON.parse(readFileSync(path.join(root, 'packages/pawl/package.json'), 'utf8'));

const loadYaml = (text: string): unknown => load(text, { schema: DEFAULT_SCHEMA });

// ---- The action ----

const actionShape = looseObject({
  inputs: record(string(), looseObject({ default: string() })),
  runs: looseObject({
    steps: array(
      looseObject({ shell: string(), run: string(), env: optional(record(string(), string())) }),
    ),
  }),
});

const action = parse(actionShape, loadYaml(read('review', 'action.yml')));

/** The value of `${{ inputs.NAME }}` or `${{ github.event.PATH }}`, as GitHub has it. */
const evaluate = (text: string, inputs: Record<string, string>, event: unknown): string =>
  text.replace(/\$\{\{ (\S+) \}\}/g, (_, name: string) => {
    if (name.startsWith('inputs.')) return inputs[name.slice('inputs.'.length)] ?? '';
    let value: unknown = { github: { event } };
    for (const key of name.split('.')) value = (value as Record<string, unknown>)[key];
    return String(value);
  });

/** Runs the steps one after another, as the runner of GitHub does; ends with the first that fails. */
const runAction = async (
  place: { readonly workspace: string; readonly environment: NodeJS.ProcessEnv },
  event: unknown,
): Promise<{ readonly code: number; readonly output: string }> => {
  const inputs = Object.fromEntries(
    Object.entries(action.inputs).map(([name, input]) => [name, input.default]),
  );
  let output = '';
  for (const [at, step] of action.runs.steps.entries()) {
    assert.equal(step.shell, 'bash');
    const script = path.join(place.workspace, '..', `step-${at}.sh`);
    writeFileSync(script, step.run);
    const own = Object.entries(step.env ?? {}).map(([name, text]) => [
      name,
      evaluate(text, inputs, event),
    ]);
    const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      cwd: place.workspace,
      env: { ...place.environment, ...Object.fromEntries(own) },
    });
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (output += text));
    const [code] = await once(child, 'close');
    if (code !== 0) return { code, output };
  }
  return { code: 0, output };
};

const program = (file: string, script: string): void => {
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
};

const finding = {
  file: 'a.ts',
  line: 1,
  severity: 'warning',
  comment: '100% wrong:\n::error::it divides by zero',
};
const review = JSON.stringify({ summary: 'One finding.', findings: [finding] });

/** A repository with a pull request, and programs that install what is here already. */
const makePullRequest = async (context: Parameters<typeof makeServed>[0]) => {
  const command = { command: 'git log --format=%s | head -1' };
  const place = await makeServed(context, [
    { type: 'message', parts: [{ type: 'call', id: 'c1', name: 'bash', input: command }] },
    { type: 'message', parts: [{ type: 'text', text: review }] },
  ]);
  const programs = path.join(place.folder, 'bin');
  mkdirSync(programs);
  program(
    path.join(programs, 'npm'),
    `echo "$@" > ${place.folder}/npm-words
printf '#!/bin/sh\\nexec ${process.execPath} ${bin} "$@"\\n' > ${programs}/pawl && chmod +x ${programs}/pawl`,
  );
  program(path.join(programs, 'sudo'), 'exec "$@"');
  const git = (...words: readonly string[]): string =>
    execFileSync('git', words, {
      cwd: place.workspace,
      encoding: 'utf8',
      env: { ...process.env, HOME: place.home },
    }).trim();
  git('init', '-q');
  git('config', 'user.email', 'ada@example.org');
  git('config', 'user.name', 'Ada');
  const commit = (text: string): string => {
    writeFileSync(path.join(place.workspace, 'a.ts'), text);
    git('add', '-A');
    git('commit', '-qm', `Write ${text}`);
    return git('rev-parse', 'HEAD');
  };
  const base = commit('1 / 1');
  const event = { pull_request: { base: { sha: base }, head: { sha: commit('1 / 0') } } };
  Object.assign(place.environment, {
    PATH: `${programs}:${path.dirname(process.execPath)}:/usr/bin:/bin`,
    GITHUB_ACTION_PATH: path.join(folder, 'review'),
    GITHUB_STEP_SUMMARY: path.join(place.folder, 'summary.md'),
  });
  return { place, event };
};

test('the action reviews a pull request: commands run, findings become annotations', async (context) => {
  const { place, event } = await makePullRequest(context);
  const { code, output } = await runAction(place, event);
  assert.equal(code, 0, output);
  assert.equal(output, '::warning file=a.ts,line=1::100%25 wrong:%0A::error::it divides by zero\n');
  assert.match(
    readFileSync(`${place.folder}/summary.md`, 'utf8'),
    /One finding\.\n\n- `a\.ts:1` 100%/,
  );
  assert.match(readFileSync(`${place.folder}/npm-words`, 'utf8'), /--global .*pawl@latest/);
  const [first, second] = place.server.requests.map(({ body }) => JSON.stringify(body));
  assert.match(first ?? '', /-1 \/ 1.*\+1 \/ 0/); // the diff
  assert.match(second ?? '', /Write 1 \/ 0/); // what the command printed
});

test('the action says what is missing where the base of the pull request is not there', async (context) => {
  const { place, event } = await makePullRequest(context);
  event.pull_request.base.sha = '0'.repeat(40);
  const { code, output } = await runAction(place, event);
  assert.equal(code, 1);
  assert.match(output, /^::error::The base of the pull request is missing\..*"fetch-depth: 0"/m);
});

test('the workflow of the action has ten lines', () => {
  const [, workflow = ''] = /```yaml\n([\s\S]*?)```/.exec(read('README.md')) ?? [];
  assert.ok(workflow.trim().split('\n').length <= 10);
  assert.ok(loadYaml(workflow) !== undefined);
});

// ---- The feature ----

test('the feature asks for Node where there is none, and installs the wanted version', (context) => {
  const place = makePlace(context);
  const feature = JSON.parse(read('devcontainer', 'src', 'pawl', 'devcontainer-feature.json'));
  assert.deepEqual([feature.id, feature.version], ['pawl', version]);
  const install = path.join(folder, 'devcontainer/src/pawl/install.sh');
  const run = (PATH: string): string => {
    try {
      const env = { PATH, VERSION: feature.options.version.default };
      return execFileSync('/bin/sh', [install], { env, encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      return String(error);
    }
  };
  const programs = path.join(place.folder, 'bin');
  mkdirSync(programs);
  assert.match(run(programs), /add "ghcr\.io\/devcontainers\/features\/node:1"/);
  program(path.join(programs, 'npm'), 'echo "npm $@"');
  program(path.join(programs, 'pawl'), 'echo "pawl $@"');
  assert.match(run(programs), /^npm install --global .* pawl@latest\npawl --version\n$/);
});

// ---- The entry of the registry ----

test('an editor starts the entry of the registry, and gets an answer', async (context) => {
  const entry = JSON.parse(read('acp', 'pawl', 'agent.json'));
  assert.match(entry.id, /^[a-z][a-z0-9-]*$/);
  assert.deepEqual(Object.keys(entry.distribution), ['npx']);
  assert.deepEqual([entry.version, entry.distribution.npx.package], [version, `pawl@${version}`]);
  const running = startPawl(makePlace(context), entry.distribution.npx.args, null);
  const params = { protocolVersion: 1, clientCapabilities: {} };
  const request = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
  running.child.stdin?.write(`${JSON.stringify(request)}\n`);
  await until('it answers', () => running.stdout().includes('\n'));
  assert.equal(JSON.parse(running.stdout()).result.protocolVersion, 1);
  running.child.stdin?.end();
  assert.equal((await running.ended).code, 0);
});
