import { messagesOf } from '../agent/conversation.js';
import type { Message } from '../agent/message.js';
import type { Header } from '../needs.js';
import type { AskTypes } from '../needs-recursive.js';
import type { CallPurpose } from '../recursive/action.js';
import { ROOT } from '../recursive/ids.js';
import { outcomeOf } from '../recursive/tree-state.js';
import { formatWhen, harmless, type Look, lookOf, paint, writeWhole } from '../terminal/print.js';
import { answerOf, endingOfOutcome } from './ask-endings.js';
import { foldRun } from './ask-stored.js';
import { exitCodes, Stop } from './exit-codes.js';
import { messageLines } from './show-message.js';
import { storedBlobs } from './stored.js';

type Sent = {
  readonly seq: number | null;
  readonly node: string;
  readonly purpose: CallPurpose;
  readonly messages: readonly Message[];
};

const instructionsOf = async (header: Header<AskTypes>, purpose: CallPurpose): Promise<string> => {
  if (purpose === 'plain') return header.settings.subcallInstructions;
  const text = await storedBlobs().get(header.instructions);
  if (text !== undefined) return text;
  throw new Stop(
    exitCodes.badInput,
    'damaged',
    `A blob of run ${header.sessionId} is missing: its instructions.`,
  );
};

const showRequest = async (sessionId: string, at: number | undefined): Promise<string> => {
  const last: Sent[] = [];
  const { header } = await foldRun(sessionId, at, ({ actions, state, seq }) => {
    for (const action of actions) {
      const run = action.type === 'CallModel' ? state.nodes[action.node]?.run : undefined;
      if (action.type !== 'CallModel' || run === undefined) continue;
      const messages = messagesOf(run.conversation).slice(0, action.length);
      last[0] = { seq, node: action.node, purpose: action.purpose, messages };
    }
  });
  const [sent] = last;
  if (sent === undefined)
    throw new Stop(exitCodes.usage, 'usage', 'Nothing was sent to a model up to there.');
  const { purpose, ...rest } = sent;
  const model = rest.node === ROOT ? header.settings.model : header.settings.subModel;
  const instructions = await instructionsOf(header, purpose);
  return JSON.stringify({ sessionId, model, instructions, tools: [], ...rest }, null, 2);
};

const headOf = (header: Header<AskTypes>, look: Look): string => {
  const { settings, createdAt, workspace, sessionId } = header;
  const line = `${sessionId} · ${formatWhen(createdAt)} · ${settings.model} · ${settings.environment} · ${workspace}`;
  const inputs = settings.files.map(({ path, bytes }) => `${path} · ${bytes.toLocaleString('en-US')} bytes`);
  return paint(look, 'dim', [line, ...inputs].join('\n'));
};

const showRoot = async (sessionId: string, at: number | undefined): Promise<string> => {
  const folded = await foldRun(sessionId, at);
  const look = lookOf(process.stdout, process.env);
  const root = folded.state.nodes[ROOT];
  const messages = root === undefined ? [] : messagesOf(root.run.conversation);
  const outcome = outcomeOf(folded.state);
  const end = outcome === null ? [] : [answerOf(outcome) || endingOfOutcome(outcome).message];
  return [
    headOf(folded.header, look),
    ...messages.map((message) => messageLines(look, message)),
    ...end.map((text) => `${paint(look, 'bold', 'answer')}\n${harmless(text)}`),
  ].join('\n\n');
};

/** `pawl show` of a run: the conversation of the root and its answer, or exactly what a model was sent last. */
export const showRun = async (
  sessionId: string,
  at: number | undefined,
  flags: { readonly request?: true },
): Promise<number> => {
  const shown = await (flags.request ? showRequest(sessionId, at) : showRoot(sessionId, at));
  writeWhole(1, `${shown}\n`);
  return exitCodes.done;
};
