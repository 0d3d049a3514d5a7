/**
 * `pawl show`: a session as text, its last request, its figures, or its path in the states of a
 * seed system: another published agent, whose machine ours can be seen as (a view, or projection).
 */

import type { JournalStep } from '@pawl/agent/journal/steps';
import { messagesOf, requestMessages } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import type { Stepped } from '@pawl/agent/ports/session';
import { detectLook, paint } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe, safeJson } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import type { Projection, ProjectionStep } from '@pawl/verify/projections/projection';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { headLine, messageLines } from '../sessions/session-text.js';
import { findInfo, foldStored, storedBlobs } from '../sessions/stored-sessions.js';
import { readSeq, usageStop } from '../settings/flags.js';

type Flags = {
  readonly at?: string;
  readonly request?: true;
  readonly view?: string;
  readonly time?: true;
  readonly json?: true;
};

type LastRequest = {
  readonly seq: number | null;
  readonly model: string;
  readonly messages: readonly Message[];
};

const showRequest = async (sessionId: string, at: number | undefined): Promise<Safe> => {
  const sent: { last: LastRequest | null } = { last: null };
  let toolsBlob: string | null = null;
  // Folding computes the states from the journal, and calls this with each step up to line `at`.
  const { header } = await foldStored(sessionId, at, ({ actions, state, seq }) => {
    // MCP servers may add tools while a request is prepared, after the step with its action: so
    // the last list of all steps counts. The header has the list at the start.
    toolsBlob = state.session.settings.tools ?? toolsBlob;
    for (const action of actions) {
      if (action.type !== 'SendLlmRequest') continue;
      const { conversation, settings } = state.session;
      const { model } = settings;
      // the action sends the first `length` messages
      sent.last = { seq, model, messages: requestMessages(conversation, action.length, model) };
    }
  });
  const { last } = sent;
  if (last === null)
    throw new Stop(exitCodes.usage, 'usage', 'No request was sent to a model so far.');
  const blobs = storedBlobs();
  const [instructions, tools] = await Promise.all([
    blobs.get(header.instructions),
    blobs.get(toolsBlob ?? header.tools),
  ]);
  if (instructions === undefined || tools === undefined) {
    throw new Stop(
      exitCodes.badInput,
      'damaged',
      `A blob of session ${sessionId} is missing: its instructions or tools.`,
    );
  }
  const declared: unknown = JSON.parse(tools);
  const { seq, model, messages } = last;
  return safeJson({ sessionId, model, instructions, tools: declared, seq, messages }, 2);
};

/**
 * The notice of a compaction, and the last journal line before it, where the messages are still
 * whole.
 */
type Compaction = { readonly text: string; readonly seqBefore: number };

const findCompaction = ({ actions, seq }: Stepped): Compaction | null => {
  if (seq === null) return null;
  for (const action of actions) {
    if (action.type === 'DisplayNotice' && action.kind === 'compacted')
      return { text: action.text, seqBefore: seq - 1 };
  }
  return null;
};

const compactionText = (sessionId: string, { text, seqBefore }: Compaction): string =>
  `${text}; they are in the journal: pawl show ${sessionId} --at ${seqBefore}`;

const showConversation = async (sessionId: string, at: number | undefined): Promise<Safe> => {
  const compaction: { last: Compaction | null } = { last: null };
  const folded = await foldStored(sessionId, at, (stepped) => {
    compaction.last = findCompaction(stepped) ?? compaction.last;
  });
  const look = detectLook(process.stdout, process.env);
  const head = headLine(folded.header);
  const messages = messagesOf(folded.state.session.conversation).map((message) =>
    messageLines(look, message),
  );
  const earlier =
    compaction.last === null
      ? []
      : [paint(look, 'dim', makeSafe(compactionText(sessionId, compaction.last)))];
  return joinSafe([paint(look, 'dim', head), ...earlier, ...messages], safe`\n\n`);
};

const refuseCombined = ({ view, request, time, json }: Flags): void => {
  const chosen = [
    ...(view === undefined ? [] : ['--view']),
    ...(request ? ['--request'] : []),
    ...(time ? ['--time'] : []),
  ];
  if (chosen.length > 1) throw usageStop(`${chosen.join(' and ')} exclude each other.`);
  if (json && !time) throw usageStop('--json goes with --time: pawl show ID --time --json');
};

/**
 * `pawl show`: the conversation after an entry; with `--request` the exact last model request up to
 * it; with `--view` the path in the states of a seed system; with `--time` where time and money
 * went.
 */
export const showSession = async (id: string, flags: Flags): Promise<number> => {
  refuseCombined(flags);
  const view =
    flags.view === undefined ? null : (await import('./machine.js')).readView(flags.view);
  const at = flags.at === undefined ? undefined : readSeq('--at', flags.at);
  const { sessionId, kind, parent } = await findInfo(id);
  if (kind === 'ask' && (view !== null || flags.time))
    throw usageStop(
      `${flags.time ? '--time' : '--view'} is for sessions of the agent, not of pawl ask.`,
    );
  if (flags.time)
    return (await import('./figures.js')).showTime({ sessionId, parent }, at, flags.json === true);
  if (kind === 'ask') return (await import('./ask-show.js')).showRun(sessionId, at, flags);
  const tell = flags.request ? showRequest : showConversation;
  const shown = view === null ? await tell(sessionId, at) : await showPath(sessionId, at, view);
  writeOut(safe`${shown}\n`);
  return exitCodes.done;
};

// `pawl show --view`: a session's path in the states of a seed system.

/** `origin`: where a failure came from, such as the model or a tool. Only some seeds name it. */
const stepLine = (
  first: string,
  event: string,
  { from, to, action, origin }: ProjectionStep,
): string =>
  `${first.padStart(4)}  ${event.padEnd(22)} ${from} → ` +
  `${to}${action === null ? '' : ` / ${action}`}${origin === undefined ? '' : ` (origin ${origin})`}`;

/**
 * One line for each step of the seed's machine that follows from one step of ours. The first one
 * carries the number of the journal line.
 */
const stepLines = (
  view: Projection,
  { seq, event }: JournalStep,
  steps: readonly ProjectionStep[],
): readonly string[] =>
  steps.map((step, index) => {
    // Some seeds name no events: then the agent's event is shown.
    const unnamed = Object.keys(view.events).length === 0 && index === 0 ? event.type : '';
    return stepLine(index === 0 ? String(seq) : '', step.event ?? unnamed, step);
  });

/** The path up to entry `at`. Steps that the seed's machine does not allow are marked with `!`. */
const showPath = async (
  sessionId: string,
  at: number | undefined,
  view: Projection,
): Promise<Safe> => {
  const { checkRefinement } = await import('@pawl/verify/projections/refinement-check');
  const lines: string[] = [];
  // where the seed's machine stands
  let { begin: cursor } = view;
  await foldStored(sessionId, at, (step) => {
    // takes the seed's machine along our step, and names what it does not allow
    const followed = checkRefinement(view, cursor, step.before, step.event, step);
    ({ cursor } = followed);
    lines.push(
      ...stepLines(view, step, followed.steps),
      ...followed.faults.map((fault) => `!     ${fault}`),
    );
  });
  return makeSafe(lines.join('\n'));
};
