import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import type { Stepped } from '@pawl/agent/ports/session';
import type { Session } from '@pawl/agent/session/create-agent';
import type { SessionFollower } from '@pawl/agent/session/follow';
import { Refused } from '../../src/detached/live-client.js';
import { createOwnRequests, WaitingServerQuestion } from '../../src/detached/own-requests.js';
import { createOwnInputs, followStream } from '../../src/detached/remote-session.js';

/** An answer to an MCP server counts for the question that was shown, and for no other one. */

const yes = { action: 'accept', content: {} } as const;
const asks = (message: string): ServerQuestion => ({
  server: 'local',
  message,
  asks: { kind: 'form', fields: [] },
});

const open = () => {
  const waiting = new WaitingServerQuestion(() => null);
  const { signal } = new AbortController();
  return { waiting, ask: (message: string) => waiting.ask(asks(message), signal) };
};

for (const { given, next } of [
  { given: 'another question', next: 'Delete it?' },
  { given: 'the same words once more', next: 'Publish it?' },
])
  test(`an answer that comes after ${given} is asked answers nothing`, async () => {
    const { waiting, ask } = open();
    const first = ask('Publish it?');
    const { code } = waiting.now;
    waiting.answer(code, { action: 'decline' }); // another window
    assert.deepEqual(await first, { action: 'decline' });
    const second = ask(next);
    assert.throws(() => waiting.answer(code, yes), /answered elsewhere/);
    assert.equal(waiting.now.question?.message, next);
    waiting.answer(waiting.now.code, yes);
    assert.deepEqual(await second, yes, 'control: its own code answers it');
  });

test('a code of another process of the session answers nothing', () => {
  const [before, now] = [open(), open()];
  void before.ask('Publish it?');
  void now.ask('Publish it?');
  assert.equal(before.waiting.now.number, now.waiting.now.number);
  assert.throws(() => now.waiting.answer(before.waiting.now.code, yes), /answered elsewhere/);
});

test('a command of the user whose files could not be stored is not ended in place of another', async () => {
  const faults = ['no space left'];
  let running = 0;
  const whileUserRuns: Session['whileUserRuns'] = async (command) => {
    const fault = faults.shift();
    if (fault !== undefined) throw new Error(fault);
    running += 1;
    return command().finally(() => {
      running -= 1;
    });
  };
  const session = { whileUserRuns, jobs: () => [] } as Partial<Session> as Session; // no more is used
  const serverQuestion = new WaitingServerQuestion(() => null);
  const own = createOwnRequests({ session, servers: null, serverQuestion });
  await assert.rejects(own({ what: 'userBegins' }), /no space left/);
  await own({ what: 'userBegins' });
  assert.equal(running, 1);
  await own({ what: 'userEnds' });
  assert.equal(running, 0);
  await assert.rejects(own({ what: 'killJob', jobId: 'job-7' }), /has no job-7/);
});

test('an input that was refused does not hide the same input of another window', async () => {
  const input = { type: 'UserInput', text: 'go', mode: 'steer' } as const;
  const stepped = { event: { ...input, at: 1 }, diagnostics: [] } as unknown as Stepped; // no more is read
  const replies = [() => Promise.reject(new Refused('conflict', 'no')), async () => ({ seq: 1 })];
  const inputs = createOwnInputs({ send: () => replies.shift()?.() ?? assert.fail() });
  await assert.rejects(inputs.send(input));
  assert.equal(inputs.isFromElsewhere(stepped), true);
  await inputs.send(input);
  assert.equal(inputs.isFromElsewhere(stepped), false, 'control: its own input is known');
});

test('an input that was refused takes no other one of this window with it', async () => {
  const input = (text: string) => ({ type: 'UserInput', text, mode: 'steer' }) as const;
  const stepOf = (text: string) =>
    ({ event: { ...input(text), at: 1 }, diagnostics: [] }) as unknown as Stepped; // no more is read
  let refuse = (): void => undefined;
  const refused = new Promise<never>((_, reject) => {
    refuse = () => reject(new Refused('conflict', 'no'));
  });
  const replies = [async () => ({ seq: 1 }), () => refused];
  const inputs = createOwnInputs({ send: () => replies.shift()?.() ?? assert.fail() });
  await inputs.send(input('mine'));
  const sending = inputs.send(input('go'));
  inputs.isFromElsewhere(stepOf('go')); // that of another window comes first
  refuse();
  await assert.rejects(sending);
  assert.equal(inputs.isFromElsewhere(stepOf('mine')), false);
});

test('a fault while an event is shown does not say that the process of the session ended', async () => {
  const fault = new Error('it can not be drawn');
  const client = { sessionId: 'a', events: () => Promise.reject(fault) };
  const follower = { seq: 0 } as SessionFollower; // no more is read
  await assert.rejects(followStream(client, follower, new AbortController().signal), fault);
});
