/** Ends a session and goes on with it from its journal, as another process would: nothing is shared but the folder. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileJournals, openSession, replay } from 'pawl';
import { scriptedModel } from 'pawl/testing';

const folder = mkdtempSync(join(tmpdir(), 'pawl-example-'));
const script = {
  replies: [
    { text: 'Blue, noted.' },
    { expect: { messages: 3 }, text: 'You said blue.' }, // fails if the request lacks what was said before
  ],
};

/** One life of the session: opens it, says one thing, closes it. */
const live = async (text: string, resume?: string): Promise<string> => {
  const options = {
    model: scriptedModel(script),
    journals: fileJournals({ folder }),
    workspace: '.',
  };
  const session = await openSession(resume === undefined ? options : { ...options, resume });
  session.watch(({ actions }) => {
    for (const action of actions) if (action.type === 'DisplayText') console.log(action.text);
  });
  await session.send({ type: 'UserInput', text, mode: 'steer' });
  await session.idle();
  await session.close();
  return session.id;
};

const id = await live('My favourite colour is blue.');
await live('Which is it?', id);

const { header, records } = await fileJournals({ folder }).inspect(id);
const { seq, state, checks, mismatches } = await replay(header, records);
console.log(
  `${seq} entries replayed: ${state.name}, ${checks} hashes compared, ${mismatches.length} differ`,
);
rmSync(folder, { recursive: true });
