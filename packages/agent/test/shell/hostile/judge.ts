import { programName } from '../../../src/policy/paths.js';
import { presetRules, type WrittenRule } from '../../../src/policy/presets.js';
import { explainCommand } from '../../../src/policy/shell/explain-command.js';
import { notAllowed } from './allowed.js';
import { runByBash } from './oracle.js';
import { ALLOWED } from './strings.js';

const writtenRules: readonly WrittenRule[] = ALLOWED.map((words) => ({
  kind: 'command',
  words,
  decision: 'allow',
  origin: 'test',
}));

const DENIED: readonly string[] = ['curl', 'evil'];

const WORKSPACE = '/w/ws';

/** Programs where the oracle has them. */
const find = (name: string): string => {
  if (name.startsWith('/')) return name;
  return name.includes('/') ? `${WORKSPACE}/${name}` : `/bin/${name}`;
};

/** By the rules alone: without them this preset would ask about every command. */
const BY_RULES = {
  rules: presetRules.careful,
  preset: 'careful',
  sandbox: 'off',
  workspace: WORKSPACE,
  writtenRules,
} as const;

/** Every command, but for those that a rule denies. */
const BUT_DENIED = {
  ...BY_RULES,
  rules: presetRules.auto,
  preset: 'auto',
  sandbox: 'workspace',
  writtenRules: DENIED.map(
    (name): WrittenRule => ({ kind: 'command', words: [name], decision: 'deny', origin: 'test' }),
  ),
} as const;

const allowedBy = async (
  texts: readonly string[],
  settings: typeof BY_RULES | typeof BUT_DENIED,
): Promise<readonly string[]> => {
  const allowed: string[] = [];
  for (const text of texts)
    if ((await explainCommand(text, settings, { find })).decision === 'allow') allowed.push(text);
  return allowed;
};

export const allowedOf = (texts: readonly string[]): Promise<readonly string[]> =>
  allowedBy(texts, BY_RULES);

/** Texts that are allowed although a rule denies a program that bash runs. */
export const falselyUndenied = async (texts: readonly string[]): Promise<readonly string[]> => {
  const allowed = await allowedBy(texts, BUT_DENIED);
  const ran = [0, 1].map((exitCode) => runByBash(allowed, exitCode));
  return allowed.filter((_, index) =>
    ran.some((each) => each[index]?.some(([name]) => DENIED.includes(programName(name ?? '')))),
  );
};

/** Texts that policy allows although bash runs what no rule allows, with what that is. */
export const falselyAllowed = (
  allowed: readonly string[],
): readonly (readonly [string, unknown])[] =>
  // what follows `&&` runs where all programs end well, what follows `||` where all fail
  [0, 1].flatMap((exitCode) => {
    const ran = runByBash(allowed, exitCode);
    return allowed.flatMap((text, index) => {
      const more = notAllowed(ran[index] ?? []);
      return more.length === 0 ? [] : [[text, more] as const];
    });
  });
