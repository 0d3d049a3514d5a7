import type { Limits, Preset, Settings } from '../agent/settings.js';
import type { ProfileName } from '../agent/views/profiles.js';
import { exitCodes, Stop } from './exit-codes.js';

/** The flags of every command that runs the agent: one list for parser, help and documentation. */
export const runFlags = [
  [
    '-p, --print [prompt]',
    'one turn without a terminal; the result on stdout. Without a prompt it is read from stdin; with - after a prompt, stdin is added to it',
  ],
  [
    '--model <provider/name>',
    'which model answers, for example anthropic/claude-sonnet-5-5 or scripted/FILE',
  ],
  ['--base-url <url>', 'where the provider is reached, in place of its own address'],
  ['--workspace <folder>', 'the folder to work on (default: this one)'],
  ['--json', 'JSON lines on stdout (docs/json-stream.schema.json)'],
  [
    '--max-usd <amount>',
    'no further model call once this session has cost so many dollars; the reply that crosses the limit is still paid for',
  ],
  ['--max-rounds <count>', 'stop after so many model calls with tools in a turn (default: 100)'],
  [
    '--max-tokens <count>',
    'no further model call once this session has used so many tokens; the reply that crosses the limit still counts',
  ],
  ['--max-minutes <count>', 'stop a turn after so many minutes'],
  [
    '--preset <name>',
    'plan, careful, auto or ci: what needs no question (default: careful in a terminal, else auto). With auto and ci file tools stay in the workspace; commands run unasked, without a sandbox',
  ],
  ['--on-ask <what>', 'without a terminal, when a call needs approval: stop (default) or deny'],
  [
    '--hooks <when>',
    'look for new commits and format changed files after tools: mutating (default: after calls that change something), always or never',
  ],
  [
    '--formatter <on|off>',
    'run the formatters that the repository uses on files that the agent changed (default: on with the presets auto and ci, else off, since how a formatter is set up is code of the repository)',
  ],
  [
    '--explore',
    'give the model a tool that answers questions about files too large to read, by programs and further model calls (pawl ask); what it spends counts',
  ],
  ['--auto-commit', 'commit what the agent has changed, never what you have'],
  ['--no-auto-commit', 'do not commit, in a session that was started so'],
  [
    '--profile <name>',
    'settings by name: minimal, loom or sketch make the agent behave as that seed system does, tools is tools mode (ten rounds, then the model is asked for its answer), full turns everything after tools on, auto-commit too; flags beside it win',
  ],
  ['--continue', 'go on with the last session of this folder'],
  ['--resume [id]', 'go on with that session; without an id, list them to choose from'],
  ['--allow-unknown-price', 'let --max-usd start with a model whose price is unknown'],
  ['--verbose', 'more about what happens, on stderr'],
] as const;

/** As the parser hands them over: text is still text. */
export type RunFlags = {
  readonly print?: string | true;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly workspace?: string;
  readonly json?: true;
  readonly maxUsd?: string;
  readonly maxRounds?: string;
  readonly maxTokens?: string;
  readonly maxMinutes?: string;
  readonly preset?: string;
  readonly onAsk?: string;
  readonly hooks?: string;
  readonly formatter?: string;
  readonly autoCommit?: boolean;
  readonly profile?: string;
  readonly explore?: true;
  readonly continue?: true;
  readonly resume?: string | true;
  readonly allowUnknownPrice?: true;
  readonly verbose?: true;
};

export const usageStop = (message: string): Stop => new Stop(exitCodes.usage, 'usage', message);

export const readAmount = (flag: string, text: string, kind: 'whole' | 'any'): number => {
  const amount = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(amount > 0) || (kind === 'whole' && !Number.isSafeInteger(amount))) {
    throw usageStop(`${flag} needs a ${kind === 'whole' ? 'whole ' : ''}number above zero, not '${text}'.`);
  }
  return amount;
};

/** The limits that were set by flags; what is missing keeps the session's own. */
export const limitsOf = (flags: RunFlags): Partial<Limits> => ({
  ...(flags.maxUsd === undefined ? {} : { usd: readAmount('--max-usd', flags.maxUsd, 'any') }),
  ...(flags.maxRounds === undefined ? {} : { rounds: readAmount('--max-rounds', flags.maxRounds, 'whole') }),
  ...(flags.maxTokens === undefined ? {} : { tokens: readAmount('--max-tokens', flags.maxTokens, 'whole') }),
  ...(flags.maxMinutes === undefined
    ? {}
    : { timeMs: Math.ceil(readAmount('--max-minutes', flags.maxMinutes, 'any') * 60_000) }),
});

export const chooseWord = <Word extends string>(flag: string, text: string, words: readonly Word[]): Word => {
  const found = words.find((word) => word === text);
  if (found === undefined) throw usageStop(`${flag} is one of ${words.join(', ')}, not '${text}'.`);
  return found;
};

export const presetOf = (flags: RunFlags): Preset | null =>
  flags.preset === undefined
    ? null
    : chooseWord<Preset>('--preset', flags.preset, ['plan', 'careful', 'auto', 'ci']);

export const onAskOf = (flags: RunFlags): 'stop' | 'deny' | null =>
  flags.onAsk === undefined ? null : chooseWord<'stop' | 'deny'>('--on-ask', flags.onAsk, ['stop', 'deny']);

/** What is to happen after tools, as far as flags say. */
export const afterToolsOf = (
  flags: RunFlags,
): Partial<Pick<Settings, 'hooks' | 'formatter' | 'autoCommit'>> => {
  const hooks =
    flags.hooks === undefined
      ? null
      : chooseWord<Settings['hooks']>('--hooks', flags.hooks, ['mutating', 'always', 'never']);
  const formatter =
    flags.formatter === undefined
      ? null
      : chooseWord<'on' | 'off'>('--formatter', flags.formatter, ['on', 'off']);
  const needed = flags.autoCommit === true ? '--auto-commit' : formatter === 'on' ? '--formatter on' : null;
  if (hooks === 'never' && needed !== null) throw usageStop(`${needed} does nothing with --hooks never.`);
  return {
    ...(hooks === null ? {} : { hooks }),
    ...(formatter === null ? {} : { formatter: formatter === 'on' ? 'onChanges' : 'off' }),
    ...(flags.autoCommit === undefined ? {} : { autoCommit: flags.autoCommit ? 'on' : 'off' }),
  };
};

export const profileOf = (flags: RunFlags): ProfileName | null =>
  flags.profile === undefined
    ? null
    : chooseWord<ProfileName>('--profile', flags.profile, ['minimal', 'loom', 'sketch', 'tools', 'full']);

/** A line of a journal, as `--at` takes it. */
export const readSeq = (flag: string, text: string): number => readAmount(flag, text, 'whole');
