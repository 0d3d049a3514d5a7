import type { Settings } from '../../src/machine/settings.js';
import type { Needs } from '../../src/policy/judged-call.js';
import {
  type Decision,
  type Preset,
  presetRules,
  type WrittenRule,
} from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';

/** Asks the policy about shell texts, with rules and programs that stand for those of a user. */

export const WORKSPACE = '/project';
const find = (name: string): string =>
  name.includes('/') ? `${WORKSPACE}/${name}` : `/usr/bin/${name}`;

export const command = (decision: Decision, words: string, needs?: Needs): WrittenRule => ({
  decision,
  kind: 'command',
  words: words.split(' '),
  origin: 'config.toml:1',
  ...(needs === undefined ? {} : { needs }),
});

export const RULES: readonly WrittenRule[] = [
  command('allow', 'npm test'),
  command('allow', 'git diff'),
  command('allow', './build.sh'),
  command('allow', 'sed'),
  command('allow', 'find'),
  command('allow', 'timeout 60 npm test'),
  command('allow', 'npm install', 'network'),
  command('ask', 'git commit'),
  command('deny', 'git push'),
];

export type Given = {
  readonly preset?: Preset;
  readonly sandbox?: Settings['sandbox'];
  readonly needs?: Needs;
  readonly rules?: readonly WrittenRule[];
  readonly onAsk?: Settings['onAsk'];
};
export const decisionOf = async (text: string, given: Given = {}): Promise<Decision> => {
  const { preset = 'careful', sandbox = 'off', needs, rules = RULES, onAsk = 'ask' } = given;
  const settings = {
    rules: presetRules[preset],
    preset,
    sandbox,
    onAsk,
    workspace: WORKSPACE,
    writtenRules: rules,
  };
  const explained = await explainCommand(text, settings, {
    find,
    ...(needs === undefined ? {} : { needs }),
  });
  return explained.decision;
};
