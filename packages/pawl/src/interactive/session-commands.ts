/**
 * Slash commands about stored sessions, from top to bottom: change to another one (`/resume`,
 * `/fork`, `/clear`), show the changes (`/diff`), copy an answer (`/copy`), write the conversation
 * to a file (`/export`).
 */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { emptyConversation, messagesOf } from '@pawl/agent/machine/conversation';
import type { Event } from '@pawl/agent/machine/event';
import type { Message } from '@pawl/agent/machine/message';
import { isBusy } from '@pawl/agent/machine/state';
import { errorCode } from '@pawl/agent/platform/files';
import { codeFence, plural } from '@pawl/agent/platform/text';
import type { SessionInfo } from '@pawl/agent/ports/journal';
import { liveRights } from '@pawl/agent/session/session-settings';
import { hashLoaded, loadFile } from '@pawl/agent/tools/files';
import { diffSinceHead } from '@pawl/agent/workspace/uncommitted-files';
import { fileDiffRows } from '@pawl/terminal/diff-rows';
import { codeBlocks } from '@pawl/terminal/markdown';
import {
  formatWhen,
  harmless,
  indentWords,
  oneLine,
  paint,
  setClipboard,
  wrapWords,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeWindow } from '@pawl/terminal/write';
import {
  findForkSeq,
  findSession,
  foldStored,
  forkStored,
  storedJournals,
  userSessions,
} from '../sessions/stored-sessions.js';
import { readSeq } from '../settings/flags.js';
import {
  type NextSession,
  NotNow,
  type SlashCommand,
  type SlashCommandContext,
} from './slash-command.js';

const SESSIONS_MAX = 100;

/** Throws while a turn runs. */
export const requireRest = ({ view }: SlashCommandContext): void => {
  if (isBusy(view.state))
    throw new NotNow('A turn is running. Stop it with Escape, then try again.');
};

/**
 * Changes to another session. Meanwhile no text is sent. Throws while something of the user's goes
 * on in this one: it would be lost.
 */
const changeTo = async (
  context: SlashCommandContext,
  find: () => Promise<NextSession>,
): Promise<void> => {
  const { view } = context;
  requireRest(context);
  if (context.hasWork())
    throw new NotNow(
      'Your command still runs (Escape stops it), or your last text is not sent yet.',
    );
  if (view.isLeaving) throw new NotNow('This window leaves the session already.');
  view.setLeaving(true);
  try {
    await context.move(await find());
  } catch (error) {
    view.setLeaving(false);
    throw error;
  }
};

/** The newest sessions of this folder besides the open one. */
const otherSessionsHere = async ({
  session,
  workspace,
}: SlashCommandContext): Promise<readonly SessionInfo[]> =>
  (await userSessions())
    .filter((info) => info.workspace === workspace && info.sessionId !== session.id)
    .slice(0, SESSIONS_MAX);

/** A narrower window would show the beginning of a title and the beginning of an id. */
const ID_COLUMNS_MIN = 60;

export const resume: SlashCommand = async (context, words) => {
  if (words !== '')
    return changeTo(context, async () => {
      const id = await findSession(words);
      if (id === context.session.id) throw new NotNow('That is this session.');
      return { resume: id, notice: '' };
    });
  requireRest(context);
  const { look } = context;
  const others = await otherSessionsHere(context);
  if (others.length === 0) throw new NotNow('There is no other session in this folder.');
  // Date and id are never cut; the title takes the remaining columns. Narrow windows have no id.
  // 22: the date, and the spaces between the columns.
  const idColumns = Math.max(...others.map(({ sessionId }) => sessionId.length)) + 2;
  const hasIds = look.columns >= ID_COLUMNS_MIN;
  const titleColumns = Math.min(60, Math.max(8, look.columns - (hasIds ? idColumns : 0) - 22));
  const choices = others.map(({ sessionId, changedAt, title }) => ({
    text: `${formatWhen(changedAt)}  ${oneLine(title, titleColumns) || '(nothing was said)'}`,
    about: hasIds ? sessionId : '',
  }));
  const chosen = others[(await context.view.pick('Go on with:', choices)) ?? -1];
  if (chosen !== undefined)
    await changeTo(context, async () => ({ resume: chosen.sessionId, notice: '' }));
};

const forkText = (from: string, seq: number): string =>
  `a fork of ${from} at ${seq}; the files are as they are now · back: /resume ${from}`;

export const fork: SlashCommand = (context, words) =>
  changeTo(context, async () => {
    const last = (await storedJournals().peek(context.session.id)).seq;
    const at = words === '' ? last : readSeq('/fork', words);
    if (at > last) throw new NotNow(`The journal ends at ${last}.`);
    const seq = await findForkSeq({ sessionId: context.session.id, kind: 'agent' }, at);
    const id = await forkStored(context.session.id, seq);
    return {
      resume: id,
      rights: liveRights(context.view.state), // as they are now, not as they were at `seq`
      notice: forkText(context.session.id, seq),
    };
  });

export const clear: SlashCommand = (context) =>
  changeTo(context, async () => ({
    resume: null,
    model: context.view.state.session.settings.model,
    notice: `a new session · the one before: /resume ${context.session.id}`,
  }));

// `/diff`: all changes since HEAD, or only the edits and writes of this session.

const LINES_MAX = 2_000;

type Written = {
  /** One diff for each edit or write, in order. */
  readonly diffs: string[];
  /** Real path to the sha256 of the file as the session, or a formatter after it, left it. */
  readonly hashes: Map<string, string>;
  /** Whether files were taken back. */
  isRewound: boolean;
};

const noteChange = (written: Written, event: Event): void => {
  const { diffs, hashes } = written;
  if (event.type === 'ToolCompleted' && event.outcome.diff !== undefined) {
    diffs.push(event.outcome.diff);
    for (const { path: file, sha256 } of event.outcome.seen ?? []) hashes.set(file, sha256);
  }
  if (event.type === 'HookCompleted')
    for (const { path: file, sha256 } of event.seen ?? [])
      if (hashes.has(file)) hashes.set(file, sha256);
  if (event.type === 'Rewound' && event.checkpoint !== null) written.isRewound = true;
};

/** A warning for each file that changed after the session wrote it: the diffs don't show that. */
const changedSince = async ({ hashes }: Written, workspace: string): Promise<readonly Safe[]> => {
  const rows: Safe[] = [];
  for (const [file, sha256] of hashes) {
    if (hashLoaded(await loadFile(file)) === sha256) continue;
    const shown = oneLine(path.relative(workspace, file), Number.POSITIVE_INFINITY);
    rows.push(safe`  ${shown} has changed since this session wrote it, not by an edit of its own`);
  }
  return rows;
};

type ShownDiff = {
  readonly what: string;
  /** Printed if there are no `diffs`. */
  readonly nothing: string;
  /** A unified diff of each file, or of each edit. */
  readonly diffs: readonly string[];
  readonly notes: readonly Safe[];
};

const changesBySession = async (
  { session, workspace }: SlashCommandContext,
  before = '',
): Promise<ShownDiff> => {
  const written: Written = { diffs: [], hashes: new Map(), isRewound: false };
  // undefined: to the end of the journal
  await foldStored(session.id, undefined, ({ event }) => noteChange(written, event));
  return {
    what: `${before}edits of this session in order, without changes by commands`,
    nothing: `${before}no edit of this session has changed a file.`,
    diffs: written.diffs,
    notes: [
      ...(written.isRewound ? [safe`  /rewind has taken changes back, perhaps some of these`] : []),
      ...(await changedSince(written, workspace)),
    ],
  };
};

const changesSinceHead = async (context: SlashCommandContext): Promise<ShownDiff> => {
  const { signal } = new AbortController(); // nothing stops it
  const since = await diffSinceHead({
    workspace: context.workspace,
    environment: process.env,
    signal,
  });
  if (since === null) return changesBySession(context, 'There is no git repository here: ');
  return { what: since.title, nothing: since.nothing, diffs: since.diffs, notes: [] };
};

export const diff: SlashCommand = async (context, words) => {
  const { view, look } = context;
  if (words !== '' && words !== 'session')
    throw new NotNow(`There is no /diff ${words}, only /diff and /diff session.`);
  const { what, nothing, diffs, notes } =
    words === '' ? await changesSinceHead(context) : await changesBySession(context);
  if (diffs.length === 0) return view.print(safe`  ${makeSafe(nothing)}`);
  const rows: Safe[] = [];
  let linesFree = LINES_MAX;
  let hiddenLines = 0;
  for (const text of diffs) {
    const drawn = fileDiffRows(look, text, linesFree);
    rows.push(...drawn.rows);
    linesFree -= drawn.lines;
    hiddenLines += drawn.leftOut;
  }
  const head = wrapWords(makeSafe(what), look.columns - 3);
  view.print(
    joinSafe([...head.map((row) => safe`  ${paint(look, 'bold', row)}`), ...rows], safe`\n`),
  );
  if (hiddenLines > 0) view.print(paint(look, 'dim', safe`  … ${hiddenLines} more lines`));
  if (notes.length > 0) view.print(paint(look, 'yellow', joinSafe(notes, safe`\n`)));
};

// `/copy`: the last answer, or one of its code blocks, to the clipboard.

const lastAnswer = (messages: readonly Message[]): string =>
  messages
    .filter(({ role }) => role === 'assistant')
    .map(({ parts }) =>
      parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n'),
    )
    .findLast((text) => text.trim() !== '') ?? '';

/** The text to copy, and what it is. */
const copiedPart = async (
  answer: string,
  words: string,
): Promise<{ readonly text: string; readonly what: string }> => {
  if (words === '') return { text: answer, what: 'the last answer' };
  const blocks = await codeBlocks(answer);
  const text = /^\d+$/.test(words) ? blocks[Number(words) - 1] : undefined;
  if (text === undefined)
    throw new NotNow(
      blocks.length === 0
        ? 'The last answer has no code block. /copy copies all of it.'
        : `The last answer has ${plural(blocks.length, 'code block')}: /copy 1 copies the first.`,
    );
  return { text, what: `code block ${words} of ${blocks.length}` };
};

export const copy: SlashCommand = async ({ view, look }, words) => {
  if (look.plain === 'yes')
    throw new NotNow('A plain terminal has no clipboard. /export FILE writes the conversation.');
  const answer = lastAnswer(messagesOf(view.state.session.conversation));
  if (answer === '') throw new NotNow('There is no answer to copy.');
  const { text, what } = await copiedPart(answer, words);
  writeWindow(setClipboard(harmless(text)));
  const size = plural(text.split('\n').length, 'line');
  view.print(
    indentWords(
      makeSafe(
        `sent to the clipboard: ${what}, ${size}. The terminal must allow it (OSC 52); in tmux: ` +
          'set -g set-clipboard on',
      ),
      look.columns,
    ),
  );
};

// `/export`: writes the conversation to a Markdown file.

type Part = Message['parts'][number];

const partMarkdown = (part: Part): string => {
  switch (part.type) {
    case 'text':
      // Texts for the model that the user did not write say where they come from.
      return 'origin' in part && part.origin !== 'user'
        ? `*(${part.origin})* ${part.text}`
        : part.text;
    case 'reasoning':
      return part.text
        .split('\n')
        .map((line) => `> ${line}`)
        .join('\n');
    case 'call':
      return `**${part.tool}**\n\n${codeFence(part.rawInput ?? JSON.stringify(part.input, null, 2), 'json')}`;
    case 'result':
      return `**${part.tool}** ${part.failed ? 'failed' : 'answered'}\n\n${codeFence(part.text)}`;
    default:
      return part satisfies never;
  }
};

const messageHeading = ({ role, parts }: Message): string => {
  if (role === 'assistant') return '## Pawl';
  return parts[0]?.type === 'result' ? '## Results' : '## You';
};

const conversationMarkdown = (title: string, messages: readonly Message[]): string =>
  [
    `# ${title}`,
    ...messages.map((message) =>
      [messageHeading(message), ...message.parts.map(partMarkdown)].join('\n\n'),
    ),
  ]
    .join('\n\n')
    .concat('\n');

/**
 * The messages that a compaction removed. If the summary shares its message with unanswered text,
 * that message stays.
 */
const compactedMessages = (
  before: readonly Message[],
  [first, ...others]: readonly Message[],
): readonly Message[] => {
  const sharesMessage =
    first?.parts.some((part) => !('origin' in part && part.origin === 'summary')) ?? false;
  return before.slice(0, before.length - others.length - (sharesMessage ? 1 : 0));
};

/** All messages of the session, including those that compactions replaced by summaries. */
const allMessages = async (sessionId: string): Promise<readonly Message[]> => {
  const gone: Message[] = [];
  let conversation = emptyConversation;
  await foldStored(sessionId, undefined, ({ event, state }) => {
    const before = conversation;
    ({ conversation } = state.session);
    if (event.type === 'CompactionCompleted' && conversation !== before)
      gone.push(...compactedMessages(messagesOf(before), messagesOf(conversation)));
    if (event.type === 'Rewound' || event.type === 'RewindRequested') {
      const first = JSON.stringify(messagesOf(conversation)[0]);
      const back = gone.findIndex((message) => JSON.stringify(message) === first);
      if (back >= 0) gone.length = back; // those from it on are in the conversation again
    }
  });
  return [...gone, ...messagesOf(conversation)];
};

export const exportConversation: SlashCommand = async ({ view, session, workspace }, words) => {
  const force = /^--force(\s|$)/.test(words);
  const name = force ? words.slice('--force'.length).trim() : words;
  if (name === '') throw new NotNow('Which file is to be replaced? /export --force FILE');
  const file = path.resolve(workspace, name);
  const messages = await allMessages(session.id);
  const text = conversationMarkdown(`Session ${session.id}`, messages);
  try {
    await writeFile(file, text, { flag: force ? 'w' : 'wx', mode: 0o600 });
  } catch (error) {
    if (errorCode(error) === 'EEXIST')
      throw new NotNow(
        `${file} already exists and was not changed. To replace it: /export --force ${name}`,
      );
    throw error;
  }
  view.print(
    safe`  ${messages.length} ${messages.length === 1 ? safe`message` : safe`messages`} in ${makeSafe(file)}`,
  );
};
