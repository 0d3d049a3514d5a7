import type { JsonObject } from '../../machine/message.js';
import type { SandboxLevel } from '../../machine/settings.js';
import type { HookVerdict } from '../../machine/values/hook-verdict.js';
import type { HookMoment, UserHooks } from '../../ports/user-hooks.js';
import { faultText, type HookPlace, runHookProgram } from './hook-program.js';
import { answerIn, answerOf, type HookAnswer } from './read-hook-answer.js';

/**
 * The hooks of one session, in the order in which they were given.
 *
 * 1. Each gets one JSON object. Its answer counts only if it comes in time and has the form of one; everything else is a
 *    failure, and the hook's declaration says what follows from it.
 * 2. The first that denies ends the list: later hooks are not asked.
 * 3. Sessions that another session has started have no hooks that are about the user.
 */

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
  run(input: JsonObject, signal: AbortSignal): HookResult | undefined | Promise<HookResult | undefined>;
};
export type HookResult = { readonly decision?: HookAnswer['decision'] } & Omit<HookAnswer, 'decision'>;

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
/** Whoever closes a session does not wait longer. */
const END_TIMEOUT_MS = 10_000;

const OF_TASKS = new Set<HookMoment>([
  'before-tool',
  'after-tool',
  'after-batch',
  'before-request',
  'before-compaction',
]);
/** Nothing can be denied at these moments. */
const TELLING = new Set<HookMoment>(['session-start', 'session-end', 'ask-user']);

const momentsOf = ({ on }: SessionHook): readonly HookMoment[] => (typeof on === 'string' ? [on] : on);

/** Not by a regular expression: one with many `*` takes time that grows with each of them. */
const matches = (pattern: string, tool: string): boolean => {
  const [first = '', ...pieces] = pattern.split('*');
  const last = pieces.pop();
  if (last === undefined) return tool === pattern;
  if (!tool.startsWith(first) || !tool.endsWith(last)) return false;
  const end = tool.length - last.length;
  let at = first.length;
  for (const piece of pieces) {
    const found = tool.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return at <= end;
};

const isAbout = ({ tools }: SessionHook, tool: string | undefined): boolean =>
  tools === undefined || tools === null || (tool !== undefined && tools.some((one) => matches(one, tool)));

const deadlineOf = (hook: SessionHook, moment: HookMoment): number => {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = hook;
  return moment === 'session-end' ? Math.min(timeoutMs, END_TIMEOUT_MS) : timeoutMs;
};

/** Calls a function, which may hang or throw. */
const callFunction = (hook: FunctionHook, input: JsonObject, moment: HookMoment, signal: AbortSignal) =>
  new Promise<HookAnswer>((resolve, reject) => {
    const ended = new AbortController();
    const deadlineMs = deadlineOf(hook, moment);
    const stop = (why: string): void => {
      settle();
      ended.abort();
      reject(new Error(why));
    };
    const onAbort = (): void => stop('it was stopped');
    const patience = setTimeout(() => stop(`it took longer than ${deadlineMs / 1_000} s`), deadlineMs);
    const settle = (): void => {
      clearTimeout(patience);
      signal.removeEventListener('abort', onAbort);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    Promise.resolve()
      .then(() => hook.run(input, ended.signal))
      .then((said: unknown) => {
        if (said === undefined || said === null) return resolve({ decision: 'allow' });
        if (typeof said !== 'object') throw new Error('it returned no object');
        resolve(answerIn(said, moment));
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
  if (why !== null) throw new Error(why);
  const { name, command, folder = null } = hook;
  const level = hook.sandbox ?? (folder === null ? 'off' : 'workspace');
  const started = { name, command, folder, level, timeoutMs: deadlineOf(hook, moment) };
  const { code, output, errors } = await runHookProgram(started, JSON.stringify(input), place, signal);
  return answerOf({ code, output: output.toString('utf8'), errors }, moment);
};

const failed = (hook: SessionHook, moment: HookMoment, fault: string): HookVerdict => {
  const { onFailure } = hook;
  const declared = onFailure ?? (moment === 'before-tool' ? 'deny' : 'allow');
  const decision = TELLING.has(moment) ? 'allow' : declared;
  return { hook: hook.name, decision, ...(decision === 'deny' ? { reason: fault } : {}), fault };
};

/** Null if there is no hook for a session of this kind. */
export const createSessionHooks = (
  hooks: readonly SessionHook[],
  place: SessionHooksPlace,
): UserHooks | null => {
  const isMeant = (moment: HookMoment): boolean => place.startedBy === 'user' || OF_TASKS.has(moment);
  const chosen = (moment: HookMoment, tool: string | undefined): readonly SessionHook[] =>
    isMeant(moment) ? hooks.filter((hook) => momentsOf(hook).includes(moment) && isAbout(hook, tool)) : [];

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
      return failed(hook, moment, faultText(error)); // nothing is lost: the verdict says what failed
    }
  };

  if (hooks.length === 0) return null;
  return {
    wants: (moment, tool) =>
      isMeant(moment) &&
      hooks.some((hook) => momentsOf(hook).includes(moment) && (tool === undefined || isAbout(hook, tool))),
    async run(moment, facts, signal) {
      const { tool_name: tool } = facts;
      const verdicts: HookVerdict[] = [];
      for (const hook of chosen(moment, typeof tool === 'string' ? tool : undefined)) {
        const verdict = await runOne(hook, moment, facts, signal);
        verdicts.push(verdict);
        if (verdict.decision === 'deny') break;
      }
      return verdicts;
    },
  };
};
