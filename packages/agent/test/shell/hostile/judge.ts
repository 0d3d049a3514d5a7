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

const WORKSPACE = '/w/ws';

/** Programs where the oracle has them. */
const find = (name: string): string => {
  if (name.startsWith('/')) return name;
  return name.includes('/') ? `${WORKSPACE}/${name}` : `/bin/${name}`;
};

/** Whether policy allows a text by the rules alone: without them this preset would ask about every command. */
const allows = async (text: string): Promise<boolean> => {
  const settings = {
    rules: presetRules.careful,
    preset: 'careful',
    sandbox: 'off',
    workspace: WORKSPACE,
    writtenRules,
  } as const;
  return (await explainCommand(text, settings, { find })).decision === 'allow';
};

export const allowedOf = async (texts: readonly string[]): Promise<readonly string[]> => {
  const allowed: string[] = [];
  for (const text of texts) if (await allows(text)) allowed.push(text);
  return allowed;
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
