import type { Limits, Preset, Settings } from '../agent/settings.js';
import type { ProfileName } from '../agent/views/profiles.js';
import { settingOf } from '../config/table.js';
import { checkVariable } from '../config/value.js';
import { exitCodes, Stop } from './exit-codes.js';

/** A flag of the table of settings, with its help. */
export const flagOf = (key: string): readonly [string, string] => {
  const { flag, help } = settingOf(key);
  return [flag ?? key, help];
};

/** The flags of every command that runs the agent: one list for parser, help, completion and documentation. */
export const runFlags: readonly (readonly [string, string])[] = [
  [
    '-p, --print [prompt]',
    'one turn without a terminal; the result on stdout. Without a prompt it is read from stdin; with - after a prompt, stdin is added to it',
  ],
  flagOf('model'),
  [
    '--base-url <url>',
    'where the provider is reached, in place of its own address; openai-compatible/NAME needs it',
  ],
  ['--workspace <folder>', 'the folder to work on (default: this one)'],
  ['--json', 'JSON lines on stdout (docs/json-stream.schema.json)'],
  ...[
    'max_usd',
    'max_rounds',
    'max_tokens',
    'max_minutes',
    'preset',
    'allow_hosts',
    'on_ask',
    'hooks',
    'formatter',
  ].map(flagOf),
  flagOf('pictures'),
  flagOf('explore'),
  flagOf('auto_commit'),
  ['--no-auto-commit', 'do not commit, in a session that was started so'],
  flagOf('profile'),
  ['--continue', 'go on with the last session of this folder'],
  ['--resume [id]', 'go on with that session; without an id, list them to choose from'],
  flagOf('allow_unknown_price'),
  [
    '--plain',
    'in the terminal: whole lines, nothing is drawn again; for screen readers. PAWL_PLAIN=1 says the same',
  ],
  ['--verbose', 'more about what happens, on stderr'],
];

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
  readonly allowHosts?: string;
  readonly onAsk?: string;
  readonly hooks?: string;
  readonly formatter?: string;
  readonly pictures?: string;
  readonly autoCommit?: boolean;
  readonly profile?: string;
  readonly explore?: true;
  readonly continue?: true;
  readonly resume?: string | true;
  readonly allowUnknownPrice?: true;
  readonly plain?: true;
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

/** Whether the model is shown pictures; `auto`: if it is known to take them. */
export type PicturesWish = 'auto' | 'yes' | 'no';

export const picturesOf = ({ pictures = 'auto' }: Pick<RunFlags, 'pictures'>): PicturesWish =>
  chooseWord<PicturesWish>('--pictures', pictures, ['auto', 'yes', 'no']);

/** Hosts that may be read from without asking; null where nothing is said. */
export const allowedHostsOf = ({ allowHosts }: RunFlags): readonly string[] | null => {
  if (allowHosts === undefined) return null;
  const checked = checkVariable(settingOf('allow_hosts').kind, allowHosts);
  if (checked.kind === 'bad') throw usageStop(`--allow-hosts ${checked.why}.`);
  return String(checked.value).split(',');
};

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
