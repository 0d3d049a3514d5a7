/**
 * The questions of a detached session that wait, as whoever answers outside of its terminal reads
 * them: `pawl answer`, `pawl sessions --live --json` and the inspector.
 *
 * 1. Each has all rows that a terminal shows, and never a part of them.
 * 2. Each has a code. An answer carries it, and the process of the session compares it.
 */

import type { ServerQuestion } from '@pawl/agent/extensions/mcp/question';
import type { LiveQuestionText } from '@pawl/inspector/page-data-types';
import type { Approval } from '@pawl/serve/open-sessions';
import { type Look, oneLine } from '@pawl/terminal/paint';
import { questionRows, serverQuestionRows } from '@pawl/terminal/question-rows';
import { questionHeading } from '@pawl/terminal/questions';
import { joinSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import type { LiveClient } from './live-client.js';

type Shown = {
  readonly code: string;
  /** One line, which may be cut. */
  readonly title: string;
  readonly heading: Safe;
  readonly text: Safe;
};

export type WaitingCall = Shown & Omit<LiveQuestionText, 'text'> & { readonly kind: 'call' };

export type WaitingQuestion =
  | WaitingCall
  | (Shown & { readonly kind: 'server'; readonly question: ServerQuestion });

const TITLE_MAX = 100;

/** For texts that no terminal shows, such as JSON. */
export const PLAIN_LOOK: Look = { colour: 'no', plain: 'no', background: 'unknown', columns: 100 };

const isNumber = (answer: string): boolean => /^[1-4]$/.test(answer);

/** The rows are those of a terminal, without its keys. */
const describeCall = (asked: Approval, look: Look): WaitingCall => {
  const { batchId, callId, code, tool, subject } = asked;
  const rows = questionRows({ ...asked, choices: [] }, look, look.columns);
  return {
    kind: 'call',
    batchId,
    callId,
    code,
    tool,
    about: subject.kind === 'question' || subject.kind === 'plan' ? subject.kind : 'call',
    choices: asked.choices.filter(({ answer }) => isNumber(answer)).map(({ allows }) => allows),
    title: oneLine(subject.text, TITLE_MAX),
    heading: questionHeading(asked),
    text: joinSafe(rows, safe`\n`),
  };
};

const describeServer = (
  question: ServerQuestion,
  code: string,
  { columns }: Look,
): WaitingQuestion => {
  const [heading = safe``, ...rows] = serverQuestionRows(question, columns, 'withChoices');
  const title = oneLine(`${question.server}: ${question.message}`, TITLE_MAX);
  return { kind: 'server', code, title, heading, text: joinSafe(rows, safe`\n`), question };
};

/** Calls that wait, in their order. Rejects with NotReached or Refused. */
export const readWaitingCalls = async (
  client: LiveClient,
  look: Look,
): Promise<readonly WaitingCall[]> => {
  const { approvals } = await client.describe();
  // described by our own process
  return (approvals as readonly Approval[]).map((asked) => describeCall(asked, look));
};

/** Calls, then the question of an MCP server. Rejects with NotReached or Refused. */
export const readWaiting = async (
  client: LiveClient,
  look: Look,
): Promise<readonly WaitingQuestion[]> => {
  const calls = await readWaitingCalls(client, look);
  // after -1: whatever waits now
  const asked = await client.call('serverQuestion', { after: -1 });
  return asked.question === null
    ? calls
    : [...calls, describeServer(asked.question, asked.code, look)];
};
