/**
 * The flags of commands that run the agent, and how their texts become values. From top to bottom:
 * the list; readers, one a flag or a group, which throw a `Stop` with what to write instead; and
 * the flags of `pawl config`, `pawl serve` and `pawl acp`.
 */

import type { Effort, Limits, Settings } from '@pawl/agent/machine/settings';
import { providers } from '@pawl/agent/models/provider-table';
import type { SandboxLevel } from '@pawl/agent/policy/decide';
import type { Preset } from '@pawl/agent/policy/presets';
import type { Model } from '@pawl/agent/ports/model';
import type { ProfileName } from '@pawl/verify/projections/all-projections';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { checkVariable, findSetting, flagName, settings } from './setting-table.js';

/** Flag and help text of a setting. */
export const settingFlag = (key: string): readonly [string, string] => {
  const { flag, help } = findSetting(key);
  return [flag ?? key, help];
};

const withShort = (
  short: string,
  [flag, help]: readonly [string, string],
): readonly [string, string] => [`${short}, ${flag}`, help];

/** Providers without a default address: the user must give one. */
const withoutAddress = providers
  .filter(({ address }) => address === null)
  .map(({ name }) => `${name}/NAME`)
  .join(', ');

/** Also a flag of `pawl ask`. */
export const TAKE_OVER: readonly [string, string] = [
  '--take-over',
  'open a session even if another process may have it open\n' +
    'That process stops before it writes again.',
];

/**
 * The flags of every command that runs the agent: one list for parser, help, completion and
 * documentation.
 */
export const runFlags: readonly (readonly [string, string])[] = [
  [
    '-p, --print [prompt]',
    'run one turn without a terminal and print the result\n' +
      'Piped input is added to the prompt. Without a prompt, or with - after it, stdin is read to ' +
      'its end. For a prompt that looks like a flag: -p -- PROMPT',
  ],
  withShort('-m', settingFlag('model')),
  settingFlag('fallback'),
  settingFlag('effort'),
  [
    '--base-url <url>',
    `address of the provider, if not its usual one\nIt is required for ${withoutAddress}.`,
  ],
  ['--workspace <folder>', 'the folder to work in (default: this one)'],
  ['--json', 'JSON lines on stdout (docs/json-stream.schema.json)'],
  [
    '--json-schema <file>',
    'with -p: the answer must be JSON that satisfies this JSON Schema\n' +
      'The schema is of draft 2020-12. stdout is that JSON alone.',
  ],
  [
    '--fail-on <kinds>',
    'with -p: end with exit code 77 if a call was denied: denied\n' + 'Whatever the answer is.',
  ],
  ...[
    'max_usd',
    'max_rounds',
    'max_tokens',
    'max_minutes',
    'preset',
    'sandbox',
    'allow_hosts',
    'on_ask',
    'hooks',
    'formatter',
  ].map(settingFlag),
  settingFlag('pictures'),
  settingFlag('explore'),
  settingFlag('tasks'),
  settingFlag('auto_commit'),
  ['--no-auto-commit', 'turn auto-commit off again in a resumed session'],
  settingFlag('profile'),
  ['-c, --continue', 'continue the last session of this folder'],
  ['-r, --resume [id]', 'continue a session; without an id, choose one from a list'],
  TAKE_OVER,
  settingFlag('allow_unknown_price'),
  [
    '--detach',
    'with -p: leave the session running, without a terminal\n' +
      'It runs in a separate process, and its id is printed (docs/use/detached.md). pawl attach ' +
      'comes back to it.',
  ],
  [
    '--same-folder',
    'with --detach: work in this folder, even if another session does\n' +
      'By default a second detached session of a folder works in a git worktree of its own.',
  ],
  ['--plain', 'print whole lines and never redraw, for screen readers\nThe same as PAWL_PLAIN=1.'],
  ['--verbose', 'print more details to stderr'],
];

/** What the key of a node means for its sessions. */
export type KeyedSession = {
  /** The model, within what the key may use and spend. */
  meter(model: Model): Model;
  /** Absent: any. */
  readonly models?: readonly string[];
  /** Places of other keys, which the session does not see. */
  readonly hidden: readonly string[];
  /** `yes`: it needs a sandbox, since its key has places that others must not see. */
  readonly isConfined?: 'yes';
};

/** Flags as the parser returns them. Values are still text. */
export type RunFlags = {
  /** No flag: `pawl serve` sets it for a session of a key. */
  readonly forKey?: KeyedSession;
  readonly print?: string | true;
  readonly model?: string;
  readonly fallback?: string;
  readonly effort?: string;
  readonly baseUrl?: string;
  readonly workspace?: string;
  readonly json?: true;
  readonly jsonSchema?: string;
  readonly failOn?: string;
  readonly maxUsd?: string;
  readonly maxRounds?: string;
  readonly maxTokens?: string;
  readonly maxMinutes?: string;
  readonly preset?: string;
  readonly sandbox?: string;
  readonly allowHosts?: string;
  readonly onAsk?: string;
  readonly hooks?: string;
  readonly formatter?: string;
  readonly pictures?: string;
  readonly autoCommit?: boolean;
  readonly profile?: string;
  readonly explore?: true;
  readonly tasks?: true;
  readonly continue?: true;
  readonly resume?: string | true;
  readonly takeOver?: true;
  readonly allowUnknownPrice?: true;
  readonly detach?: true;
  readonly sameFolder?: true;
  readonly plain?: true;
  readonly verbose?: true;
};

/**
 * The only word of the command line of a detached session's process, which runs without a terminal.
 * It is no command of users.
 */
export const WORKER_WORD = '__detached';

export const usageStop = (message: string): Stop => new Stop(exitCodes.usage, 'usage', message);

export const readAmount = (flag: string, text: string, kind: 'whole' | 'any'): number => {
  const amount = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(amount > 0) || (kind === 'whole' && !Number.isSafeInteger(amount))) {
    throw usageStop(
      `${flag} needs a ${kind === 'whole' ? 'whole ' : ''}number above zero, not '${text}'.`,
    );
  }
  return amount;
};

/** For a start without a session to resume. */
export const refuseTakeOver = ({ takeOver }: { readonly takeOver?: true }): void => {
  if (takeOver)
    throw usageStop('--take-over needs a session to go on with: --continue or --resume ID.');
};

/** The limits that flags set. Others keep the session's values. */
export const readLimits = (flags: RunFlags): Partial<Limits> => ({
  ...(flags.maxUsd === undefined ? {} : { usd: readAmount('--max-usd', flags.maxUsd, 'any') }),
  ...(flags.maxRounds === undefined
    ? {}
    : { rounds: readAmount('--max-rounds', flags.maxRounds, 'whole') }),
  ...(flags.maxTokens === undefined
    ? {}
    : { tokens: readAmount('--max-tokens', flags.maxTokens, 'whole') }),
  ...(flags.maxMinutes === undefined
    ? {}
    : { timeMs: Math.ceil(readAmount('--max-minutes', flags.maxMinutes, 'any') * 60_000) }),
});

export const chooseWord = <Word extends string>(
  flag: string,
  text: string,
  words: readonly Word[],
): Word => {
  const known = words.find((word) => word === text);
  if (known === undefined)
    throw usageStop(`${flag} needs one of ${words.join(', ')}, not '${text}'.`);
  return known;
};

/** The word of a setting; null where the flag is not set. Throws for another word. */
export const readWord = <Word extends string>(
  key: string,
  text: string | undefined,
): Word | null => {
  if (text === undefined) return null;
  const setting = findSetting(key);
  const words = setting.kind.type === 'words' ? setting.kind.words : [];
  // the setting has the words of the type
  return chooseWord(flagName(setting) ?? key, text, words) as Word;
};

/** Names them in the order of help; the setting's own is that of strictness. */
export const readPreset = ({ preset }: RunFlags): Preset | null =>
  preset === undefined
    ? null
    : chooseWord<Preset>('--preset', preset, ['plan', 'careful', 'auto', 'ci', 'full']);

export const readSandbox = ({ sandbox }: RunFlags): SandboxLevel | null =>
  readWord<SandboxLevel>('sandbox', sandbox);

export const readOnAsk = ({ onAsk }: RunFlags): 'stop' | 'deny' | null =>
  readWord<'stop' | 'deny'>('on_ask', onAsk);

/** What `--fail-on` can name. */
const FAILURES = ['denied'] as const;
export type FailOn = (typeof FAILURES)[number];

/** The kinds that `--fail-on` names, separated by commas; none without the flag. */
export const readFailOn = ({ failOn }: Pick<RunFlags, 'failOn'>): readonly FailOn[] =>
  (failOn?.split(',') ?? []).map((text) => {
    const kind = FAILURES.find((one) => one === text.trim());
    if (kind === undefined)
      throw usageStop(
        `--fail-on takes a list of kinds, separated by commas: ${FAILURES.join(', ')}. There is no ` +
          `kind '${text.trim()}'.`,
      );
    return kind;
  });

export const readEffort = ({ effort }: Pick<RunFlags, 'effort'>): Effort | null =>
  readWord<Effort>('effort', effort);

/** Whether pictures are sent to the model; `auto`: only if it is known to accept them. */
export type PicturesChoice = 'auto' | 'yes' | 'no';

export const readPictures = ({ pictures }: Pick<RunFlags, 'pictures'>): PicturesChoice =>
  readWord<PicturesChoice>('pictures', pictures) ?? 'auto';

/** The models that may take over, each once. */
export const readFallback = ({ fallback }: Pick<RunFlags, 'fallback'>): readonly string[] => {
  if (fallback === undefined) return [];
  const checked = checkVariable(findSetting('fallback').kind, fallback);
  if (checked.kind === 'bad') throw usageStop(`--fallback ${checked.why}.`);
  return [...new Set(String(checked.value).split(','))];
};

/** Hosts that need no approval; null without the flag. */
export const readAllowedHosts = ({ allowHosts }: RunFlags): readonly string[] | null => {
  if (allowHosts === undefined) return null;
  const checked = checkVariable(findSetting('allow_hosts').kind, allowHosts);
  if (checked.kind === 'bad') throw usageStop(`--allow-hosts ${checked.why}.`);
  return String(checked.value).split(',');
};

/** Settings of the hooks that run after tools, as far as flags set them. */
export const readAfterTools = (
  flags: RunFlags,
): Partial<Pick<Settings, 'hooks' | 'formatter' | 'autoCommit'>> => {
  const hooks = readWord<Settings['hooks']>('hooks', flags.hooks);
  const formatter = readWord<'on' | 'off'>('formatter', flags.formatter);
  const uselessFlag =
    flags.autoCommit === true ? '--auto-commit' : formatter === 'on' ? '--formatter on' : null;
  if (hooks === 'never' && uselessFlag !== null)
    throw usageStop(`${uselessFlag} does nothing with --hooks never.`);
  return {
    ...(hooks === null ? {} : { hooks }),
    ...(formatter === null ? {} : { formatter: formatter === 'on' ? 'onChanges' : 'off' }),
    ...(flags.autoCommit === undefined ? {} : { autoCommit: flags.autoCommit ? 'on' : 'off' }),
  };
};

export const readProfileName = ({ profile }: RunFlags): ProfileName | null =>
  readWord<ProfileName>('profile', profile);

/** Parses a line number of a journal. `flag` is named in the error. */
export const readSeq = (flag: string, text: string): number => readAmount(flag, text, 'whole');

/** Like `readSeq`, with 0 for the place before the first line. */
export const readPlace = (flag: string, text: string): number =>
  /^0+$/.test(text) ? 0 : readSeq(flag, text);

export type ConfigFlags = RunFlags & { readonly origin?: true };

/** The flags of `pawl config`: its own, and those of settings, whose effect it shows. */
export const configFlags: readonly (readonly [string, string])[] = [
  ['--origin', 'name the source of each value, and the values it overrules'],
  ['--json', 'as JSON lines'],
  ['--workspace <folder>', 'the folder whose settings to print (default: this one)'],
  ...settings
    .filter(({ flag, key }) => flag !== null && !key.includes('.'))
    .map(({ key }) => settingFlag(key)),
];

type FlagNames = readonly (keyof RunFlags)[];

/** Which session is opened. */
export const SESSION_CHOICE: FlagNames = ['continue', 'resume', 'takeOver'];
export const LIMITS: FlagNames = ['maxUsd', 'maxTokens', 'maxRounds', 'maxMinutes'];

/**
 * Flags that make no sense where a client decides about folder, prompt and session, and where there
 * is no screen.
 */
const NOT_FOR_CLIENTS: FlagNames = [
  ...(['print', 'json', 'jsonSchema', 'failOn', 'detach', 'sameFolder'] as const),
  ...(['workspace', 'plain', 'verbose'] as const),
  ...SESSION_CHOICE,
];

/** The flags without those of the groups. */
export const withoutFlags = (flags: RunFlags, ...groups: readonly FlagNames[]): RunFlags => {
  const names: readonly string[] = groups.flat();
  return Object.fromEntries(Object.entries(flags).filter(([name]) => !names.includes(name)));
};

/**
 * The flags of a process that goes on with a session, without those that its journal has, and
 * without a preset and limits that were changed since they were typed.
 */
export const unchangedFlags = (flags: RunFlags, { preset, limits }: Settings): RunFlags => {
  const { usd, tokens, rounds, timeMs } = readLimits(flags);
  const changed: FlagNames = [
    ...(flags.preset === preset ? [] : ['preset' as const]),
    ...(usd === limits.usd ? [] : ['maxUsd' as const]),
    ...(tokens === limits.tokens ? [] : ['maxTokens' as const]),
    ...(rounds === limits.rounds ? [] : ['maxRounds' as const]),
    ...(timeMs === limits.timeMs ? [] : ['maxMinutes' as const]),
  ];
  return withoutFlags(flags, ['model', 'effort', 'profile', 'workspace'], changed);
};

const notForClients = NOT_FOR_CLIENTS.join(' ').toLowerCase().split(' ');

/** The flags of `pawl serve` that are settings of its sessions: `--fail-on <kinds>` is `failOn`. */
export const nodeFlags = runFlags.filter(([flag]) => {
  const [, name = ''] = /--([a-z-]+)/.exec(flag) ?? [];
  return !notForClients.includes(name.replaceAll('-', ''));
});

/** The flags of `pawl acp`, whose sessions always ask in the editor. */
export const acpFlags = nodeFlags.filter(([flag]) => !flag.startsWith('--on-ask '));

/** The flags that count for the sessions of `pawl serve`. Others may stand before `serve`. */
export const nodeSessionFlags = (flags: RunFlags): RunFlags => withoutFlags(flags, NOT_FOR_CLIENTS);

/** The flags that count for a new session of an editor. */
export const newSessionFlags = (flags: RunFlags): RunFlags =>
  withoutFlags(flags, NOT_FOR_CLIENTS, ['onAsk']);

const modelProvider = (model: string): string => model.slice(0, model.indexOf('/'));

/**
 * The flags that count for a session that is opened again: it keeps its model and effort. An
 * address holds only for its own provider.
 */
export const storedSessionFlags = (allFlags: RunFlags, recordedModel: string): RunFlags => {
  const { model, baseUrl } = allFlags;
  const stored: FlagNames = ['model', 'effort', 'profile', 'baseUrl'];
  const flags = withoutFlags(newSessionFlags(allFlags), stored);
  // the address is for the model that the flags name
  const isElsewhere = model !== undefined && modelProvider(model) !== modelProvider(recordedModel);
  return baseUrl === undefined || isElsewhere ? flags : { ...flags, baseUrl };
};
