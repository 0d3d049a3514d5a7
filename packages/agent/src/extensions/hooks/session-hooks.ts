/**
 * The hooks of one session: programs or functions of the user that are asked at a named moment, one
 * after the other, whether something may happen.
 *
 * 1. Each gets one JSON object. Its answer counts only if it comes in time and has the form of one;
 *    everything else is a failure, and the hook's declaration says what follows from it.
 * 2. The first that denies ends the list: later hooks are not asked. All are asked at moments where
 *    nothing can be denied.
 * 3. Sessions that another session has started have no hooks that are about the user.
 *
 * The formatters and commits after tools are in workspace/after-tool-hooks.ts. From top to bottom:
 * the kinds of hooks; `createSessionHooks`; running the program of a hook; and the answer of a
 * hook.
 */

import type { JsonObject } from '@pawl/machine/kernel/shape';
import type { SessionSandbox } from '../../command/session-sandbox.js';
import { attemptNow } from '../../platform/attempt.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { findNamedProgram, type ProgramPath } from '../../platform/find-program.js';
import { type ProgramEnd, ProgramFailure, runProgram } from '../../platform/run-program.js';
import { SYSTEM_SHELL } from '../../platform/start-program.js';
import { cut, firstCharacters } from '../../platform/text.js';
import { parseBounded } from '../../platform/untrusted-input.js';
import type { SandboxLevel } from '../../policy/decide.js';
import type { HookDecision, HookVerdict } from '../../policy/judged-call.js';
import type { HookMoment, UserHooks } from '../../ports/hooks.js';

/** A hook that is a function of the program that embeds the agent. */
export type FunctionHook = {
  readonly name: string;
  readonly on: HookMoment | readonly HookMoment[];
  /** Names of tools; `*` stands for any text. Default: all tools. */
  readonly tools?: readonly string[];
  /** In milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /** What a hook says that fails or is too slow. Default: `deny` before a tool, else `allow`. */
  readonly onFailure?: 'allow' | 'deny';
  /** `input` is what a command reads from stdin. Returning nothing allows. */
  run(
    input: JsonObject,
    signal: AbortSignal,
  ): HookResult | undefined | Promise<HookResult | undefined>;
};

/** What a function returns: the fields that a command prints as JSON. */
export type HookResult = { readonly decision?: HookAnswer['decision'] } & Omit<
  HookAnswer,
  'decision'
>;

/** A hook that is a command: a text for the system's shell, or a program and its words. */
export type CommandHook = Pick<FunctionHook, 'name' | 'on' | 'timeoutMs'> & {
  readonly command: string | readonly string[];
  /** Names of tools; `*` stands for any text. Default: all tools. */
  readonly tools?: readonly string[] | null;
  /** Default: `off` for a hook of the user, `workspace` for one of a project. */
  readonly sandbox?: SandboxLevel | null;
  /** As in FunctionHook. */
  readonly onFailure?: 'allow' | 'deny' | null;
  /** The folder of the project that has it; absent or null for a hook of the user. */
  readonly folder?: string | null;
  /** Why it must not be run now, or null; absent: it may always. */
  whyNot?(): Promise<string | null>;
};

export type SessionHook = FunctionHook | CommandHook;

export type SessionHooksPlace = HookPlace & {
  readonly sessionId: string;
  /** `task`: another session has started this one. */
  readonly startedBy: 'user' | 'task';
};

const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest time of one hook at the end of a session. */
const END_TIMEOUT_MS = 10_000;

/** Moments of which hooks are asked in a session that another session has started (rule 3). */
const OF_TASKS = new Set<HookMoment>([
  'before-tool',
  'after-tool',
  'after-batch',
  'before-request',
  'before-compaction',
]);
/** Nothing can be denied at these moments. */
const TELLING = new Set<HookMoment>(['session-start', 'session-end', 'ask-user']);

const hookMoments = ({ on }: SessionHook): readonly HookMoment[] =>
  typeof on === 'string' ? [on] : on;

/**
 * Whether a name fits a pattern with `*`. Not by a regular expression: one with many `*` takes
 * time that grows with each of them.
 */
const matches = (pattern: string, tool: string): boolean => {
  const [first = '', ...pieces] = pattern.split('*');
  const last = pieces.pop();
  if (last === undefined) return tool === pattern;
  if (!tool.startsWith(first) || !tool.endsWith(last)) return false;
  const end = tool.length - last.length;
  let at = first.length;
  for (const piece of pieces) {
    const index = tool.indexOf(piece, at);
    if (index < 0) return false;
    at = index + piece.length;
  }
  return at <= end;
};

const isAbout = ({ tools }: SessionHook, tool: string | undefined): boolean =>
  tools === undefined ||
  tools === null ||
  (tool !== undefined && tools.some((one) => matches(one, tool)));

const hookDeadline = (hook: SessionHook, moment: HookMoment): number => {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = hook;
  return moment === 'session-end' ? Math.min(timeoutMs, END_TIMEOUT_MS) : timeoutMs;
};

/** Calls a function, which may hang or throw. */
const callFunction = (
  hook: FunctionHook,
  input: JsonObject,
  moment: HookMoment,
  signal: AbortSignal,
) =>
  new Promise<HookAnswer>((resolve, reject) => {
    const ended = new AbortController();
    const deadlineMs = hookDeadline(hook, moment);
    const stop = (why: string): void => {
      settle();
      ended.abort();
      reject(new HookFault(why));
    };
    const onAbort = (): void => stop('it was stopped');
    const timer = setTimeout(() => stop(`it took longer than ${deadlineMs / 1_000} s`), deadlineMs);
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    Promise.resolve()
      .then(() => hook.run(input, ended.signal))
      .then((raw: unknown) => {
        if (raw === undefined || raw === null) return resolve({ decision: 'allow' });
        if (typeof raw !== 'object') throw new HookFault('it returned no object');
        resolve(parseAnswer(raw, moment));
      })
      .catch(reject)
      .finally(settle);
  });

const runCommand = async (
  hook: CommandHook,
  input: JsonObject,
  moment: HookMoment,
  place: SessionHooksPlace,
  signal: AbortSignal,
): Promise<HookAnswer> => {
  const why = (await hook.whyNot?.()) ?? null;
  if (why !== null) throw new HookFault(why);
  const { name, command, folder = null } = hook;
  const level = hook.sandbox ?? (folder === null ? 'off' : 'workspace');
  const hookCommand = { name, command, folder, level, timeoutMs: hookDeadline(hook, moment) };
  const { code, output, errors } = await runHookProgram(
    hookCommand,
    JSON.stringify(input),
    place,
    signal,
  );
  return programAnswer({ code, output: output.toString('utf8'), errors }, moment);
};

/** The verdict of a hook that has failed: its declaration decides. */
const failed = (hook: SessionHook, moment: HookMoment, fault: string): HookVerdict => {
  const { onFailure } = hook;
  const declared = onFailure ?? (moment === 'before-tool' ? 'deny' : 'allow');
  const decision = TELLING.has(moment) ? 'allow' : declared;
  return { hook: hook.name, decision, ...(decision === 'deny' ? { reason: fault } : {}), fault };
};

/** The hooks as the session asks them. Null if there are none. */
export const createSessionHooks = (
  hooks: readonly SessionHook[],
  place: SessionHooksPlace,
): UserHooks | null => {
  /** Whether hooks are asked at this moment in this session (rule 3). */
  const isMeant = (moment: HookMoment): boolean =>
    place.startedBy === 'user' || OF_TASKS.has(moment);
  const chosen = (moment: HookMoment, tool: string | undefined): readonly SessionHook[] =>
    isMeant(moment)
      ? hooks.filter((hook) => hookMoments(hook).includes(moment) && isAbout(hook, tool))
      : [];

  const runOne = async (
    hook: SessionHook,
    moment: HookMoment,
    facts: JsonObject,
    signal: AbortSignal,
  ): Promise<HookVerdict> => {
    const { sessionId, workspace } = place;
    const input = {
      hook_event_name: moment,
      hook: hook.name,
      session_id: sessionId,
      cwd: workspace,
      ...facts,
    };
    try {
      const answer = await ('run' in hook
        ? callFunction(hook, input, moment, signal)
        : runCommand(hook, input, moment, place, signal));
      return { hook: hook.name, ...answer };
    } catch (error) {
      // nothing is lost: the verdict says what failed
      return failed(hook, moment, faultText(error));
    }
  };

  if (hooks.length === 0) return null;
  return {
    wants: (moment, tool) =>
      isMeant(moment) &&
      hooks.some(
        (hook) => hookMoments(hook).includes(moment) && (tool === undefined || isAbout(hook, tool)),
      ),
    async run(moment, facts, signal) {
      const { tool_name: tool } = facts;
      const verdicts: HookVerdict[] = [];
      for (const hook of chosen(moment, typeof tool === 'string' ? tool : undefined)) {
        const verdict = await runOne(hook, moment, facts, signal);
        verdicts.push(verdict);
        if (verdict.decision === 'deny' && !TELLING.has(moment)) break;
      }
      return verdicts;
    },
  };
};

// ---- Running the command of a hook, at its sandbox level, with its input on stdin ----

export type HookPlace = {
  /** Real path; commands run in it. */
  readonly workspace: string;
  readonly environment: ProcessEnvironment;
  readonly sandbox: SessionSandbox;
};

export type HookCommand = {
  readonly name: string;
  readonly command: string | readonly string[];
  readonly level: SandboxLevel;
  readonly timeoutMs: number;
  /** The project's folder, from which paths with a slash are read; null for a hook of the user. */
  readonly folder: string | null;
};

/** Time for output that is under way when the hook has ended. */
const LEFT_OPEN_MS = 200;

/** Throws a HookFault if there is no such program. */
const resolveCommand = (
  hook: Pick<HookCommand, 'command' | 'folder'>,
  place: Omit<HookPlace, 'sandbox'>,
): { readonly program: ProgramPath; readonly words: readonly string[] } => {
  if (typeof hook.command === 'string')
    return { program: SYSTEM_SHELL, words: ['-c', hook.command] };
  const [first = '', ...words] = hook.command;
  const program = attemptNow(() => findNamedProgram(first, place, hook.folder));
  if (program.kind === 'fault') throw new HookFault(program.fault.message);
  return { program: program.value, words };
};

/** Why the program of a hook can't be started; null if it is there. */
export const programFault = (
  hook: Pick<HookCommand, 'command' | 'folder'>,
  place: Omit<HookPlace, 'sandbox'>,
): string | null => {
  try {
    resolveCommand(hook, place);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** Rejects with a HookFault, or with a ProgramFailure, if the hook did not end by itself. */
export const runHookProgram = async (
  hook: HookCommand,
  input: string,
  place: HookPlace,
  signal: AbortSignal,
): Promise<ProgramEnd> => {
  const start = resolveCommand(hook, place);
  const sandbox = await place.sandbox.of(place.workspace);
  const prepared = await sandbox
    .prepare({
      level: hook.level,
      environment: { PAWL_HOOK: hook.name },
      canBeGuarded: true,
      ...start,
    })
    .catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      throw new HookFault(`it can't be run in the sandbox: ${why}`);
    });
  const { program, words, environment, folder, descriptors, isGuarded } = prepared;
  const running = runProgram({
    program,
    words,
    environment,
    folder,
    descriptors,
    isGuarded,
    title: 'it',
    input,
    leftOpenMs: LEFT_OPEN_MS,
    bytesMax: OUTPUT_BYTES_MAX,
    atMax: 'fail',
    deadlineMs: hook.timeoutMs,
    signal,
  });
  prepared.started(); // closes the files that the program has inherited
  try {
    return await running;
  } finally {
    await prepared.finish();
  }
};

export const faultText = (error: unknown): string => {
  if (error instanceof HookFault || error instanceof ProgramFailure) return error.message;
  return `it failed: ${error instanceof Error ? error.message : String(error)}`;
};

// ---- The answer of a hook: by its exit code and its output, or as a value of a function ----

type HookAnswer = {
  readonly decision: HookDecision;
  readonly reason?: string;
  readonly note?: string;
};

/** The hook has not done what a hook does. */
class HookFault extends Error {
  override readonly name = 'HookFault';
}

const TEXT_MAX = 4_000;
const OUTPUT_BYTES_MAX = 64 * 1024;
/** Exit code of a program that denies. */
const DENIED = 2;
const FAULT_LINE_MAX = 300;

/** Other agents say `block` and `approve`. */
const DECISIONS: Readonly<Record<string, HookDecision>> = {
  allow: 'allow',
  approve: 'allow',
  ask: 'ask',
  deny: 'deny',
  block: 'deny',
};

/** Without half characters (lone surrogates), since providers refuse requests that have one. */
const cutOutput = (text: string): string => {
  const trimmed = text.trim();
  const limited = cut(trimmed, TEXT_MAX);
  return limited.replace(/\p{Surrogate}/gu, '\ufffd');
};

const answerText = (answer: object, key: string): string | null => {
  const text: unknown = Reflect.get(answer, key);
  if (text === undefined || text === null) return null;
  if (typeof text !== 'string') throw new HookFault(`its ${key} is no text`);
  return cutOutput(text) === '' ? null : cutOutput(text);
};

/** The answer in an object. Fields that we don't know are ignored, if they hold no decision. */
const parseAnswer = (answer: object, moment: HookMoment): HookAnswer => {
  const other: unknown = Reflect.get(answer, 'hookSpecificOutput');
  if (typeof other === 'object' && other !== null && 'permissionDecision' in other)
    throw new HookFault('its decision is in hookSpecificOutput, not in decision');
  const raw: unknown = Reflect.get(answer, 'decision') ?? 'allow';
  const decision =
    typeof raw === 'string' && Object.hasOwn(DECISIONS, raw) ? DECISIONS[raw] : undefined;
  if (decision === undefined) throw new HookFault('its decision is none of allow, ask and deny');
  if (decision === 'ask' && moment !== 'before-tool')
    throw new HookFault('its decision is ask, which has a meaning before a tool only');
  const reason = answerText(answer, 'reason');
  const note = answerText(answer, 'note');
  return {
    decision,
    ...(reason === null ? {} : { reason }),
    ...(note === null ? {} : { note }),
  };
};

const firstLine = (text: string): string =>
  cutOutput(firstCharacters(text.trim().split('\n')[0] ?? '', FAULT_LINE_MAX));

/** The answer of a program. Output that is no JSON object says nothing. Throws a HookFault. */
const programAnswer = (
  {
    code,
    output,
    errors,
  }: { readonly code: number; readonly output: string; readonly errors: string },
  moment: HookMoment,
): HookAnswer => {
  if (code === DENIED) {
    const reason = cutOutput(errors);
    return { decision: 'deny', ...(reason === '' ? {} : { reason }) };
  }
  if (code !== 0) {
    const why = firstLine(errors);
    throw new HookFault(`it ended with exit code ${code}${why === '' ? '' : `: ${why}`}`);
  }
  const text = output.trim();
  if (!text.startsWith('{')) return { decision: 'allow' };
  const parsed = parseBounded(text, { depthMax: 20, charactersMax: OUTPUT_BYTES_MAX });
  if (parsed.kind !== 'ok' || typeof parsed.value !== 'object' || parsed.value === null)
    throw new HookFault('its output begins like a JSON object and is none');
  return parseAnswer(parsed.value, moment);
};
