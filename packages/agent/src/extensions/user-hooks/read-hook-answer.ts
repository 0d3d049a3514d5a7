import type { HookDecision } from '../../machine/values/hook-verdict.js';
import { parseBounded } from '../../platform/base/parse-bounded-json.js';
import type { HookMoment } from '../../ports/user-hooks.js';

/** What a hook said: by its exit code and its output, or as a value of a function. */

export type HookAnswer = {
  readonly decision: HookDecision;
  readonly reason?: string;
  readonly note?: string;
};

/** The hook has not done what a hook does. */
export class HookFault extends Error {
  override readonly name = 'HookFault';
}

const TEXT_MAX = 4_000;
export const OUTPUT_BYTES_MAX = 64 * 1024;
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
const cut = (text: string): string => {
  const trimmed = text.trim();
  const kept = trimmed.length > TEXT_MAX ? `${trimmed.slice(0, TEXT_MAX)}…` : trimmed;
  return kept.replace(/\p{Surrogate}/gu, '\ufffd');
};

const textIn = (answer: object, key: string): string | null => {
  const text: unknown = Reflect.get(answer, key);
  if (text === undefined || text === null) return null;
  if (typeof text !== 'string') throw new HookFault(`its ${key} is no text`);
  return cut(text) === '' ? null : cut(text);
};

/** The answer in an object. Fields that we don't know are ignored. */
export const answerIn = (answer: object, moment: HookMoment): HookAnswer => {
  const said: unknown = Reflect.get(answer, 'decision') ?? 'allow';
  const decision = typeof said === 'string' && Object.hasOwn(DECISIONS, said) ? DECISIONS[said] : undefined;
  if (decision === undefined) throw new HookFault('its decision is none of allow, ask and deny');
  if (decision === 'ask' && moment !== 'before-tool')
    throw new HookFault('its decision is ask, which has a meaning before a tool only');
  const [reason, note] = [textIn(answer, 'reason'), textIn(answer, 'note')];
  return {
    decision,
    ...(reason === null ? {} : { reason }),
    ...(note === null ? {} : { note }),
  };
};

const firstLine = (text: string): string => cut((text.trim().split('\n')[0] ?? '').slice(0, FAULT_LINE_MAX));

/** The answer of a program. Output that is no JSON object says nothing. Throws a HookFault. */
export const answerOf = (
  { code, output, errors }: { readonly code: number; readonly output: string; readonly errors: string },
  moment: HookMoment,
): HookAnswer => {
  if (code === DENIED) {
    const reason = cut(errors);
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
  return answerIn(parsed.value, moment);
};
