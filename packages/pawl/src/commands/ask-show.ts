/**
 * `pawl show` for runs of `pawl ask`. show.ts and verify.ts load it when a session turns out to be
 * such a run.
 */

import type { StoredReplay } from '@pawl/agent/journal/reader';
import type { JournalStep } from '@pawl/agent/journal/steps';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { stateFolder } from '@pawl/agent/platform/environment';
import { groupDigits } from '@pawl/agent/platform/text';
import type { Header } from '@pawl/agent/ports/journal';
import type { Watcher } from '@pawl/agent/ports/session';
import { fileAskJournals } from '@pawl/ask/journaled-ask-machine';
import type { AskTypes } from '@pawl/ask/ports';
import type { CallPurpose } from '@pawl/ask/run/action';
import type { Outcome, Run } from '@pawl/ask/run/state';
import { cutCharacters } from '@pawl/ask/run/texts-for-model';
import { ROOT } from '@pawl/ask/tree/ledger';
import { outcomeOf, piecesOf } from '@pawl/ask/tree/tree-state';
import { detectLook, harmless, type Look, paint } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe, safeJson } from '@pawl/terminal/safe-text';
import { writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { headLine, messageLines } from '../sessions/session-text.js';
import { foldStoredBy, storedBlobs } from '../sessions/stored-sessions.js';
import { getAnswer, outcomeEnding, outcomeText } from './ask-records.js';

type SentRequest = {
  readonly seq: number | null;
  readonly node: string;
  readonly model: string;
  readonly purpose: CallPurpose;
  readonly messages: readonly Message[];
};

const readInstructions = async (
  header: Header<AskTypes>,
  purpose: CallPurpose,
): Promise<string> => {
  // a call of a model that runs no programs
  if (purpose === 'plain') return header.settings.subcallInstructions;
  const text = await storedBlobs().get(header.instructions);
  if (text !== undefined) return text;
  throw new Stop(
    exitCodes.badInput,
    'damaged',
    `A blob of run ${header.sessionId} is missing: its instructions.`,
  );
};

const showRequest = async (sessionId: string, at: number | undefined): Promise<Safe> => {
  const last: SentRequest[] = []; // at most one: the last so far
  const { header } = await foldRun(sessionId, at, ({ actions, state, seq }) => {
    for (const action of actions) {
      if (action.type !== 'CallModel') continue;
      const run = state.nodes[action.node]?.run;
      if (run === undefined) continue;
      const messages = messagesOf(run.conversation).slice(0, action.length);
      last[0] = { seq, node: action.node, model: run.model, purpose: action.purpose, messages };
    }
  });
  const [sent] = last;
  if (sent === undefined)
    throw new Stop(exitCodes.usage, 'usage', 'No request was sent to a model so far.');
  const { purpose, model, ...rest } = sent;
  const instructions = await readInstructions(header, purpose);
  return safeJson({ sessionId, model, instructions, tools: [], ...rest }, 2);
};

const createHead = (header: Header<AskTypes>, look: Look): Safe => {
  const { files, environment } = header.settings;
  const inputs = files.map(({ path, bytes }) => `\n${path} · ${groupDigits(bytes)} bytes`);
  return paint(look, 'dim', safe`${headLine(header, environment)}${makeSafe(inputs.join(''))}`);
};

// Runs below the root

/** Characters of a prompt or an answer that are shown. */
const SHOWN_MAX = 2_000;

/**
 * A run below the root. `run` is null if it ended in the step in which it began. `reply`: the last
 * one, if the conversation does not hold it yet. `outcome` is null while the run is open.
 */
type RunBelow = {
  readonly node: string;
  readonly run: Run | null;
  readonly reply: Message | null;
  readonly outcome: Outcome | null;
};

/**
 * Collects the runs below the root while a journal is folded: the tree drops them when they end.
 */
const collectRunsBelow = () => {
  const below = new Map<string, RunBelow>();
  const visit: Watcher<AskTypes> = ({ event, state, actions }) => {
    const replied = event.type === 'ModelReplied' ? event : null;
    for (const [node, { run }] of Object.entries(state.nodes)) {
      if (node === ROOT) continue;
      const known = below.get(node);
      const isStored = known?.run?.conversation !== run.conversation;
      const last = replied?.node === node ? replied.message : (known?.reply ?? null);
      below.set(node, { node, run, reply: isStored ? null : last, outcome: null });
    }
    for (const action of actions) {
      if (action.type !== 'ReportOutcome' || action.node === ROOT) continue;
      const { node, outcome } = action;
      const { run, reply } = below.get(node) ?? { run: null, reply: null };
      const last = replied?.node === node ? replied.message : reply;
      below.set(node, { node, run, reply: last, outcome });
    }
  };
  return { visit, list: () => [...below.values()] };
};

/**
 * A plain call (at the greatest depth, where no programs run) is shown by prompt and reply, a run
 * with an environment by its whole conversation.
 */
const belowLines = (look: Look, { node, run, reply, outcome }: RunBelow): Safe => {
  const answer = safe`→ ${harmless(cutCharacters(outcomeText(outcome), SHOWN_MAX))}`;
  const heading = (kind: string): Safe =>
    paint(look, 'bold', makeSafe(`${node} · ${kind} · ${outcome?.status ?? 'open'}`));
  if (run === null) return safe`${heading('call')}\n${answer}`;
  const isPlain = run.depth >= run.depthMax;
  const prompt = run.task.kind === 'prompt' ? run.task.prompt : run.task.question;
  const messages = messagesOf(run.conversation).slice(1); // without the prompt
  const lines = [
    heading(isPlain ? 'plain call' : 'run'),
    harmless(cutCharacters(prompt, SHOWN_MAX)),
    ...(isPlain ? [] : [...messages, ...(reply === null ? [] : [reply])]).map((message) =>
      messageLines(look, message),
    ),
    answer,
  ];
  return joinSafe(lines, safe`\n`);
};

const showRoot = async (sessionId: string, at: number | undefined): Promise<Safe> => {
  const below = collectRunsBelow();
  const folded = await foldRun(sessionId, at, below.visit);
  const look = detectLook(process.stdout, process.env);
  const root = folded.state.nodes[ROOT];
  const messages = root === undefined ? [] : messagesOf(root.run.conversation);
  const outcome = outcomeOf(folded.state);
  const answer = getAnswer(outcome);
  const heading = answer === '' ? safe`end` : safe`answer`;
  const end =
    outcome === null
      ? []
      : [answer || outcomeEnding(outcome, piecesOf(folded.state.pieces)).message];
  const parts = [
    createHead(folded.header, look),
    ...messages.map((message) => messageLines(look, message)),
    ...below.list().map((one) => belowLines(look, one)),
    ...end.map((text) => safe`${paint(look, 'bold', heading)}\n${harmless(text)}`),
  ];
  return joinSafe(parts, safe`\n\n`);
};

/**
 * `pawl show` for a run of `pawl ask`: the root's conversation, the runs and calls below it, and
 * the answer; with `--request` the exact last model request.
 */
export const showRun = async (
  sessionId: string,
  at: number | undefined,
  flags: { readonly request?: true },
): Promise<number> => {
  const shown = await (flags.request ? showRequest(sessionId, at) : showRoot(sessionId, at));
  writeOut(safe`${shown}\n`);
  return exitCodes.done;
};

/** Folds the stored journal of a `pawl ask` run; see `foldStoredBy`. */
export const foldRun = (
  sessionId: string,
  at: number | undefined,
  visit?: (step: JournalStep<AskTypes>) => void,
): Promise<StoredReplay<AskTypes>> =>
  foldStoredBy(fileAskJournals({ folder: stateFolder(process.env) }), sessionId, at, visit);
