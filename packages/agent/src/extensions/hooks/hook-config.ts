/**
 * Hooks as a user or a project writes them: the table `hook` of a config.toml. A hook is a program
 * that runs at a named moment of a session (session-hooks.ts).
 */

import {
  faultSentence,
  fieldFault,
  SWITCH,
  type TableFields,
} from '../../platform/table-fields.js';
import { firstCharacters } from '../../platform/text.js';
import { isTable, type ParsedTable } from '../../platform/untrusted-input.js';
import type { SandboxLevel } from '../../policy/decide.js';
import { HOOK_MOMENTS, type HookMoment } from '../../ports/hooks.js';

export type HookDeclaration = {
  readonly name: string;
  readonly on: readonly HookMoment[];
  /** Names of tools; `*` stands for any text. null: all tools. */
  readonly tools: readonly string[] | null;
  /** A text is run by the system's shell; a list is a program and its words. */
  readonly command: string | readonly string[];
  readonly timeoutMs: number;
  /** null: no sandbox for a hook of the user, `workspace` for one of a project. */
  readonly sandbox: SandboxLevel | null;
  /** null: `deny` before a tool, else `allow`. */
  readonly onFailure: 'allow' | 'deny' | null;
  /** A hook that is not enabled is listed, but never run. */
  readonly enabled: boolean;
};

type Fault = { readonly keys: readonly string[]; readonly text: string };
type ReadHooks = { readonly hooks: readonly HookDeclaration[]; readonly faults: readonly Fault[] };

const HOOK_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/;
const HOOKS_MAX = 50;
const TIMEOUT_DEFAULT_S = 30;
const TIMEOUT_MAX_S = 600;
const LEVELS: readonly unknown[] = ['read-only', 'workspace', 'workspace+net', 'off'];

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '' && !value.includes('\0');
const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isText);
const isMoment = (value: unknown): boolean => HOOK_MOMENTS.some((moment) => moment === value);

const fields: TableFields = {
  on: {
    fits: (value) => isMoment(value) || (isTexts(value) && value.every(isMoment)),
    form: `is a moment, or a list of moments: ${HOOK_MOMENTS.join(', ')}`,
  },
  tools: {
    fits: (value) => isText(value) || isTexts(value),
    form: 'is a name of a tool, or a list of names: ["bash", "mcp__*"]',
  },
  command: {
    fits: (value) => isText(value) || isTexts(value),
    form: 'is a text for the shell, or a list of a program and its words: ["node", "/…/check.mjs"]',
  },
  timeout: {
    fits: (value) => typeof value === 'number' && value > 0 && value <= TIMEOUT_MAX_S,
    form: `is a number of seconds up to ${TIMEOUT_MAX_S}, without quotes: ${TIMEOUT_DEFAULT_S}`,
  },
  sandbox: {
    fits: (value) => LEVELS.includes(value),
    form: 'is "read-only", "workspace", "workspace+net" or "off"',
  },
  on_failure: {
    fits: (value) => value === 'allow' || value === 'deny',
    form: 'is "allow" or "deny": what a hook that fails counts as',
  },
  enabled: SWITCH,
};

/** Moments at which a call is looked at, so that names of tools mean something. */
const ABOUT_CALLS: readonly unknown[] = ['before-tool', 'after-tool', 'ask-user'];

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

/** The first fault of a hook's table; null if it is right. */
const findFault = (
  name: string,
  raw: ParsedTable,
): readonly [key: string | null, text: string] | null => {
  const fault = fieldFault(raw, fields, 'a hook');
  if (fault !== null) return fault;
  if (!HOOK_NAME.test(name))
    return [
      null,
      'needs a name of at most 40 letters, digits, - and _, without - or _ at its start',
    ];
  const missing = ['on', 'command'].find((key) => raw[key] === undefined);
  if (missing !== undefined) return [null, `lacks ${missing}, which ${fields[missing]?.form}`];
  if (raw.tools !== undefined && !toList(raw.on).every((moment) => ABOUT_CALLS.includes(moment)))
    return ['tools', `belongs to a hook on ${ABOUT_CALLS.join(', ')} only`];
  return null;
};

const readHook = (name: string, raw: ParsedTable): HookDeclaration => ({
  name,
  // All of these were checked by findFault.
  on: toList(raw.on) as readonly HookMoment[],
  tools: raw.tools === undefined ? null : (toList(raw.tools) as readonly string[]),
  command: raw.command as HookDeclaration['command'],
  // 0 would end the hook before it could answer
  timeoutMs: Math.max(1, Math.round(1_000 * Number(raw.timeout ?? TIMEOUT_DEFAULT_S))),
  sandbox: (raw.sandbox ?? null) as HookDeclaration['sandbox'],
  onFailure: (raw.on_failure ?? null) as HookDeclaration['onFailure'],
  enabled: raw.enabled !== false,
});

/** Reads the table of hooks by their names. Ignores faulty hooks, and those beyond HOOKS_MAX. */
export const readHookTable = (table: unknown): ReadHooks => {
  if (!isTable(table))
    return { hooks: [], faults: [{ keys: ['hook'], text: 'hook is a table: [hook.NAME].' }] };
  const hooks: HookDeclaration[] = [];
  const faults: Fault[] = [];
  for (const [name, raw] of Object.entries(table)) {
    const keys = ['hook', name];
    const fault = isTable(raw)
      ? findFault(name, raw)
      : ([null, 'is no hook: a hook is a table [hook.NAME]'] as const);
    if (fault === null)
      hooks.push(readHook(name, raw as ParsedTable)); // a table, since it has no fault
    else {
      const at = fault[0] === null ? keys : [...keys, fault[0]];
      const where = firstCharacters(at.join('.'), 80);
      faults.push({ keys: at, text: faultSentence(where, fault[1]) });
    }
  }
  if (hooks.length <= HOOKS_MAX) return { hooks, faults };
  const text = `there are more than ${HOOKS_MAX} hooks: only the first ${HOOKS_MAX} are used.`;
  return { hooks: hooks.slice(0, HOOKS_MAX), faults: [...faults, { keys: ['hook'], text }] };
};
