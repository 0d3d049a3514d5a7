/** Tools mode: one question, a limit of rounds after which the model is asked for its answer, and a stopping policy. */
import { finishReasonOf, messagesOf, openSession, type Session, toolsMode } from 'pawl';
import { memoryJournals, scriptedModel } from 'pawl/testing';

const look = { tool: 'read', input: { path: 'package.json' } };
const journals = memoryJournals();

const ask = async (session: Session): Promise<void> => {
  await session.send({ type: 'UserInput', text: 'What is this project?', mode: 'steer' });
  const state = await session.idle();
  if (state.name !== 'WaitingForUserInput') return;
  const { conversation, turn } = state.session;
  const answer = messagesOf(conversation)
    .at(-1)
    ?.parts.find((part) => part.type === 'text');
  console.log(`${finishReasonOf(state)}, rounds: ${turn.rounds}: ${answer?.text ?? 'no answer'}`);
  await session.close();
};

const insistent = scriptedModel({
  replies: [{ calls: [look] }, { calls: [look] }, { text: 'I could not find out.' }],
});
const limits = { ...toolsMode.limits, rounds: 2 };
await ask(
  await openSession({
    model: insistent,
    journals,
    workspace: '.',
    settings: { ...toolsMode, limits },
  }),
);

const curious = scriptedModel({ replies: [{ calls: [look] }, { text: 'Never asked for.' }] });
await ask(
  await openSession({
    model: curious,
    journals,
    workspace: '.',
    settings: toolsMode,
    stoppingPolicy: ({ session }) => (session.turn.rounds > 0 ? 'one look is enough' : null),
  }),
);
