import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import {
  mutate,
  pick,
  type Random,
  randomFrom,
  rubbish,
} from '../../../../test/kit/agent/mutations.js';
import { samples } from '../../../../test/kit/agent/samples.js';
import {
  type Answer,
  callTools,
  command,
  completed,
  pieces,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import {
  fileJournals,
  type Input,
  type JournalStore,
  type ModelPiece,
  openSession,
  type Session,
  type ToolOutcome,
} from '../../src/index.js';

/**
 * Sessions of the library under what is malformed: events, outcomes of tools, pieces and usage of models.
 *
 * After each the session answers a prompt right; in the end it is closed, and opened again from its journal. An event
 * that turns out well-formed has its effect: then another session goes on.
 */

const COUNT = countCases(600);
/** Longer than any machine takes: a session that hangs is to be named, not waited for. */
const PATIENCE_MS = 120_000;
const SESSION_LENGTH = 40;

const inputs = samples.filter(
  ({ type }) =>
    !/^(Llm|Tool|Hook|Timer|Compaction|Usage|Resumed|TextD|Reason|Call|Policy)/.test(type),
);
const outcome: ToolOutcome = {
  status: 'ok',
  text: 'done',
  images: [{ mediaType: 'image/png', sha256: 'ab'.repeat(32) }],
  diff: '+a',
  usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4, costUsd: 0.5 },
};
const metadata = { test: { signature: 'sealed' } };
const reply = completed([
  { type: 'reasoning', text: 'hm', metadata },
  { type: 'text', text: 'so', metadata },
]);
const withCall = completed([{ ...rawCall('1', 'odd', { to: 'x' }), metadata }], 'toolUse');
const failure: ModelPiece = {
  type: 'failed',
  error: { kind: 'badRequest', message: 'no', retryable: false, retryAfterMs: null },
  usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4 },
};

const inTime = async <T>(what: string, work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} does not end`)), PATIENCE_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

/** A folder with sessions, one at a time; every tenth has its journal in files, and with it checks of each state. */
const stage = async (t: TestContext, random: Random) => {
  const folder = temporaryFolder(t, 'malformed');
  const files = fileJournals({ folder: path.join(folder, 'sessions') });
  const model = testModel();
  let returned: unknown = outcome;
  const odd = tool('odd', () => returned as ToolOutcome, { ...command, spends: 'yes' });
  let journals: JournalStore = memoryJournals();
  const open = (resume?: string): Promise<Session> =>
    openSession({
      journals,
      model,
      tools: [odd],
      workspace: folder,
      sandbox: 'off',
      settings: { maxRetries: 0, hooks: 'never' },
      ...(resume === undefined ? {} : { resume }),
      report: (fault) => assert.fail(fault),
    });
  const create = (): Promise<Session> => {
    journals = random() < 0.1 ? files : memoryJournals();
    return open();
  };
  return {
    model,
    create,
    reopen: open,
    tool(value: unknown): void {
      returned = value;
    },
  };
};

type Stage = Awaited<ReturnType<typeof stage>>;

const answers = async ({ model }: Stage, session: Session, what: string): Promise<void> => {
  model.answers = [say(`after ${what}`)];
  const turn = await inTime(`the prompt after ${what}`, session.prompt('still there?'));
  assert.deepEqual([turn.ok, turn.text], [true, `after ${what}`]);
  const { usage, contextTokens } = turn.state.session;
  for (const number of [...Object.values({ ...usage, estimated: 0, atLeast: 0 }), contextTokens])
    assert.ok(Number.isFinite(number) && number >= 0, `${what}: ${JSON.stringify(usage)}`);
};

/** Whether the event was refused. */
const sendEvent = async (session: Session, event: unknown): Promise<boolean> => {
  const sent = await inTime(
    'a send',
    session.send(event as Input).then(
      () => null,
      (thrown: unknown) => thrown,
    ),
  );
  if (sent === null) return false;
  assert.ok(sent instanceof Error && sent.message !== '', String(sent));
  return true;
};

/** A turn in which a tool or a model hands in something; it ends, however it ends. */
const oddTurn = async (on: Stage, session: Session, ...replies: Answer[]): Promise<void> => {
  on.model.answers = [...replies, say('end of it')];
  const turn = await inTime('an odd turn', session.prompt('go'));
  assert.equal(turn.state.name, 'WaitingForUserInput');
};

const handIn = async (
  on: Stage,
  session: Session,
  random: Random,
): Promise<'refused' | 'taken' | 'odd'> => {
  const wrong = (value: unknown): unknown =>
    random() < 0.05 ? rubbish(random) : mutate(random, value);
  const roll = random();
  if (roll < 0.5) {
    const { at: _, ...event } = pick(random, inputs);
    return (await sendEvent(session, wrong(event))) ? 'refused' : 'taken';
  }
  if (roll < 0.7) {
    on.tool(wrong(outcome));
    await oddTurn(on, session, callTools(rawCall('1', 'odd')));
  } else if (roll < 0.8) await oddTurn(on, session, pieces(wrong(withCall) as ModelPiece));
  else if (roll < 0.9)
    await oddTurn(on, session, pieces({ ...reply, usage: rubbish(random) } as ModelPiece));
  else await oddTurn(on, session, pieces(wrong(pick(random, [reply, failure])) as ModelPiece));
  return 'odd';
};

test('after random input a session answers the next prompt, and its journal gives the same state', async (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}, PAWL_COUNT=${COUNT}`);
  const random = randomFrom(SEED);
  const unhandled: unknown[] = [];
  const note = (thrown: unknown): void => void unhandled.push(thrown);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  const on = await stage(t, random);
  const counts = { refused: 0, taken: 0, odd: 0 };
  let session = await on.create();
  let age = 0;
  const finish = async (): Promise<void> => {
    await inTime('the end of a session', session.close());
    const { state: closed } = { state: await session.state() };
    const again = await on.reopen(session.id);
    const { session: resumed } = await again.state();
    assert.deepEqual(resumed.usage, closed.session.usage);
    await inTime('the end of a session that was resumed', again.close());
  };
  for (let index = 0; index < COUNT; index++) {
    const what = `${index} of seed ${SEED}`;
    const came = await handIn(on, session, random);
    counts[came] += 1;
    if (came !== 'taken') await answers(on, session, what);
    age += 1;
    if (came !== 'taken' && age < SESSION_LENGTH) continue;
    await finish();
    session = await on.create();
    age = 0;
  }
  await finish();
  assert.deepEqual(unhandled, []);
  assert.equal(({} as { readonly polluted?: string }).polluted, undefined);
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.refused > COUNT / 4 && counts.odd > COUNT / 3);
});
