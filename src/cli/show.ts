import { messagesOf } from '../agent/conversation.js';
import type { Message } from '../agent/message.js';
import { exitCodes, Stop } from './exit-codes.js';
import { readSeq } from './flags.js';
import { formatWhen, harmless, type Look, lookOf, paint, writeWhole } from './print.js';
import { findSession, foldStored, storedBlobs } from './stored.js';

type Flags = { readonly at?: string; readonly request?: true };

type Part = Message['parts'][number];

const partLine = (look: Look, part: Part): string => {
  switch (part.type) {
    case 'text':
      return harmless(part.text);
    case 'reasoning':
      return paint(look, 'dim', harmless(part.text));
    case 'call':
      return `${paint(look, 'cyan', `→ ${part.tool}`)} ${harmless(part.rawInput ?? JSON.stringify(part.input))}`;
    case 'result':
      return `${paint(look, part.failed ? 'red' : 'green', `← ${part.tool}`)} ${harmless(part.text)}`;
    default:
      return part satisfies never;
  }
};

/** A message that goes to the model may hold results, what the user typed, and notes of the agent's. */
const speakerOf = ({ role }: Message, part: Part): string => {
  if (role === 'assistant') return 'pawl';
  if (part.type === 'result') return 'tools';
  return 'origin' in part && part.origin !== 'user' ? part.origin : 'you';
};

/** A message for people: who speaks, then each part. */
export const messageLines = (look: Look, message: Message): string => {
  let speaker = '';
  return message.parts
    .flatMap((part) => {
      const before = speaker;
      speaker = speakerOf(message, part);
      const heading = speaker === before ? [] : [paint(look, 'bold', speaker)];
      return [...heading, partLine(look, part)];
    })
    .join('\n');
};

const showRequest = async (sessionId: string, at: number | undefined): Promise<string> => {
  const sent: { readonly seq: number | null; readonly messages: readonly Message[] }[] = [];
  const { inspection } = await foldStored(sessionId, at, ({ actions, state, seq }) => {
    for (const action of actions) {
      if (action.type !== 'SendLlmRequest') continue;
      sent.push({ seq, messages: messagesOf(state.session.conversation).slice(0, action.length) });
    }
  });
  const last = sent.at(-1);
  if (last === undefined)
    throw new Stop(exitCodes.usage, 'usage', 'Nothing was sent to a model up to there.');
  const { header } = inspection;
  const blobs = storedBlobs();
  const [instructions, tools] = await Promise.all([blobs.get(header.instructions), blobs.get(header.tools)]);
  if (instructions === undefined || tools === undefined) {
    throw new Stop(
      exitCodes.badInput,
      'damaged',
      `A blob of session ${sessionId} is missing: its instructions or tools.`,
    );
  }
  const declared: unknown = JSON.parse(tools);
  return JSON.stringify(
    { sessionId, model: header.settings.model, instructions, tools: declared, ...last },
    null,
    2,
  );
};

const showConversation = async (sessionId: string, at: number | undefined): Promise<string> => {
  const { inspection, folded } = await foldStored(sessionId, at);
  const { header } = inspection;
  const look = lookOf(process.stdout, process.env);
  const head = `${sessionId} · ${formatWhen(header.createdAt)} · ${header.settings.model} · ${header.workspace}`;
  const messages = messagesOf(folded.state.session.conversation).map((message) =>
    messageLines(look, message),
  );
  return [paint(look, 'dim', head), ...messages].join('\n\n');
};

/** `pawl show`: the conversation as it was at an entry, or exactly what the model was sent last up to there. */
export const showSession = async (given: string, flags: Flags): Promise<number> => {
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const sessionId = await findSession(given);
  const shown = await (flags.request ? showRequest(sessionId, at) : showConversation(sessionId, at));
  writeWhole(1, `${shown}\n`);
  return exitCodes.done;
};
