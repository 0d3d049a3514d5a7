import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import { openSession, type Session, type SessionOptions } from '@pawl/agent/session/create-agent';
import { createAsker } from '@pawl/ask/create-asker';
import { environments, memoryRuns, program } from '../../../../test/kit/ask/ask-stage.js';
import { type WireName, wires } from '../../../../test/kit/models/wires.js';
import { ok, tool } from '../../../../test/kit/runtime/stage.js';
import {
  type HostileReply,
  startHostileServer,
  USAGE_FORMS,
  type UsageForm,
} from '../../../../test/servers/hostile-usage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseRows, isDeep } from '../../../../test/tier.js';
import { createExploreTool } from '../../src/sessions/explore-tool.js';

/**
 * A limit holds whatever a server says of its usage: never above it in dollars, by what was truly
 * charged, and by one reply at most in tokens. The deep tier runs every combination.
 */

const LIMITS = { usd: { usd: 0.05 }, tokens: { tokens: 12_000 } } as const;

const WAYS = ['rounds', 'retries', 'tasks', 'ask', 'summaries', 'resumes'] as const;
type Way = (typeof WAYS)[number];

const REQUESTS_MAX = 60;
const PROMPTS_MAX = 30;
const EXPLORE = { paths: ['big.txt'], question: 'how many lines?' };

/** What the model does: it never ends by itself, but where the way needs answers. */
const answerFor =
  (way: Way) =>
  (body: string, number: number): HostileReply => {
    const hasTools = body.includes('"note"');
    if (number > REQUESTS_MAX) return { text: 'enough' };
    if (way === 'ask' && !hasTools) return { text: program('let lines = 1;') };
    if (way === 'ask') return { call: { name: 'explore', input: EXPLORE } };
    if (way === 'summaries' || way === 'resumes') return { text: 'a long answer '.repeat(40) };
    // sessions of the tool `task` have no tool of that name
    if (way === 'tasks' && /"name":"task"/.test(body))
      return { call: { name: 'task', input: { purpose: 'look', prompt: 'look around' } } };
    const isCut = way === 'retries' && number % 2 === 0;
    return { call: { name: 'note', input: { text: `number ${number}` } }, isCut };
  };

type Ran = {
  readonly usd: number;
  readonly tokens: number;
  readonly largest: number;
  readonly requests: number;
  readonly warnings: readonly string[];
};

const runOnce = async (
  context: TestContext,
  wireName: WireName,
  form: UsageForm,
  way: Way,
  limits: NonNullable<SessionOptions['settings']>['limits'],
): Promise<Ran> => {
  const wire = wires.find(({ name }) => name === wireName);
  assert.ok(wire !== undefined);
  const server = await startHostileServer(wireName, form, answerFor(way));
  const model = wire.model(server.url);
  const workspace = temporaryFolder(context, 'hostile');
  writeFileSync(path.join(workspace, 'big.txt'), 'line\n'.repeat(9));
  const warnings: string[] = [];
  const runs = memoryRuns();
  const explore = createExploreTool(async () => ({
    journals: runs,
    asker: createAsker({ model, journals: runs, environments }),
  }));
  const options = {
    workspace,
    journals: memoryJournals(),
    model,
    tools: [tool('note', () => ok('noted')), ...(way === 'ask' ? [explore] : [])],
    tasks: way === 'tasks',
    checkpoints: false,
    sandbox: 'off', // a look for one starts programs
    report: () => undefined,
    settings: { limits: { rounds: 0, ...limits }, retrySchedule: { kind: 'list', delaysMs: [1] } },
    watcher: ({ actions }: { readonly actions: readonly object[] }) => {
      for (const action of actions)
        if ('kind' in action && action.kind === 'usage' && 'text' in action)
          warnings.push(String(action.text));
    },
  } as const;
  let session: Session = await openSession(options);
  for (let prompts = 0; prompts < PROMPTS_MAX; prompts++) {
    const { reason } = await session.prompt('go on');
    if (reason.kind === 'budget' || server.requests.length > REQUESTS_MAX) break;
    if (way === 'summaries') {
      await session.send({ type: 'CompactRequested' });
      await session.idle();
    }
    if (way !== 'resumes') continue;
    await session.close();
    const { settings: _, ...others } = options;
    session = await openSession({ ...others, resume: session.id });
  }
  await session.close();
  await server.close();
  return {
    usd: server.requests.reduce((sum, { usd }) => sum + usd, 0),
    tokens: server.requests.reduce((sum, { tokens }) => sum + tokens, 0),
    largest: Math.max(...server.requests.map(({ tokens }) => tokens)),
    requests: server.requests.length,
    warnings,
  };
};

const READABLE: readonly UsageForm[] = ['honest', 'doubled'];

const isNamed = (wire: WireName, form: UsageForm, way: Way, requests: number): boolean => {
  if (form === 'late') return wire === 'anthropic'; // nothing is read behind its end
  // where every second request is cut off, no whole reply is without usage
  if (form === 'everySecond') return way !== 'retries' && requests > 1;
  return !READABLE.includes(form);
};

/** All forms on all wires with rounds; the other ways with the forms that fell. */
const isChosen = (form: UsageForm, way: Way, wire: WireName): boolean => {
  if (isDeep || way === 'rounds') return true;
  const turn = WAYS.indexOf(way) + USAGE_FORMS.indexOf(form);
  const forms = way === 'ask' ? ['missing'] : ['honest', 'missing', 'half']; // its program is slow
  return forms.includes(form) && wires[turn % 4]?.name === wire;
};

const DIMENSIONS = ['usd', 'tokens'] as const;

for (const { name: wire } of wires)
  for (const way of WAYS)
    for (const form of USAGE_FORMS)
      for (const dimension of chooseRows(DIMENSIONS, () => `${wire} ${way} ${form}`)) {
        if (!isChosen(form, way, wire)) continue;
        test(`${wire}, usage ${form}, ${way}: a limit in ${dimension} holds`, async (context) => {
          const ran = await runOnce(context, wire, form, way, LIMITS[dimension]);
          const { usd, tokens, largest, requests, warnings } = ran;
          context.diagnostic(`${requests} requests, $${usd.toFixed(4)}, ${tokens} tokens`);
          assert.ok(requests >= 1 && requests <= REQUESTS_MAX, `${requests} requests`);
          if (dimension === 'usd') assert.ok(usd <= LIMITS.usd.usd + 1e-9, `$${usd} were charged`);
          else assert.ok(tokens <= LIMITS.tokens.tokens + largest, `${tokens} tokens`);
          const named = warnings.filter((text) => text.includes('reports no usage'));
          assert.equal(
            named.length,
            isNamed(wire, form, way, requests) ? 1 : 0,
            warnings.join('\n'),
          );
        });
      }

test('control: a server that says the same twice is believed once', async (context) => {
  const once = await runOnce(context, 'anthropic', 'honest', 'rounds', LIMITS.tokens);
  const twice = await runOnce(context, 'anthropic', 'doubled', 'rounds', LIMITS.tokens);
  assert.equal(twice.requests, once.requests);
  assert.ok(once.requests > 2, `${once.requests} requests`);
});
