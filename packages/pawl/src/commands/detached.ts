/**
 * `pawl -p --detach`, and the commands about detached sessions, each of which runs in a process of
 * its own without a terminal.
 *
 * From top to bottom: the start; `pawl sessions --live`, `stop`, `answer`, `resume`, `attach` and
 * `logs`.
 */

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  readTyped,
  type ServerAnswer,
  type ServerQuestion,
} from '@pawl/agent/extensions/mcp/question';
import type { ApprovalAnswer } from '@pawl/agent/machine/event';
import { attempt, attemptNow } from '@pawl/agent/platform/attempt';
import { systemClock } from '@pawl/agent/platform/clock';
import { hasEnded } from '@pawl/agent/platform/processes';
import { plural } from '@pawl/agent/platform/text';
import { SessionFollower } from '@pawl/agent/session/follow';
import { aboutPresets } from '@pawl/agent/session/session-settings';
import { isQuestionCode } from '@pawl/serve/question-code';
import {
  countColumns,
  detectLook,
  formatDuration,
  formatSpent,
  harmless,
  oneLine,
  windowSize,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { endWorktree, launchPrompt, relaunch } from '../detached/launch.js';
import { LiveClient, NotReached, Silent } from '../detached/live-client.js';
import {
  PLAIN_LOOK,
  readWaiting,
  type WaitingCall,
  type WaitingQuestion,
} from '../detached/waiting-questions.js';
import { type Prompt, refuseEmpty } from '../headless/headless.js';
import { exitCodes, Stop } from '../process/exit-codes.js';
import {
  findLive,
  type LiveSession,
  listLive,
  removeLive,
  statusWords,
} from '../sessions/live-records.js';
import { createLogPrinter } from '../sessions/session-text.js';
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
  const { sessionId, workspace, preset } = await launchPrompt(flags, prompt);
  writeOut(safe`${makeSafe(sessionId)}\n`);
  writeError(
    makeSafe(
      `It runs in ${workspace}${preset === undefined ? '' : `, preset ${preset}: ${aboutPresets[preset]}`}.\n` +
        `To look on: pawl attach ${sessionId}\nAll of them: pawl sessions --live\n`,
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
  const spent = join(
    formatSpent(activity.costUsd, activity),
    makeSafe(plural(activity.rounds, 'round')),
  );
  const since = makeSafe(`since ${formatDuration(nowMs - startedAtMs)}`);
  const folder = oneLine(workspace, Number.POSITIVE_INFINITY);
  const id = makeSafe(sessionId);
  const row = join(id, oneLine(words, 120), spent, folder, since, oneLine(title, 60));
  if (countColumns(row) < columns) return row;
  const about = join(safe`   `, oneLine(title, 20), spent, since);
  const room = Math.max(10, columns - countColumns(about) - 3);
  const end = folder.length > room ? safe`…${folder.slice(-room + 1)}` : folder;
  return safe`${join(id, oneLine(words, Math.max(20, columns - id.length - 3)))}\n${join(about, end)}`;
};

/** Below a row with a question, of which it shows the beginning. */
const waitingHint = ({ record, status }: LiveSession): Safe => {
  if (status !== 'runs' || record.activity.kind !== 'waiting') return safe``;
  return makeSafe(`\n   To read all of it and answer: pawl answer ${record.sessionId}`);
};

/** The questions of a session, whole and with their codes; cut if its process does not answer. */
const listQuestions = async ({ record, status }: LiveSession): Promise<readonly object[]> => {
  if (status !== 'runs' || record.activity.kind !== 'waiting') return [];
  const read = await attempt(() => readWaiting(new LiveClient(record.sessionId), PLAIN_LOOK));
  // its process ends just now: the record has what it was about
  return read.kind === 'done' ? read.value : record.activity.questions;
};

/** `pawl sessions --live`: a line or two for each detached session, the last started first. */
export const listDetached = async (json: boolean): Promise<number> => {
  const nowMs = systemClock.now();
  const columns = process.stdout.isTTY
    ? windowSize(process.stdout.columns).columns
    : Number.POSITIVE_INFINITY;
  const all = await listLive();
  if (all.length === 0) writeError(safe`There is no detached session.\n`);
  for (const live of all) {
    const { sessionId, workspace, title, startedAtMs, activity, process: owner } = live.record;
    if (json)
      writeJson({
        sessionId,
        status: live.status,
        pid: isAlive(live) ? owner.pid : null,
        state: statusWords(live, nowMs),
        questions: await listQuestions(live),
        costUsd: activity.costUsd,
        ...(activity.atLeast ? { costAtLeast: true } : {}),
        rounds: activity.rounds,
        workspace,
        title,
        startedAt: startedAtMs,
        changedAt: activity.sinceMs,
      });
    else writeOut(safe`${listRow(live, nowMs, columns)}${waitingHint(live)}\n`);
  }
  return exitCodes.done;
};

/** How long a session may take to end: the grace period of its tools, and some more. */
const END_WAIT_MS = 30_000;
const LOOK_MS = 50;

/**
 * `pawl stop ID`: cancels the turn, then closes the session in order. `kill`: ends its process at
 * once, for one that does not answer. `endWorktree` removes a git worktree that was made for it,
 * unless work would be lost, and tells how to go on.
 */
export const stopDetached = async (prefix: string, kill: boolean): Promise<number> => {
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
  if (kill) killProcess(record);
  else await closeInOrder(connectLive(sessionId));
  const endsAt = performance.now() + END_WAIT_MS;
  for (;;) {
    const now = await findLive(sessionId);
    if (!isAlive(now)) break;
    if (performance.now() > endsAt)
      throw new Stop(
        exitCodes.tryAgain,
        'tryAgain',
        `${sessionId} was told to end, and its process still runs. Look again: pawl sessions --live`,
      );
    await pause(LOOK_MS);
  }
  if (kill) {
    writeError(
      makeSafe(
        `Killed: ${sessionId}, as by a crash: a command that ran may still run. ` +
          `pawl attach ${sessionId} brings the session back and says what became of it.\n`,
      ),
    );
    return exitCodes.done;
  }
  writeError(makeSafe(`Ended: ${sessionId}. ${await endWorktree(record)}`));
  return exitCodes.done;
};

const closeInOrder = async (client: LiveClient): Promise<void> => {
  // nothing to cancel is as good
  const cancelled = await attempt(() => client.send({ type: 'CancelTurn' }));
  if (cancelled.kind === 'fault' && cancelled.fault instanceof Silent) throw cancelled.fault;
  const closed = await attempt(() => client.close());
  // an error of a session that ends just now is looked at by who waits for its end
  if (closed.kind === 'fault' && !(closed.fault instanceof NotReached)) throw closed.fault;
};

/** Only a process that is certainly the session's is killed. */
const killProcess = ({ process: known }: LiveSession['record']): void => {
  // one that ends just now is as good
  if (!hasEnded(known)) attemptNow(() => process.kill(known.pid, 'SIGKILL'));
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

/** Prints the whole question as a terminal shows it, with its code and what to type. */
const showQuestion = (sessionId: string, question: WaitingQuestion): void => {
  const { heading, text, code } = question;
  const choices = question.kind === 'call' ? question.choices : [];
  const numbered = choices.map((choice, index) => safe`  ${index + 1}  ${harmless(choice)}`);
  const command = makeSafe(`pawl answer ${sessionId} ${code}`);
  const rows = [heading, text, ...numbered, safe`To answer: ${command} ${answerForms(question)}`];
  writeOut(safe`${joinSafe(rows, safe`\n`)}\n`);
};

/** The words that answer a question. */
const answerForms = (question: WaitingQuestion): Safe => {
  if (question.kind === 'server') return safe`VALUE|yes|no`;
  return question.about === 'question' ? safe`NUMBER|"words"|no` : safe`yes|no "reason"`;
};

const showAsJson = (sessionId: string, question: WaitingQuestion): void =>
  writeJson({ sessionId, ...question });

type TypedAnswer = {
  /** The code that was typed; null without one. */
  readonly code: string | null;
  readonly words: readonly string[];
};

const readTypedAnswer = (words: readonly string[]): TypedAnswer => {
  const [first = '', ...rest] = words;
  return isQuestionCode(first) ? { code: first, words: rest } : { code: null, words };
};

/**
 * The question that the words answer. Without a code only a no is taken, which allows nothing, and
 * only if one question waits. Otherwise the questions are shown, and a `Stop` says what to type.
 */
const chooseQuestion = (
  sessionId: string,
  questions: readonly WaitingQuestion[],
  { code, words }: TypedAnswer,
): WaitingQuestion => {
  const refuse = (reason: string, why: string): Stop => {
    for (const question of questions) showQuestion(sessionId, question);
    const isAny = questions.length > 0;
    const next = isAny ? ' Read what waits, above, and answer with its code.' : '';
    return new Stop(exitCodes.badInput, reason, `${why}${next}`);
  };
  const [only] = questions;
  if (code !== null) {
    const named = questions.find((question) => question.code === code);
    if (named !== undefined) return named;
    const why = 'it was answered before, has changed, or was never asked';
    throw refuse('conflict', `No question with the code ${code} waits: ${why}. Nothing changed.`);
  }
  if (only === undefined) throw refuse('notFound', `${sessionId} waits for no answer.`);
  if (words[0] !== 'no')
    throw refuse('notShown', 'Only a question that you have read is answered.');
  if (questions.length > 1) throw refuse('notFound', 'Several questions wait.');
  return only;
};

const ANSWERED = { allow: 'Allowed', deny: 'Refused' } as const;

/** What was done, as words: a question is answered, never allowed. */
const answeredWords = ({ title, about }: WaitingCall, answer: ApprovalAnswer): string => {
  if (answer.kind === 'reply') return `Answered: ${title} ${answer.text}`;
  if (about === 'question' && answer.kind === 'allow') return `Answered: ${title} yes`;
  return `${ANSWERED[answer.kind]}: ${title}`;
};

/** Reads `yes`, `no [REASON]` or `WORDS`. The number of a choice stands for its text. */
const readAnswer = (
  { about, choices }: WaitingCall,
  [first = '', ...rest]: readonly string[],
): ApprovalAnswer => {
  const more = rest.join(' ');
  if (first === 'no') return { kind: 'deny', reason: more };
  if (first === 'yes' && more !== '') throw usageStop('Only no takes a reason.');
  if (first === 'yes') return { kind: 'allow' };
  const text = [first, ...rest].join(' ').trim();
  if (about !== 'question' || text === '') throw usageStop('Answer with yes, or with no "reason".');
  return { kind: 'reply', text: choices[Number(text) - 1] ?? text };
};

/** What a server is told: yes, no, or the value of its only field. Throws a `Stop` otherwise. */
const serverAnswer = (
  sessionId: string,
  { asks, server }: ServerQuestion,
  words: readonly string[],
): ServerAnswer => {
  const typed = words.join(' ');
  if (words[0] === 'no') {
    if (words.length > 1) throw usageStop(`${server} gets no reason. Answer with no alone.`);
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
    `${server} asks for ${field.label}.${why} It is written as: pawl answer ${sessionId} CODE VALUE`,
  );
};

/**
 * What became of an answer whose process ended before it confirmed it, as the journal says. Throws
 * a `Stop` if the answer was not taken, or the process still runs.
 */
const readUnconfirmed = async (
  sessionId: string,
  call: WaitingCall,
  answer: ApprovalAnswer,
): Promise<string> => {
  const dead = `The process of ${sessionId} ended before it had confirmed the answer.`;
  if ((await findLive(sessionId))?.status === 'runs')
    throw new Stop(
      exitCodes.tryAgain,
      'tryAgain',
      `The connection to ${sessionId} broke before it had confirmed the answer. Whether it was ` +
        `taken is not known yet. Look again: pawl answer ${sessionId}`,
    );
  const taken: ApprovalAnswer[] = [];
  await foldStored(sessionId, undefined, ({ event }) => {
    if (event.type !== 'ApprovalAnswered' || event.batchId !== call.batchId) return;
    if (event.callId === call.callId) taken.push(event.answer);
  });
  if (taken.length === 0)
    throw new Stop(
      exitCodes.badInput,
      'died',
      `${dead} It was not taken. pawl attach ${sessionId} brings the session back, which asks again.`,
    );
  if (!isDeepStrictEqual(taken[0], answer))
    throw new Stop(exitCodes.badInput, 'conflict', `${dead} Another answer was taken before it.`);
  return (
    `${answeredWords(call, answer)}\nIts process ended then: pawl attach ${sessionId} brings the ` +
    'session back, which goes on with this answer.'
  );
};

/** Sends the answer with the code of the question. Resolves with what was done, in words. */
const sendAnswer = async (
  client: LiveClient,
  question: WaitingQuestion,
  words: readonly string[],
): Promise<string> => {
  if (question.kind === 'call') {
    const answer = readAnswer(question, words);
    const sent = await attempt(() => client.answer(question, answer));
    if (sent.kind === 'done') return answeredWords(question, answer);
    if (!(sent.fault instanceof NotReached)) throw sent.fault;
    return readUnconfirmed(client.sessionId, question, answer);
  }
  const answer = serverAnswer(client.sessionId, question.question, words);
  await client.call('answerServer', { code: question.code, answer });
  return `${answer.action === 'accept' ? 'Answered' : 'Declined'}: ${question.title}`;
};

/** Lines that came so soon after a question were typed before it was read. */
const QUIET_MS = 500;

/** Shows each question in the terminal and takes its answer there. An empty line leaves it open. */
const askHere = async (
  client: LiveClient,
  questions: readonly WaitingQuestion[],
): Promise<void> => {
  const lines = createInterface({ input: process.stdin });
  let takeLine = (_line: string): void => undefined;
  lines.on('line', (line) => takeLine(line));
  const ended = once(lines, 'close').then(() => '');
  for (const question of questions) {
    showQuestion(client.sessionId, question);
    await pause(QUIET_MS);
    await setImmediate(); // also on a busy machine all that was typed before is read by then
    writeError(safe`Your answer (Enter alone leaves it open): `);
    const typed = new Promise<string>((resolve) => {
      takeLine = resolve;
    });
    const words = (await Promise.race([typed, ended])).split(/\s+/).filter(Boolean);
    takeLine = () => undefined;
    if (words.length === 0) continue;
    const sent = await attempt(() => sendAnswer(client, question, words));
    if (sent.kind === 'fault' && !(sent.fault instanceof Stop)) throw sent.fault;
    const said = sent.kind === 'done' ? sent.value : sent.fault.message;
    writeError(makeSafe(`${said}\n`));
  }
  lines.close();
};

/**
 * `pawl answer ID` shows what waits, and asks in a terminal. `pawl answer ID CODE yes|no [reason]`,
 * or words for a question of the model or of an MCP server, answers the question with that code.
 * The process of the session compares the code, so an answer counts for no other question.
 */
export const answerDetached = async (
  prefix: string,
  words: readonly string[],
  json: boolean,
): Promise<number> => {
  const typed = readTypedAnswer(words);
  if (json && typed.words.length > 0)
    throw usageStop('--json prints the questions. Leave it out to answer.');
  const { sessionId } = refuseElsewhere(await findDetached(prefix), 'Answer it there').record;
  const client = connectLive(sessionId);
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  const look = json ? PLAIN_LOOK : detectLook(process.stdout, process.env);
  const done = await attempt(async () => {
    const questions = await readWaiting(client, look);
    const asksHere = isTerminal && typed.code === null && typed.words[0] !== 'no';
    if (typed.words.length > 0 && !asksHere) {
      const question = chooseQuestion(sessionId, questions, typed);
      writeError(makeSafe(`${await sendAnswer(client, question, typed.words)}\n`));
    } else if (questions.length === 0) chooseQuestion(sessionId, questions, typed);
    else if (asksHere && !json) await askHere(client, questions);
    else for (const one of questions) (json ? showAsJson : showQuestion)(sessionId, one);
  });
  if (done.kind === 'done') return exitCodes.done;
  throw done.fault instanceof NotReached ? notRunning(sessionId) : done.fault;
};

/** Starts of processes that may run beside each other: a slow one holds up no other. */
const STARTS_AT_ONCE = 4;

const wasLocked = (fault: unknown): boolean => fault instanceof Stop && fault.reason === 'locked';

/** Whether a process has the detached session open, or opens it. */
const isAlive = (live: LiveSession | null): boolean =>
  live?.status === 'runs' || live?.status === 'starting';

/** How long a process that has the session's lock may take until it is listed. */
const LISTED_WAIT_MS = 10_000;

/** Whether another command brings the session back, and not a terminal has it open. */
const isBroughtBack = async (sessionId: string): Promise<boolean> => {
  const endsAt = performance.now() + LISTED_WAIT_MS;
  for (;;) {
    const live = await findLive(sessionId);
    if (live?.status !== 'elsewhere' || performance.now() > endsAt) return isAlive(live);
    await pause(LOOK_MS);
  }
};

/** Starts a session again and prints its id. Resolves with an exit code. */
const bringBack = async ({ record, status }: LiveSession): Promise<number> => {
  const { sessionId } = record;
  if (status === 'runs') {
    writeError(makeSafe(`${sessionId} runs already.\n`));
    return exitCodes.done;
  }
  const started = await attempt(() => relaunch(record));
  const isHeld = started.kind === 'fault' && wasLocked(started.fault);
  if (started.kind === 'done') writeOut(safe`${makeSafe(sessionId)}\n`);
  else if (isHeld && (await isBroughtBack(sessionId)))
    writeError(makeSafe(`${sessionId} runs already.\n`));
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
  const { record } = live;
  const { sessionId } = record;
  const { runTerminal, refuseWithoutTerminal } = await import('../interactive/run-sessions.js');
  refuseWithoutTerminal();
  refuseElsewhere(live, 'Go on with it there');
  if (!isAlive(live)) await relaunch(record);
  const { plain, verbose } = flags;
  const own = { ...(plain ? { plain } : {}), ...(verbose ? { verbose } : {}) };
  return runTerminal({ ...own, resume: sessionId, workspace: record.workspace }, null);
};

/** `pawl logs ID`: the steps of a session as lines, as `pawl -p --verbose` prints them. */
export const showLogs = async (prefix: string, follows: boolean): Promise<number> => {
  const sessionId = await findSession(prefix);
  const live = follows ? refuseElsewhere(await findDetached(sessionId), 'Look at it there') : null;
  const { workspace } = (await storedJournals().peek(sessionId)).state.session.settings;
  const printer = createLogPrinter(detectLook(process.stdout, process.env), workspace);
  const { seq, state } = await foldStored(sessionId, undefined, printer.see);
  if (live !== null) {
    const { followStream } = await import('../detached/remote-session.js');
    // makes steps from what the process streams, from the last stored one on
    const follower = new SessionFollower(state, seq, printer.see);
    await followStream(connectLive(sessionId), follower, new AbortController().signal);
  }
  printer.writeLines(safe``); // ends a reply that has no line end
  return exitCodes.done;
};
