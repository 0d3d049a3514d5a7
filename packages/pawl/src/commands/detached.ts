/**
 * `pawl -p --detach`, and the commands about detached sessions, each of which runs in a process of
 * its own without a terminal.
 *
 * From top to bottom: the start; `pawl sessions --live`, `stop`, `answer`, `resume`, `attach` and
 * `logs`.
 */

import { setTimeout as pause } from 'node:timers/promises';
import {
  readTyped,
  type ServerAnswer,
  type ServerQuestion,
} from '@pawl/agent/extensions/mcp/question';
import type { ApprovalAnswer } from '@pawl/agent/machine/event';
import { attempt } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { plural } from '@pawl/agent/platform/text';
import type { Stepped } from '@pawl/agent/ports/session';
import { countColumns, detectLook, formatCost, harmless, oneLine } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { createStepPrinter, withDetail } from '@pawl/terminal/step-lines';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { endWorktree, launchPrompt, relaunch } from '../detached/launch.js';
import { LiveClient, NotReached, Refused } from '../detached/live-client.js';
import {
  findLive,
  formatAge,
  type LiveQuestion,
  type LiveSession,
  listLive,
  removeLive,
  statusWords,
} from '../detached/live-records.js';
import type { ServerQuestionNow } from '../detached/own-requests.js';
import { type Prompt, refuseEmpty } from '../headless/headless.js';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { findSession, foldStored, storedJournals } from '../sessions/stored-sessions.js';
import { type RunFlags, usageStop } from '../settings/flags.js';

/** `pawl -p --detach`: prints the id when the prompt is stored. */
export const runDetached = async (flags: RunFlags, prompt: Prompt): Promise<number> => {
  for (const [value, name] of [
    [flags.json, '--json'],
    [flags.jsonSchema, '--json-schema'],
    [flags.failOn, '--fail-on'],
  ] as const)
    if (value !== undefined)
      throw usageStop(
        `${name} is about the end of a turn, which --detach does not wait for. Leave one of them out.`,
      );
  refuseEmpty(prompt);
  // starts the process of the session, and waits until it has stored the prompt
  const { sessionId, workspace } = await launchPrompt(flags, prompt);
  writeOut(safe`${makeSafe(sessionId)}\n`);
  writeError(
    makeSafe(
      `It works in ${workspace}. To look on and answer: pawl attach ${sessionId} · all of them: ` +
        'pawl sessions --live\n',
    ),
  );
  return exitCodes.done;
};

const notDetached = (sessionId: string): Stop =>
  new Stop(
    exitCodes.badInput,
    'notFound',
    `${sessionId} is no detached session, or was ended by pawl stop. pawl sessions --live lists ` +
      `them; to go on with it here: pawl --resume ${sessionId}`,
  );

/** Finds a detached session by its id or a unique beginning of it. */
const findDetached = async (prefix: string): Promise<LiveSession> => {
  const sessionId = await findSession(prefix);
  const live = await findLive(sessionId);
  if (live === null) throw notDetached(sessionId);
  return live;
};

/**
 * The session, unless it is open elsewhere: in a process that is not its own, such as a terminal.
 * `advice`: what to do instead.
 */
const refuseElsewhere = (live: LiveSession, advice: string): LiveSession => {
  if (live.status !== 'elsewhere') return live;
  throw new Stop(
    exitCodes.badInput,
    'elsewhere',
    `${live.record.sessionId} is open in another process, such as a terminal. ${advice}.`,
  );
};

/** One line; two where `columns` has no room for it, with the end of the folder if that is long. */
const listRow = (live: LiveSession, nowMs: number, columns: number): Safe => {
  const { sessionId, activity, workspace, startedAtMs, title } = live.record;
  const join = (...parts: readonly Safe[]): Safe => joinSafe(parts, safe`  `);
  const words = statusWords(live, nowMs); // what it does, or why it does nothing
  const spent = join(formatCost(activity.costUsd), makeSafe(plural(activity.rounds, 'round')));
  const since = makeSafe(`since ${formatAge(nowMs - startedAtMs)}`);
  const folder = oneLine(workspace, Number.POSITIVE_INFINITY);
  const id = makeSafe(sessionId);
  const row = join(id, oneLine(words, 120), spent, folder, since, oneLine(title, 60));
  if (countColumns(row) < columns) return row;
  const about = join(safe`   `, oneLine(title, 20), spent, since);
  const room = Math.max(10, columns - countColumns(about) - 3);
  const end = folder.length > room ? safe`…${folder.slice(-room + 1)}` : folder;
  return safe`${join(id, oneLine(words, Math.max(20, columns - id.length - 3)))}\n${join(about, end)}`;
};

/** `pawl sessions --live`: a line or two for each detached session, the last started first. */
export const listDetached = async (json: boolean): Promise<number> => {
  const nowMs = systemClock.now();
  const columns = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  for (const live of await listLive()) {
    const { sessionId, workspace, title, startedAtMs, activity } = live.record;
    const { status } = live;
    if (json)
      writeJson({
        sessionId,
        status,
        state: statusWords(live, nowMs),
        questions: status === 'runs' ? activity.questions : [],
        costUsd: activity.costUsd,
        rounds: activity.rounds,
        workspace,
        title,
        startedAt: startedAtMs,
        changedAt: activity.sinceMs,
      });
    else writeOut(safe`${listRow(live, nowMs, columns)}\n`);
  }
  return exitCodes.done;
};

/** How long a session may take to end: the grace period of its tools, and some more. */
const END_WAIT_MS = 30_000;
const LOOK_MS = 50;

/**
 * `pawl stop ID`: cancels the turn, then closes the session in order. `endWorktree` removes a git
 * worktree that was made for it, unless work would be lost, and tells how to go on.
 */
export const stopDetached = async (prefix: string): Promise<number> => {
  const { record, status } = refuseElsewhere(await findDetached(prefix), 'End it there');
  const { sessionId } = record;
  if (status !== 'runs' && status !== 'starting') {
    await removeLive(sessionId, 'record'); // it is no detached session any more
    writeError(
      makeSafe(
        `${sessionId} did not run any more. It is not brought back by pawl resume --all now. ` +
          (await endWorktree(record)),
      ),
    );
    return exitCodes.done;
  }
  const client = connectLive(sessionId);
  // nothing to cancel is as good
  await attempt(() => client.send({ type: 'CancelTurn' }));
  const closed = await attempt(() => client.close());
  // an error of a session that ends just now is looked at below
  if (closed.kind === 'fault' && !(closed.fault instanceof NotReached)) throw closed.fault;
  const endsAt = performance.now() + END_WAIT_MS;
  for (;;) {
    const now = await findLive(sessionId);
    if (now === null || (now.status !== 'runs' && now.status !== 'starting')) break;
    if (performance.now() > endsAt)
      throw new Stop(
        exitCodes.tryAgain,
        'tryAgain',
        `${sessionId} was told to end, and its process still runs. Look again: pawl sessions --live`,
      );
    await pause(LOOK_MS);
  }
  writeError(makeSafe(`Ended: ${sessionId}. ${await endWorktree(record)}`));
  return exitCodes.done;
};

const notRunning = (sessionId: string): Stop =>
  new Stop(
    exitCodes.badInput,
    'died',
    `${sessionId} does not run. pawl attach ${sessionId} brings it back.`,
  );

/** A connection to the process of the session. */
const connectLive = (sessionId: string): LiveClient => {
  try {
    return new LiveClient(sessionId);
  } catch (error) {
    throw error instanceof NotReached ? notRunning(sessionId) : error;
  }
};

/**
 * A question that waits. `takesWords`: the model asks for words, not for a permission. `choices`:
 * the texts of its choices, by their numbers.
 */
type AskedQuestion = LiveQuestion & {
  readonly takesWords: boolean;
  readonly choices: ReadonlyMap<string, string>;
};

const endedText = (call: string): string => `${call} was answered before, or was never asked`;

/** The question that the answer is for: that of the named call, or the only one. */
const chooseQuestion = (
  sessionId: string,
  questions: readonly AskedQuestion[],
  call: string | undefined,
): AskedQuestion => {
  const fitting = questions.filter(({ callId }) => call === undefined || callId === call);
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  const list = questions.map(({ callId, title }) => `\n  ${callId}  ${title}`).join('');
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    questions.length === 0
      ? `${sessionId} waits for no answer${call === undefined ? '' : `: ${endedText(call)}`}.`
      : `${call === undefined ? 'Several calls wait' : `No call ${call} waits: ${endedText(call)}`}. ` +
          `Name one: pawl answer ${sessionId} CALL yes|no${list}`,
  );
};

const YES_OR_NO = ['yes', 'no'];
const ANSWERED = { allow: 'Allowed', deny: 'Refused' } as const;

/** What was done, as words: a question is answered, never allowed. */
const answeredWords = ({ title, takesWords }: AskedQuestion, answer: ApprovalAnswer): string => {
  if (answer.kind === 'reply') return `Answered: ${title} ${answer.text}`;
  if (takesWords && answer.kind === 'allow') return `Answered: ${title} yes`;
  return `${ANSWERED[answer.kind]}: ${title}`;
};

type TypedAnswer = { readonly call?: string; readonly answer: ApprovalAnswer };

/**
 * Reads `[CALL] yes`, `[CALL] no [REASON]` or `[CALL] WORDS`. Before other words than yes and no a
 * call counts only if it is one of `waiting`: any word could begin a reply.
 */
const readAnswerWords = (words: readonly string[], waiting: readonly string[]): TypedAnswer => {
  const yesOrNo = words.findIndex((word, index) => index < 2 && YES_OR_NO.includes(word));
  // where the answer begins: 1 behind a call, else 0
  const at = yesOrNo < 0 && waiting.includes(words[0] ?? '') ? 1 : Math.max(yesOrNo, 0);
  const [call] = words;
  const about = at === 1 && call !== undefined ? { call } : {};
  const reason = words.slice(at + 1).join(' ');
  if (words[at] === 'no') return { ...about, answer: { kind: 'deny', reason } };
  if (words[at] !== 'yes')
    return { ...about, answer: { kind: 'reply', text: words.slice(at).join(' ').trim() } };
  if (reason !== '') throw usageStop('Only no takes a reason.');
  return { ...about, answer: { kind: 'allow' } };
};

/** The answer to this question. The number of a choice stands for its text. */
const completeAnswer = (question: AskedQuestion, answer: ApprovalAnswer): ApprovalAnswer => {
  if (answer.kind !== 'reply') return answer;
  if (!question.takesWords || answer.text === '')
    throw usageStop('It is written as: pawl answer ID yes, or pawl answer ID CALL no "reason".');
  return { kind: 'reply', text: question.choices.get(answer.text) ?? answer.text };
};

/** The waiting questions, from the description that the session's process gives. */
const questionsFrom = (approvals: unknown): readonly AskedQuestion[] =>
  // unchecked, since it is our own process that describes them
  (Array.isArray(approvals) ? approvals : []).map((one) => ({
    batchId: String(one.batchId),
    callId: String(one.callId),
    tool: String(one.tool),
    title: oneLine(String(one.subject?.text ?? one.tool), 100),
    takesWords: one.subject?.kind === 'question',
    choices: new Map<string, string>(
      (Array.isArray(one.choices) ? one.choices : [])
        .filter(({ answer }: { answer: unknown }) => /^[1-4]$/.test(String(answer)))
        .map(({ answer, allows }: Record<string, unknown>) => [String(answer), String(allows)]),
    ),
  }));

/** What a server is told: yes, no, or the value of its only field. Throws a `Stop` otherwise. */
const serverAnswer = (
  sessionId: string,
  { asks, server }: ServerQuestion,
  words: readonly string[],
): ServerAnswer => {
  const typed = words.join(' ');
  const [call = '', second = ''] = words;
  // meant for a call: no server is to read it
  if (YES_OR_NO.includes(second))
    throw new Stop(
      exitCodes.badInput,
      'notFound',
      `No call waits: ${endedText(call)}. ${server} asks; it is written as: pawl answer ` +
        `${sessionId} VALUE|no`,
    );
  if (words[0] === 'no') {
    if (words.length > 1) throw usageStop(`${server} gets no reason: pawl answer ${sessionId} no`);
    return { action: 'decline' };
  }
  const fields = asks.kind === 'form' ? asks.fields : [];
  const [field] = fields;
  if (typed === 'yes' && !fields.some(({ isRequired }) => isRequired))
    return { action: 'accept', content: {} };
  if (field === undefined) throw usageStop(`${server} takes yes or no.`);
  if (fields.length > 1)
    throw usageStop(`${server} asks for ${fields.length} values: pawl attach ${sessionId}`);
  // A bare yes is meant as a permission, so it is no value, but for a switch.
  const isWord = field.type.kind !== 'boolean' && typed === 'yes';
  const read = isWord ? null : readTyped(typed, field);
  if (read?.kind === 'value') return { action: 'accept', content: { [field.name]: read.value } };
  const why = read === null ? '' : ` ${read.why}`;
  throw usageStop(
    `${server} asks for ${field.label}.${why} It is written as: pawl answer ${sessionId} VALUE`,
  );
};

/** Answers what an MCP server asks. null: none asks. */
const answerServer = async (
  client: LiveClient,
  words: readonly string[],
): Promise<string | null> => {
  // `own` asks the session's process itself, not the machine; after -1: whatever waits now
  const { number, question } = await client.own<ServerQuestionNow>('serverQuestion', { after: -1 });
  if (question === null) return null;
  const answer = serverAnswer(client.sessionId, question, words);
  await client.own('answerServer', { number, answer });
  const title = oneLine(`${question.server}: ${question.message}`, 100);
  return `${answer.action === 'accept' ? 'Answered' : 'Declined'}: ${title}`;
};

/**
 * `pawl answer ID [CALL] yes|no [reason]`, or words for a question of the model or of an MCP
 * server. An answer that came too late changes nothing.
 */
export const answerDetached = async (prefix: string, words: readonly string[]): Promise<number> => {
  if (words.length === 0)
    throw usageStop('It is written as: pawl answer ID yes, or pawl answer ID CALL no "reason".');
  const { sessionId } = refuseElsewhere(await findDetached(prefix), 'Answer it there').record;
  const client = connectLive(sessionId);
  const sent = await attempt(async () => {
    const { approvals } = await client.describe();
    const waiting = questionsFrom(approvals);
    // questions of calls go first
    const serverText = waiting.length === 0 ? await answerServer(client, words) : null;
    if (serverText !== null) return serverText;
    const { call, answer } = readAnswerWords(
      words,
      waiting.map(({ callId }) => callId),
    );
    const question = chooseQuestion(sessionId, waiting, call);
    const { batchId, callId } = question;
    const chosen = completeAnswer(question, answer);
    await client.send({ type: 'ApprovalAnswered', batchId, callId, answer: chosen, scope: 'once' });
    return answeredWords(question, chosen);
  });
  if (sent.kind === 'done') {
    writeError(makeSafe(`${sent.value}\n`));
    return exitCodes.done;
  }
  if (sent.fault instanceof NotReached) throw notRunning(sessionId);
  if (sent.fault instanceof Refused && sent.fault.code === 'conflict')
    throw new Stop(exitCodes.badInput, 'conflict', sent.fault.message);
  throw sent.fault;
};

/** Starts of processes that may run beside each other: a slow one holds up no other. */
const STARTS_AT_ONCE = 4;

/** Starts a session again and prints its id. Resolves with the exit code that this one asks for. */
const bringBack = async ({ record, status }: LiveSession): Promise<number> => {
  const { sessionId } = record;
  if (status === 'runs') {
    writeError(makeSafe(`${sessionId} runs already.\n`));
    return exitCodes.done;
  }
  const started = await attempt(() => relaunch(record));
  if (started.kind === 'done') writeOut(safe`${makeSafe(sessionId)}\n`);
  // nothing was ever asked in it, so there is nothing to go on with
  else if (started.fault instanceof Stop && started.fault.reason === 'empty') {
    await removeLive(sessionId, 'record'); // it is no detached session any more
    await endWorktree(record);
  } else {
    writeError(makeSafe(`pawl: ${sessionId} can't go on: ${started.fault.message}\n`));
    return started.fault instanceof Stop ? started.fault.exit : exitCodes.internal;
  }
  return exitCodes.done;
};

/** `pawl resume --all`: starts every detached session again whose process died. */
export const resumeDetached = async (
  prefixes: readonly string[],
  all: boolean,
): Promise<number> => {
  if (all === prefixes.length > 0)
    throw usageStop(
      'It is written as: pawl resume --all, or pawl resume ID, for detached sessions. ' +
        'pawl --resume lists all sessions.',
    );
  const wanted = all ? await listLive() : await Promise.all(prefixes.map(findDetached));
  const chosen = wanted.filter(({ status }) => !all || status === 'died' || status === 'failed');
  const waiting = chosen.values(); // one iterator, from which each worker takes the next
  const exits: number[] = [];
  const work = async (): Promise<void> => {
    for (const one of waiting) exits.push(await bringBack(one));
  };
  await Promise.all(Array.from({ length: STARTS_AT_ONCE }, work));
  return exits.find((exit) => exit !== exitCodes.done) ?? exitCodes.done;
};

/** The session to attach to: one that runs, or the last started. */
const chooseLive = async (): Promise<LiveSession> => {
  const all = await listLive();
  const running = all.filter(({ status }) => status === 'runs');
  const [only] = running.length > 0 ? running : all;
  if (only !== undefined && running.length < 2) return only;
  throw usageStop(
    only === undefined
      ? 'There is no detached session. To start one: pawl -p "…" --detach'
      : 'Several sessions run. Name one: pawl attach ID. pawl sessions --live lists them.',
  );
};

/** `pawl attach`: the whole terminal on a session of another process, started if it died. */
export const attach = async (prefix: string | undefined, flags: RunFlags): Promise<number> => {
  const live = prefix === undefined ? await chooseLive() : await findDetached(prefix);
  const { record, status } = live;
  const { sessionId } = record;
  const { runTerminal, refuseWithoutTerminal } = await import('../interactive/run-sessions.js');
  refuseWithoutTerminal();
  refuseElsewhere(live, 'Go on with it there');
  if (status !== 'runs' && status !== 'starting') await relaunch(record);
  const { plain, verbose } = flags;
  const own = { ...(plain ? { plain } : {}), ...(verbose ? { verbose } : {}) };
  return runTerminal({ ...own, resume: sessionId, workspace: record.workspace }, null);
};

/** `pawl logs ID`: the steps of a session as lines, as `pawl -p --verbose` prints them. */
export const showLogs = async (prefix: string, follows: boolean): Promise<number> => {
  const sessionId = await findSession(prefix);
  const live = follows ? refuseElsewhere(await findDetached(sessionId), 'Look at it there') : null;
  const { workspace } = (await storedJournals().peek(sessionId)).state.session.settings;
  const print = createStepPrinter(detectLook(process.stdout, process.env), workspace);
  let isLineOpen = false;
  /** On lines of its own, below a reply. */
  const writeLines = (lines: Safe): void => {
    writeOut(safe`${isLineOpen ? safe`\n` : safe``}${lines}`);
    isLineOpen = false;
  };
  const printStep = (stepped: Stepped): void => {
    if (stepped.event.type === 'UserInput')
      writeLines(safe`> ${joinSafe(harmless(stepped.event.text).split('\n'), safe`\n  `)}\n`);
    for (const piece of print(stepped))
      if (piece.kind === 'lines') writeLines(safe`${withDetail(piece)}\n`);
      else if (piece.kind === 'stream') {
        writeOut(piece.text);
        isLineOpen = !piece.text.endsWith('\n');
      }
  };
  const { seq, state } = await foldStored(sessionId, undefined, printStep);
  if (live !== null) {
    const { followStream, RemoteSteps } = await import('../detached/remote-session.js');
    // makes steps from what the process streams, from the last stored one on
    const steps = new RemoteSteps(state, seq, printStep);
    await followStream(connectLive(sessionId), steps, new AbortController().signal);
  }
  writeLines(safe``); // ends a reply that has no line end
  return exitCodes.done;
};
