import { messagesOf } from '../agent/conversation.js';
import type { Message } from '../agent/message.js';
import type { Stepped } from '../needs.js';
import { formatWhen, lookOf, paint, writeWhole } from '../terminal/print.js';
import { exitCodes, Stop } from './exit-codes.js';
import { readSeq, usageStop } from './flags.js';
import { readView } from './read-view.js';
import { messageLines } from './show-message.js';
import { showPath } from './show-path.js';
import { findInfo, foldStored, storedBlobs } from './stored.js';

type Flags = { readonly at?: string; readonly request?: true; readonly view?: string };

const showRequest = async (sessionId: string, at: number | undefined): Promise<string> => {
  const sent: { last: { readonly seq: number | null; readonly messages: readonly Message[] } | null } = {
    last: null,
  };
  const { header } = await foldStored(sessionId, at, ({ actions, state, seq }) => {
    for (const action of actions) {
      if (action.type !== 'SendLlmRequest') continue;
      sent.last = { seq, messages: messagesOf(state.session.conversation).slice(0, action.length) };
    }
  });
  const { last } = sent;
  if (last === null) throw new Stop(exitCodes.usage, 'usage', 'Nothing was sent to a model up to there.');
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

/** What a summary stands for, and the last entry at which that still stood there. */
type Compaction = { readonly text: string; readonly seqBefore: number };

const compactionIn = ({ actions, seq }: Stepped): Compaction | null => {
  if (seq === null) return null;
  for (const action of actions) {
    if (action.type === 'DisplayNotice' && action.kind === 'compacted')
      return { text: action.text, seqBefore: seq - 1 };
  }
  return null;
};

const whereItIs = (sessionId: string, { text, seqBefore }: Compaction): string =>
  `${text}; they are in the journal: pawl show ${sessionId} --at ${seqBefore}`;

const showConversation = async (sessionId: string, at: number | undefined): Promise<string> => {
  const compaction: { last: Compaction | null } = { last: null };
  const folded = await foldStored(sessionId, at, (stepped) => {
    compaction.last = compactionIn(stepped) ?? compaction.last;
  });
  const { header } = folded;
  const look = lookOf(process.stdout, process.env);
  const head = `${sessionId} · ${formatWhen(header.createdAt)} · ${header.settings.model} · ${header.workspace}`;
  const messages = messagesOf(folded.state.session.conversation).map((message) =>
    messageLines(look, message),
  );
  const earlier = compaction.last === null ? [] : [paint(look, 'dim', whereItIs(sessionId, compaction.last))];
  return [paint(look, 'dim', head), ...earlier, ...messages].join('\n\n');
};

/**
 * `pawl show`: the conversation as it was at an entry, exactly what the model was sent last up to there, or the path up
 * to there in the words of a seed system.
 */
export const showSession = async (given: string, flags: Flags): Promise<number> => {
  if (flags.view !== undefined && flags.request) throw usageStop('--view and --request exclude each other.');
  const view = flags.view === undefined ? null : readView(flags.view);
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const { sessionId, kind } = await findInfo(given);
  if (kind === 'ask' && view !== null)
    throw usageStop('--view is for sessions of the agent, not of pawl ask.');
  if (kind === 'ask') return (await import('./ask-show.js')).showRun(sessionId, at, flags);
  const tell = flags.request ? showRequest : showConversation;
  const shown = view === null ? await tell(sessionId, at) : await showPath(sessionId, at, view);
  writeWhole(1, `${shown}\n`);
  return exitCodes.done;
};
