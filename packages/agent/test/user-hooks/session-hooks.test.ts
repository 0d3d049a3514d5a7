import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import {
  type CommandHook,
  createSessionHooks,
  type SessionHook,
} from '../../src/extensions/hooks/session-hooks.js';
import type { HookVerdict } from '../../src/policy/judged-call.js';
import type { HookMoment } from '../../src/ports/hooks.js';

// Real programs, as hooks that behave, lie, hang, flood and fork.

const makeStage = (t: TestContext) => {
  const folder = temporaryFolder(t, 'user-hooks');
  const environment = {
    ...process.env,
    HOME: folder,
    XDG_STATE_HOME: path.join(folder, '.state'),
    XDG_CONFIG_HOME: path.join(folder, '.config'),
    ANTHROPIC_API_KEY: 'sk-ant-secret-of-the-test',
    PLAIN: 'plain',
  };
  const sandbox = createSessionSandbox({ environment });
  t.after(() => sandbox.close());
  const place = {
    workspace: folder,
    environment,
    sandbox,
    sessionId: 'S1',
    startedBy: 'user' as const,
  };
  const hook = (command: CommandHook['command'], more: Partial<CommandHook> = {}): CommandHook => ({
    name: 'guard',
    on: ['before-tool'],
    tools: null,
    command,
    timeoutMs: 60_000,
    sandbox: null,
    onFailure: null,
    folder: null,
    ...more,
  });
  const run = async (
    hooks: readonly SessionHook[],
    moment: HookMoment = 'before-tool',
    facts = { tool_name: 'bash', tool_input: { command: 'ls' } },
    signal = new AbortController().signal,
  ): Promise<readonly HookVerdict[]> =>
    (await createSessionHooks(hooks, place)?.run(moment, facts, signal)) ?? [];
  return { folder, place, hook, run };
};

test('a hook answers by its exit code, or with a JSON object', async (t) => {
  const { hook, run } = makeStage(t);
  const said = async (command: string): Promise<Omit<HookVerdict, 'hook'>> => {
    const [{ hook: _, ...verdict } = { hook: '', decision: 'allow' as const }] = await run([
      hook(command),
    ]);
    return verdict;
  };
  assert.deepEqual(await said('true'), { decision: 'allow' });
  assert.deepEqual(await said('echo looks fine'), { decision: 'allow' });
  assert.deepEqual(await said('echo not on Friday >&2; exit 2'), {
    decision: 'deny',
    reason: 'not on Friday',
  });
  assert.deepEqual(await said('exit 2'), { decision: 'deny' });
  assert.deepEqual(await said(`echo '{"decision":"block","reason":"no"}'`), {
    decision: 'deny',
    reason: 'no',
  });
  assert.deepEqual(await said(`echo '{"decision":"ask","note":"look","other":1}'`), {
    decision: 'ask',
    note: 'look',
  });
  const failure = (fault: string) => ({ decision: 'deny', reason: fault, fault });
  assert.deepEqual(
    await said('echo broken >&2; exit 1'),
    failure('it ended with exit code 1: broken'),
  );
  assert.deepEqual(
    await said('echo "{not json"'),
    failure('its output begins like a JSON object and is none'),
  );
  assert.deepEqual(
    await said(`echo '{"decision":"perhaps"}'`),
    failure('its decision is none of allow, ask and deny'),
  );
  assert.deepEqual(
    await said(`echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`),
    failure('its decision is in hookSpecificOutput, not in decision'),
    'as hooks of other agents print it',
  );
  assert.deepEqual(await said('kill -9 $$'), failure('it was ended by a signal'));
});

test('a hook reads one JSON object, and no secret', async (t) => {
  const { folder, hook, run } = makeStage(t);
  const seen = path.join(folder, 'seen');
  await run([hook(`cat > '${seen}'; env >> '${seen}'`)]);
  const text = readFileSync(seen, 'utf8');
  assert.match(text, /"hook_event_name":"before-tool","hook":"guard","session_id":"S1"/);
  assert.match(text, /"tool_name":"bash","tool_input":\{"command":"ls"\}/);
  assert.match(text, /PLAIN=plain\n/);
  assert.match(text, /PAWL_HOOK=guard/);
  assert.doesNotMatch(text, /sk-ant-secret/);
});

/** The processes with exactly this command line. */
const processesOf = (mark: string): readonly number[] =>
  execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^ *(\d+) (.*)$/.exec(line))
    .flatMap((found) => (found?.[2] === mark ? [Number(found[1])] : []));
const alive = (mark: string): boolean => processesOf(mark).length > 0;

/** Ends what is left of it with the test: it would hold the test's output open, and its end up. */
const endWith = (t: TestContext, mark: string): void =>
  t.after(() => {
    for (const pid of processesOf(mark)) process.kill(pid, 'SIGKILL');
  });

test('a hook that hangs, floods or forks is ended in time, with its processes', async (t) => {
  const { hook, run } = makeStage(t);
  const mark = `sleep 31${process.pid}`;
  endWith(t, mark);
  const [slow] = await run([hook(`${mark} & ${mark}`, { timeoutMs: 300 })]);
  assert.equal(slow?.fault, 'it took longer than 0.3 s and was stopped');
  assert.equal(slow?.decision, 'deny');
  await until('its children end with it', () => !alive(mark));

  const [loud] = await run([hook('head -c 100000000 /dev/zero')]);
  assert.match(loud?.fault ?? '', /printed more than 65536 bytes/);
  const [whining] = await run([hook('head -c 100000000 /dev/zero >&2; exit 2')]);
  assert.equal(whining?.decision, 'deny');
  assert.ok((whining?.reason ?? '').length < 5_000);

  // Output that a process of its own session holds open does not hold up the answer.
  const escaped = `sleep 7${process.pid}`;
  endWith(t, escaped);
  const [forking] = await run([hook(`setsid ${escaped} & echo '{"note":"n"}'`)]);
  assert.deepEqual(forking, { hook: 'guard', decision: 'allow', note: 'n' });

  const large = { tool_name: 'bash', tool_input: { command: 'x'.repeat(5_000_000) } };
  assert.deepEqual(await run([hook('exit 0')], 'before-tool', large), [
    { hook: 'guard', decision: 'allow' },
  ]);
});

test('an aborted hook ends at once, and its declaration says what follows', async (t) => {
  const { hook, run } = makeStage(t);
  const abortion = new AbortController();
  const facts = { tool_name: 'bash', tool_input: { command: 'ls' } };
  const mark = `sleep 32${process.pid}`;
  endWith(t, mark);
  const running = run([hook(mark, { onFailure: 'allow' })], 'before-tool', facts, abortion.signal);
  await until('the hook runs', () => alive(mark));
  abortion.abort();
  assert.deepEqual(await running, [{ hook: 'guard', decision: 'allow', fault: 'it was stopped' }]);
  await until('it has ended', () => !alive(mark));
});

test('hooks run in order up to the first that denies, and only for their tools', async (t) => {
  const { hook, run } = makeStage(t);
  const names = async (tool: string): Promise<readonly string[]> =>
    (
      await run(
        [
          hook('true', { name: 'all' }),
          hook('true', { name: 'servers', tools: ['mcp__*'] }),
          hook('exit 2', { name: 'shell', tools: ['bash', 'b?sh.*'] }),
          hook('true', { name: 'never', tools: ['bash'] }),
        ],
        'before-tool',
        { tool_name: tool, tool_input: { command: '' } },
      )
    ).map((verdict) => verdict.hook);
  assert.deepEqual(await names('bash'), ['all', 'shell']);
  assert.deepEqual(await names('mcp__docs__search'), ['all', 'servers']);
  assert.deepEqual(await names('read'), ['all']);
});

test('names of tools: a star stands for any text, and many stars cost no time', (t) => {
  const { place } = makeStage(t);
  const wants = (pattern: string, tool: string): boolean | undefined =>
    createSessionHooks(
      [{ name: 'x', on: 'before-tool', tools: [pattern], run: () => undefined }],
      place,
    )?.wants('before-tool', tool);
  const fitting = [
    '*',
    '**',
    'mcp__*',
    '*__find',
    'mcp__*__find',
    '*d*',
    'm*p*docs*f*d',
    'mcp__docs__find',
  ];
  const other = [
    '',
    'mcp',
    '*docs',
    'docs*',
    'mcp__docs__*__find',
    'm*find*d',
    'mcp__docs__find*d',
    'MCP*',
  ];
  for (const pattern of fitting) assert.equal(wants(pattern, 'mcp__docs__find'), true, pattern);
  for (const pattern of other) assert.equal(wants(pattern, 'mcp__docs__find'), false, pattern);
  const started = performance.now();
  assert.equal(wants(`${'*a'.repeat(20)}*b`, `mcp__${'a'.repeat(50)}`), false);
  assert.ok(performance.now() - started < 2_000);
});

test('half a character in a text of a hook never reaches a provider, which would refuse every request', async (t) => {
  const { run } = makeStage(t);
  const note = `${'x'.repeat(3_999)}\u{1f600}`;
  const [cutThere] = await run([
    { name: 'x', on: 'before-tool', run: () => ({ note: `${note}more` }) },
  ]);
  assert.equal(cutThere?.note, `${'x'.repeat(3_999)}…`);
  const [lying] = await run([
    { name: 'x', on: 'before-tool', run: () => ({ decision: 'deny', reason: 'a\ud83db' }) },
  ]);
  assert.equal(lying?.reason, 'a\ufffdb');
});

test('failing open or closed: before a tool closed, elsewhere open, as declared otherwise', async (t) => {
  const { hook, run } = makeStage(t);
  const decided = async (moment: HookMoment, more: Partial<CommandHook> = {}) =>
    (await run([hook('exit 1', { on: [moment], ...more })], moment))[0]?.decision;
  assert.equal(await decided('before-tool'), 'deny');
  assert.equal(await decided('before-tool', { onFailure: 'allow' }), 'allow');
  assert.equal(await decided('turn-end'), 'allow');
  assert.equal(await decided('turn-end', { onFailure: 'deny' }), 'deny');
  assert.equal(
    await decided('session-start', { onFailure: 'deny' }),
    'allow',
    'nothing can be denied there',
  );
  const [asking] = await run([hook(`echo '{"decision":"ask"}'`, { on: ['turn-end'] })], 'turn-end');
  assert.match(asking?.fault ?? '', /a meaning before a tool only/);
});

test('after a denial that means nothing the next hook is asked', async (t) => {
  const { hook, run } = makeStage(t);
  const on = ['session-start', 'session-end', 'ask-user', 'turn-end'] as const;
  const hooks = [hook('exit 2', { on }), hook('true', { on })];
  for (const moment of on)
    assert.equal((await run(hooks, moment)).length, moment === 'turn-end' ? 1 : 2, moment);
});

test('a sandboxed hook writes only where its level lets it, and never runs without the sandbox', async (t) => {
  const { folder, hook, run } = makeStage(t);
  const write = (name: string): string => `touch '${path.join(folder, name)}' || exit 3`;
  const [reading] = await run([hook(write('one'), { sandbox: 'read-only' })]);
  assert.equal(existsSync(path.join(folder, 'one')), false, JSON.stringify(reading));
  assert.equal(reading?.decision, 'deny');
  const [writing] = await run([hook(write('two'), { sandbox: 'workspace' })]);
  // Without bubblewrap on this machine the hook fails, and is not run some other way.
  assert.equal(
    existsSync(path.join(folder, 'two')),
    writing?.fault === undefined,
    JSON.stringify(writing),
  );
});

test('a program is named by its whole path, or found outside of the repository', async (t) => {
  const { hook, run } = makeStage(t);
  const [relative] = await run([hook(['./check.sh'])]);
  assert.match(relative?.fault ?? '', /relative path\. Write the whole path/);
  const [missing] = await run([hook(['no-such-program-here'])]);
  assert.match(missing?.fault ?? '', /there is no program no-such-program-here in PATH/);
  assert.deepEqual(await run([hook(['sh', '-c', 'exit 2'])]), [
    { hook: 'guard', decision: 'deny' },
  ]);
});

test('a function is a hook too: it may throw, hang, lie or say nothing', async (t) => {
  const { run } = makeStage(t);
  const said = async (work: () => unknown): Promise<HookVerdict | undefined> =>
    (
      await run([{ name: 'own', on: 'before-tool', timeoutMs: 50, run: work as () => undefined }])
    )[0];
  assert.deepEqual(await said(() => undefined), { hook: 'own', decision: 'allow' });
  assert.deepEqual(await said(async () => ({ decision: 'deny', reason: 'r' })), {
    hook: 'own',
    decision: 'deny',
    reason: 'r',
  });
  assert.equal((await said(() => 'yes'))?.fault, 'it returned no object');
  assert.equal(
    (await said(() => new Promise(() => undefined)))?.fault,
    'it took longer than 0.05 s',
  );
  const thrown = await said(() => {
    throw new Error('broken');
  });
  assert.deepEqual([thrown?.decision, thrown?.fault], ['deny', 'it failed: broken']);
});

test('a task has the hooks about its work, and none about the user', async (t) => {
  const { hook, place } = makeStage(t);
  const all = hook('true', {
    on: ['before-tool', 'after-tool', 'turn-end', 'ask-user', 'session-start'],
  });
  const hooks = createSessionHooks([all], { ...place, startedBy: 'task' });
  assert.deepEqual(
    (['before-tool', 'after-tool', 'turn-end', 'ask-user', 'session-start'] as const).map(
      (moment) => hooks?.wants(moment),
    ),
    [true, true, false, false, false],
  );
  assert.equal(createSessionHooks([], place), null);
});
