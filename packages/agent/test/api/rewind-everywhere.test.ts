import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  type Answer,
  callTools,
  command,
  ok,
  rawCall,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { steps } from '../../src/journal/steps.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { Message } from '../../src/machine/message.js';
import { createAgent, type Session } from '../../src/session/create-agent.js';
import { CannotRewind } from '../../src/session/rewind.js';

/**
 * Random sessions with follow-ups, steers, cancels, denials, kills and rewinds. For each entry: what
 * a rewind to it tells of a call is what was told before, and the model believes in no file that is
 * gone. PAWL_COUNT=200 for more, PAWL_SEED repeats.
 */

const COUNT = countCases(2);
const ACTIONS = 6;
const KINDS = ['meanwhile', 'meanwhile', 'cancel', 'kill', 'rewind', 'rewind', 'prompt', 'prompt'];

const createRandom = (seed: number): ((below: number) => number) => {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
};

/** What the session wrote, and what its conversation says of it. */
const CREATED = /Created (f\d+\.txt)/g;

const partsOf = (messages: readonly Message[]): readonly { type: string; text?: string }[] =>
  messages.flatMap(({ parts }) => parts as readonly { type: string; text?: string }[]);

/**
 * Files that are gone, although the messages say that they were created, and no note behind it
 * names them again. A long note names ten and says how many more there are: so many may be gone.
 */
const wronglyBelieved = (
  messages: readonly Message[],
  notes: readonly string[],
  workspace: string,
): readonly string[] => {
  const believed = new Set<string>();
  let unnamed = 0;
  const texts = [...partsOf(messages).map(({ type, text = '' }) => ({ type, text }))];
  for (const { type, text } of [...texts, ...notes.map((text) => ({ type: 'note', text }))]) {
    if (type === 'result') for (const [, name = ''] of text.matchAll(CREATED)) believed.add(name);
    if (type !== 'text' && type !== 'note') continue;
    for (const [name] of text.matchAll(/f\d+\.txt/g)) believed.delete(name);
    unnamed += Number(/f\d+\.txt and (\d+) more/.exec(text)?.[1] ?? 0);
  }
  return [...believed].filter((name) => !existsSync(path.join(workspace, name))).slice(unnamed);
};

const resultsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'result' ? [`${part.callId}: ${part.text}`] : [])),
  );

class Stage {
  readonly context: TestContext;
  readonly random: (below: number) => number;
  readonly workspace: string;
  readonly journals: ReturnType<typeof fileJournals>;
  readonly model = testModel();
  #session: Session | null = null;
  /** Of the tool `gate`, whose call runs until it is let go. */
  #reached: () => void = () => undefined;
  #release: () => void = () => undefined;
  #calls = 0;

  constructor(context: TestContext, seed: number) {
    this.context = context;
    this.random = createRandom(seed);
    const folder = realpathSync(temporaryFolder(context, 'rewind-everywhere'));
    this.workspace = path.join(folder, 'work');
    mkdirSync(this.workspace);
    process.env.XDG_STATE_HOME = path.join(folder, 'state');
    this.journals = fileJournals({ folder: path.join(folder, 'state', 'pawl') });
  }

  get session(): Session {
    assert.ok(this.#session !== null);
    return this.#session;
  }

  async open(resume?: string): Promise<void> {
    const gate = tool(
      'gate',
      async (_input, { signal }) => {
        await new Promise<void>((resolve) => {
          this.#release = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
          this.#reached();
        });
        return ok('the gate was open');
      },
      { ...command, effect: 'pure' },
    );
    const risky = tool('risky', () => ok('it ran'), command);
    const agent = createAgent({
      model: this.model,
      journals: this.journals,
      moreTools: [gate, risky],
      report: () => undefined,
    });
    this.#session = await agent.open({
      workspace: this.workspace,
      sandbox: 'off',
      preset: 'careful',
      onApproval: ({ input }) =>
        !('risk' in input) || this.random(2) === 0 ? 'allow' : { deny: `because ${this.#calls}` },
      ...(resume === undefined ? {} : { resume }),
    });
  }

  #write() {
    const name = `f${++this.#calls}.txt`;
    return rawCall(`c${this.#calls}`, 'write', { path: name, content: `${name}\n` });
  }

  /** Calls of one reply; with a gate, the batch waits in the middle. */
  #batch(hasGate: boolean): Answer {
    const first = this.#write();
    const gate = hasGate ? [rawCall(`c${++this.#calls}`, 'gate')] : [];
    const risky = this.random(3) === 0 ? [rawCall(`c${++this.#calls}`, 'risky', { risk: 1 })] : [];
    return callTools(first, ...gate, ...risky, this.#write());
  }

  async #untilGate(text: string): Promise<void> {
    const reached = new Promise<void>((resolve) => {
      this.#reached = resolve;
    });
    await this.session.send({ type: 'UserInput', text, mode: 'steer' });
    await reached;
  }

  async act(index: number): Promise<void> {
    const text = `prompt ${index}`;
    switch (KINDS[this.random(KINDS.length)]) {
      case 'meanwhile': {
        const mode = this.random(2) === 0 ? 'followUp' : 'steer';
        this.model.answers = [this.#batch(true), say('first'), this.#batch(false), say('second')];
        await this.#untilGate(text);
        await this.session.send({ type: 'UserInput', text: `meanwhile ${index}`, mode });
        this.#release();
        break;
      }
      case 'cancel':
        this.model.answers = [this.#batch(true)];
        await this.#untilGate(text);
        await this.session.send({ type: 'CancelTurn' });
        break;
      case 'kill': {
        // what a crash in the middle of a batch leaves behind
        this.model.answers = [this.#batch(true), say('after the crash')];
        await this.#untilGate(text);
        const { seq } = await this.journals.peek(this.session.id);
        const killed = `${this.session.id.slice(0, 90)}-k${index}`;
        await this.journals.fork(this.session.id, seq, killed, Date.now());
        await this.session.close();
        this.#reached = () => this.#release(); // a call that only reads runs again
        await this.open(killed);
        break;
      }
      case 'rewind':
        return this.#rewind();
      default:
        this.model.answers = [this.#batch(false), say('done')];
        await this.session.prompt(text);
    }
    await this.session.idle();
    await this.session.timeline(); // the checkpoints are taken
  }

  async #rewind(): Promise<void> {
    const { seq } = await this.journals.peek(this.session.id);
    const kind = this.random(3);
    const only = kind === 0 ? {} : kind === 1 ? { conversation: false } : { files: false };
    try {
      await this.session.rewind({ at: this.random(seq + 1), ...only });
    } catch (error) {
      if (!(error instanceof CannotRewind)) throw error;
    }
    const { conversation, notes } = (await this.session.state()).session;
    const wrong = wronglyBelieved(messagesOf(conversation), notes, this.workspace);
    assert.deepEqual(wrong, [], 'they are gone, and no note says so');
  }
}

/** All that a session told of its calls while it ran. */
const toldIn = async ({ journals, session }: Stage): Promise<ReadonlySet<string>> => {
  const { header } = await journals.peek(session.id);
  const told = new Set<string>();
  for await (const { state } of steps(header, journals.read(session.id)))
    for (const result of resultsOf(messagesOf(state.session.conversation))) told.add(result);
  return told;
};

/** A rewind of conversation and files to each entry, and forward again. */
const checkEntries = async (stage: Stage): Promise<{ entries: number; results: number }> => {
  const { session, journals, workspace } = stage;
  const { seq: last } = await journals.peek(session.id);
  const told = await toldIn(stage);
  let results = 0;
  for (let at = 0; at <= last; at++) {
    const { to } = await session.rewind({ at, force: true });
    assert.ok(to <= at, `${to} is not behind ${at}`);
    const { conversation, notes } = (await session.state()).session;
    const messages = messagesOf(conversation);
    for (const result of resultsOf(messages)) {
      results += 1;
      assert.ok(told.has(result), `at ${at}, nobody has told: ${result}`);
    }
    assert.deepEqual(wronglyBelieved(messages, notes, workspace), [], `at ${at}, they are gone`);
  }
  return { entries: last + 1, results };
};

for (let number = 0; number < COUNT; number++) {
  const seed = SEED + number;
  test(`session ${number}: each entry leads where the conversation is whole`, async (context) => {
    const stage = new Stage(context, seed);
    await stage.open();
    for (let index = 0; index < ACTIONS; index++) await stage.act(index);
    const { entries, results } = await checkEntries(stage);
    context.diagnostic(`PAWL_SEED=${seed}: ${entries} entries, ${results} results`);
    assert.ok(entries > 1);
    await stage.session.close();
  });
}
