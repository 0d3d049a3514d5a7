/**
 * The table of settings. Config files, environment, flags, help, completion, the man page and
 * docs/set-up/configuration.md are made from it.
 *
 * 1. A project's file affects the user's money, files and endpoints, so it may only make those
 *    settings stricter. `project` says which value is stricter.
 * 2. No setting contains a secret, but a setting may name a file that does.
 *
 * From top to bottom: the type of a row; the rows, first those of model calls; the names of a
 * setting; and the check of a value.
 */

import { DEFAULT_MODEL, providers } from '@pawl/agent/models/provider-table';
import { isHostPattern } from '@pawl/agent/policy/patterns';

/** The form of a value. Numbers are positive. */
type ValueKind =
  | {
      readonly type: 'words';
      readonly words: readonly string[];
      /** Words of earlier versions: accepted, but not offered. */
      readonly former?: readonly string[];
      /** The word that leaves the choice to the model; it is as strict as `projectBound`. */
      readonly undecided?: string;
    }
  | { readonly type: 'number'; readonly whole: boolean }
  | { readonly type: 'switch' }
  | { readonly type: 'model' }
  /** Models separated by commas; a list in a file. */
  | { readonly type: 'models' }
  | { readonly type: 'url' }
  | { readonly type: 'file' }
  /** Hosts separated by commas; a list in a file. */
  | { readonly type: 'hosts' }
  /** Names of environment variables, in the same form as hosts. */
  | { readonly type: 'names' };

/**
 * What a project's file may set. `no`: nothing. `tighten`: only a stricter value,
 * which is a lower number, `false`, an earlier one of `words`, or fewer hosts. `raise`: only a
 * higher number, for times that must not be too short. `sameProvider`: only other models of the
 * current provider.
 */
export type ProjectMay = 'no' | 'tighten' | 'raise' | 'sameProvider';

export type Value = string | number | boolean;

export type Setting = {
  /** The key in config.toml. A dot leads into a table. */
  readonly key: string;
  readonly kind: ValueKind;
  /**
   * The first line is half a sentence for lists of flags. Sentences may follow it, which `pawl help
   * FLAG` and the documents show.
   */
  readonly help: string;
  readonly project: ProjectMay;
  /** Words that only a flag or the user's own file may choose: no project and no variable. */
  readonly ownWords: readonly string[];
  /** Further words that no project may choose, but a variable may. */
  readonly userWords: readonly string[];
  /** Form for the flag parser; null if there is no flag. */
  readonly flag: string | null;
  /** Its environment variable; that of a provider's `api_key_file` has the key itself. */
  readonly variable: string;
  /** Shown if no source sets a value. */
  readonly builtIn: string;
  /** What a project's value may not loosen if no other source sets a value. null: no limit. */
  readonly projectBound: Value | null;
  /** The range of numbers for a project; null for any. */
  readonly projectRange: readonly [least: number, most: number] | null;
  /** A resumed session keeps its first value unless a flag changes it. */
  readonly frozen: boolean;
};

const wholeNumber = { type: 'number', whole: true } as const;
const anyNumber = { type: 'number', whole: false } as const;
const onOrOff = { type: 'switch' } as const;
const words = (...list: readonly string[]) => ({ type: 'words', words: list }) as const;

type Row = Pick<Setting, 'key' | 'kind' | 'help'> &
  Partial<Setting> & {
    /** The built-in value, which is also `projectBound`. */
    readonly usual?: Value;
  };

const row = ({ usual, ...setting }: Row): Setting => ({
  variable: `PAWL_${setting.key.toUpperCase().replaceAll('.', '_')}`,
  project: 'no',
  flag: null,
  frozen: false,
  builtIn: String(usual ?? 'none'),
  projectBound: usual ?? null,
  projectRange: null,
  ownWords: [],
  userWords: [],
  ...setting,
});

/**
 * The range of waiting times for a project. A shorter time would repeat calls at the user's cost, a
 * longer one would wait for a dead model.
 */
const PROJECT_WAIT_MS = [1_000, 3_600_000] as const;

/** Settings of model calls: requests, retries and waiting times. */
const modelCallSettings: readonly Setting[] = [
  row({
    key: 'effort',
    kind: { ...words('auto', 'low', 'medium', 'high', 'xhigh', 'max'), undecided: 'auto' },
    frozen: true,
    project: 'tighten',
    flag: '--effort <level>',
    builtIn: 'auto',
    projectBound: 'medium',
    help:
      'how much the model thinks: low, medium, high, xhigh, max or auto\n' +
      'By default the model decides. A level that the model lacks becomes the next lower one; ' +
      'some models can not be told.',
  }),
  row({
    key: 'reasoning_summaries',
    kind: words('off', 'on'),
    project: 'tighten',
    usual: 'on',
    help:
      "ask providers for summaries of the model's reasoning: on or off\n" +
      'If an account may not have them, requests continue without.',
  }),
  row({
    key: 'cache_ttl',
    kind: words('auto', '5m', '1h'),
    builtIn: 'auto',
    help:
      'how long Anthropic keeps the cache of a request: 5m, 1h or auto\n' +
      '1h costs 2 times the price of input to write, 5m 1.25 times. auto is 1h in a terminal, ' +
      'whose user makes pauses, and 5m elsewhere.',
  }),
  row({
    key: 'max_retries',
    kind: wholeNumber,
    project: 'tighten',
    usual: 8,
    help: 'how often to retry a failed model call',
  }),
  row({
    key: 'retry_ms',
    kind: wholeNumber,
    builtIn: '1000',
    help:
      'wait before the first retry\n' +
      'Each further wait is twice as long, up to a minute, plus a random part of up to a quarter.',
  }),
  row({
    key: 'first_byte_ms',
    kind: wholeNumber,
    project: 'raise',
    usual: 120_000,
    projectRange: PROJECT_WAIT_MS,
    help: 'how long a model may take to start its reply\nRaise it for slow local models.',
  }),
  row({
    key: 'silence_ms',
    kind: wholeNumber,
    project: 'raise',
    usual: 90_000,
    projectRange: PROJECT_WAIT_MS,
    help: 'how long a model may pause within a reply',
  }),
];

const commonSettings: readonly Setting[] = [
  row({
    key: 'model',
    kind: { type: 'model' },
    frozen: true,
    project: 'sameProvider',
    flag: '--model <provider/name>',
    builtIn: 'see docs/set-up/models.md',
    help: `the model to use, for example ${DEFAULT_MODEL}\n/model in a session lists the known models and their prices. scripted/FILE plays a script.`,
  }),
  row({
    key: 'fallback',
    kind: { type: 'models' },
    flag: '--fallback <models>',
    help:
      'models that take over if the model is overloaded, unreachable or used up\n' +
      'Separated by commas, the first one first: openai/NAME,ollama/NAME. Each takes over after ' +
      'the last retry of the one before; the next turn asks the model again.',
  }),
  row({
    key: 'max_usd',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-usd <amount>',
    help:
      'the most that the session may cost, in dollars\n' +
      'No request is sent that could make the session cost more.',
  }),
  row({
    key: 'max_rounds',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-rounds <count>',
    builtIn: '100 in a terminal, else none',
    projectBound: 100,
    help:
      'stop a turn after this many model calls with tools\n' +
      'The default is 100 in a terminal; without a terminal there is no limit.',
  }),
  row({
    key: 'max_tokens',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-tokens <count>',
    help:
      'stop calling models once the session has used this many tokens\n' +
      'The last request and its reply may exceed the limit.',
  }),
  row({
    key: 'max_minutes',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-minutes <count>',
    help: 'stop a turn after this many minutes',
  }),
  row({
    key: 'preset',
    kind: words('plan', 'careful', 'ci', 'auto', 'full'),
    project: 'tighten',
    ownWords: ['full'],
    // it denies what the user would be asked about
    userWords: ['ci'],
    flag: '--preset <name>',
    builtIn: 'careful in a terminal, else auto',
    projectBound: 'careful',
    help:
      'what the agent may do unasked: plan, careful, auto, ci or full\n' +
      'plan only reads. careful asks before edits, before a command deletes or overwrites what ' +
      'could not be taken back, and before one leaves the sandbox; it is the default in a ' +
      'terminal. auto asks only before something leaves the sandbox or the workspace; it is the ' +
      'default without a terminal. ci is like auto, but denies instead of asking. full is for ' +
      'containers and virtual machines: no sandbox, nothing is asked or denied but by your own ' +
      'rules, and only this flag and your own config.toml can choose it.',
  }),
  row({
    key: 'sandbox',
    kind: words('read-only', 'workspace', 'workspace+net', 'off'),
    project: 'tighten',
    flag: '--sandbox <level>',
    builtIn: 'workspace; with the preset plan read-only',
    projectBound: 'read-only',
    help:
      'what commands can reach: workspace, workspace+net, read-only or off\n' +
      'workspace is the default: commands write only there, and have no network, no keys and no ' +
      'home folder. read-only is the default with the preset plan.',
  }),
  row({
    key: 'claude_files',
    kind: words('off', 'on'),
    project: 'tighten',
    usual: 'on',
    help: 'also read skills and commands from .claude folders: on or off',
  }),
  row({
    key: 'pass_env',
    kind: { type: 'names' },
    help:
      'environment variables to pass to commands in the sandbox, besides the usual ones\n' +
      'For example ["DATABASE_URL"]. Keys of providers are never passed.',
  }),
  row({
    key: 'allow_hosts',
    kind: { type: 'hosts' },
    project: 'tighten',
    flag: '--allow-hosts <hosts>',
    projectBound: '',
    help:
      'hosts that tools may read from without asking\n' +
      'Separated by commas: example.com, *.example.com or example.com:8080.',
  }),
  row({
    key: 'on_ask',
    kind: words('stop', 'deny'),
    flag: '--on-ask <what>',
    builtIn: 'stop',
    help: 'without a terminal, if a call needs approval: stop (default) or deny',
  }),
  row({
    key: 'hooks',
    kind: words('never', 'mutatingOk', 'mutating', 'always'),
    frozen: true,
    project: 'tighten',
    flag: '--hooks <when>',
    usual: 'mutating',
    help:
      'when to format and look for commits: mutating, mutatingOk, always, never\n' +
      'mutating is the default: after calls that may have changed something, even if they ' +
      'failed. mutatingOk: only after those that succeeded.',
  }),
  row({
    key: 'formatter',
    kind: words('off', 'on'),
    frozen: true,
    project: 'tighten',
    flag: '--formatter <on|off>',
    builtIn: 'on with the presets auto and ci, else off',
    projectBound: 'off',
    help:
      'format the files that the agent changed: on or off\n' +
      "It uses the repository's formatters. The default is on with the presets auto and ci, " +
      "otherwise off, because a formatter's configuration is code of the repository.",
  }),
  row({
    key: 'checkpoints',
    kind: words('off', 'on'),
    project: 'tighten',
    usual: 'on',
    help:
      'keep what the agent changes in files, to take it back: on (default) or off\n' +
      'Copies lie in the state folder.',
  }),
  row({
    key: 'notifications',
    kind: words('off', 'on'),
    builtIn: 'on',
    help:
      'in a terminal: title of the window, bell and notification: on (default) or off\n' +
      'The title shows the state. The bell rings if an answer is wanted, or a long turn has ended ' +
      'while you look elsewhere.',
  }),
  row({
    key: 'explore',
    kind: onOrOff,
    frozen: true,
    project: 'tighten',
    flag: '--explore',
    usual: false,
    help:
      'give the model a tool that answers questions about very large files\n' +
      'It uses programs and further model calls (pawl ask), which count toward the limits.',
  }),
  row({
    key: 'tasks',
    kind: onOrOff,
    frozen: true,
    project: 'tighten',
    flag: '--tasks',
    usual: false,
    help:
      'give the model a tool that starts other agents\n' +
      'Each has a session of its own, reads the workspace, changes nothing, and counts toward the ' +
      'limits.',
  }),
  row({
    key: 'pictures',
    kind: words('no', 'auto', 'yes'),
    project: 'tighten',
    flag: '--pictures <auto|yes|no>',
    usual: 'auto',
    help:
      'send pictures to the model: auto, yes or no\n' +
      'auto is the default: if the model is known to accept them. yes: even if its server does ' +
      'not say so.',
  }),
  row({
    key: 'auto_commit',
    kind: onOrOff,
    frozen: true,
    project: 'tighten',
    flag: '--auto-commit',
    usual: false,
    help: "commit the agent's changes, and never yours; it needs checkpoints",
  }),
  row({
    key: 'profile',
    kind: words('minimal', 'loom', 'sketch', 'tools', 'full'),
    frozen: true,
    flag: '--profile <name>',
    help:
      'a set of settings: minimal, loom, sketch, tools or full\n' +
      'minimal, loom and sketch make the agent behave like the published agent of that name. tools ' +
      'is tools mode: after ten rounds the model must answer. full turns on everything that runs ' +
      'after tools, including auto-commit. Other flags override it.',
  }),
  row({
    key: 'answer_minutes',
    kind: anyNumber,
    help:
      'refuse a call of a detached session after so many minutes without an answer\n' +
      'By default it waits.',
  }),
  row({
    key: 'telemetry',
    kind: words('off', 'auto', 'content'),
    builtIn: 'auto',
    help:
      'send spans of OpenTelemetry to a collector: auto, content or off\n' +
      'auto is the default: if telemetry_endpoint or OTEL_EXPORTER_OTLP_ENDPOINT names a collector. ' +
      'content: likewise, with prompts, replies and results.',
  }),
  row({
    key: 'telemetry_endpoint',
    kind: { type: 'url' },
    help: 'address of the collector (OTLP over HTTP), for example http://localhost:4318',
  }),
  row({
    key: 'allow_unknown_price',
    kind: onOrOff,
    project: 'tighten',
    flag: '--allow-unknown-price',
    usual: false,
    help: 'allow --max-usd with a model whose price is unknown',
  }),
  ...modelCallSettings,
];

/** Settings of `pawl ask` only. Its limits and models come from the settings above. */
const askSettings: readonly Setting[] = [
  row({
    key: 'ask.sub_model',
    kind: { type: 'model' },
    frozen: true,
    project: 'sameProvider',
    flag: '--sub-model <provider/name>',
    builtIn: 'the same model',
    help: 'the model for calls from its programs (default: the same)',
  }),
  row({
    key: 'ask.environment',
    kind: { ...words('quickjs', 'python'), former: ['javascript'] },
    frozen: true,
    flag: '--environment <name>',
    builtIn: 'quickjs',
    help:
      "where the model's programs run: quickjs (the default) or python\n" +
      'quickjs runs JavaScript and needs nothing; python needs Linux, bubblewrap and python3.',
  }),
  row({
    key: 'ask.max_depth',
    kind: wholeNumber,
    frozen: true,
    project: 'tighten',
    flag: '--max-depth <count>',
    usual: 1,
    help:
      'how deep runs may nest (default: 1)\n' +
      'Calls above this depth can run programs themselves; with 1 none can.',
  }),
  row({
    key: 'ask.max_iterations',
    kind: wholeNumber,
    frozen: true,
    project: 'tighten',
    flag: '--max-iterations <count>',
    usual: 30,
    help: 'ask the model for its answer after this many programs (default: 30)',
  }),
  row({
    key: 'ask.cell_ms',
    kind: wholeNumber,
    frozen: true,
    project: 'tighten',
    variable: 'PAWL_CELL_MS',
    usual: 60_000,
    projectRange: [1_000, 60_000],
    help: 'time limit for a program, without the time of its calls to models',
  }),
];

const providerSettings: readonly Setting[] = providers.flatMap(
  ({ name, keyVariables: [keyVariable], urlVariable }) => [
    row({
      key: `providers.${name}.base_url`,
      kind: { type: 'url' },
      variable: urlVariable,
      builtIn: "the provider's own",
      help: `address of ${name}, if not its usual one`,
    }),
    row({
      key: `providers.${name}.api_key_file`,
      kind: { type: 'file' },
      variable: keyVariable,
      help: `a file with the key of ${name}, readable only by you`,
    }),
  ],
);

/** A help text for a list: its first line. */
export const helpLine = (help: string): string => help.split('\n')[0] ?? '';

/** A help text as a whole, on one line. */
export const helpText = (help: string): string => help.replace('\n', '. ');

export const settings: readonly Setting[] = [
  ...commonSettings,
  ...askSettings,
  ...providerSettings,
];

export const findSetting = (key: string): Setting => {
  const setting = settings.find((one) => one.key === key);
  if (setting === undefined) throw new Error(`there is no setting ${key}`);
  return setting;
};

/** `--max-usd` of `--max-usd <amount>`; null for a setting without a flag. */
export const flagName = ({ flag }: Setting): string | null => flag?.split(' ')[0] ?? null;

/**
 * The attribute name that the flag parser creates: `maxUsd`. Settings without a flag have one too
 * (`firstByteMs`): programs set them like flags.
 */
export const flagAttribute = (setting: Setting): string => {
  const name = flagName(setting)?.slice(2) ?? setting.key.split('.').at(-1) ?? setting.key;
  return name.replace(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
};

// The check of a setting's value. The message for a wrong value says what to write instead.

type CheckedValue =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'bad'; readonly why: string };

const ok = (value: Value): CheckedValue => ({ kind: 'ok', value });
const bad = (why: string): CheckedValue => ({ kind: 'bad', why });

/**
 * A wrong value for a message. Of a long text only the type is shown, because it may be a pasted
 * key.
 */
const showWrongValue = (raw: unknown): string => {
  if (typeof raw === 'number' || typeof raw === 'boolean') return String(raw);
  if (typeof raw === 'string') return raw.length <= 20 ? `"${raw}"` : 'a text';
  if (raw instanceof Date) return 'a date';
  return Array.isArray(raw) ? 'a list' : 'a table';
};

/** Checks a list of texts, or texts separated by commas. */
const checkList = (raw: unknown, fits: (text: string) => boolean, about: string): CheckedValue => {
  const texts = typeof raw === 'string' ? raw.split(',').map((text) => text.trim()) : raw;
  const isList = Array.isArray(texts) && texts.length > 0;
  return isList && texts.every((text) => typeof text === 'string' && fits(text))
    ? ok(texts.join(','))
    : bad(`is a list of ${about}`);
};

/** `provider/name` */
const MODEL_ID = /^[^/\s]+\/\S/;

const VARIABLE_NAME = /^[a-z_]\w*$/i;

const checkText = (kind: ValueKind, text: string): CheckedValue => {
  if (kind.type === 'model') {
    return MODEL_ID.test(text) ? ok(text) : bad('is written "provider/name"');
  }
  if (kind.type === 'url') {
    return /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')
      ? ok(text)
      : bad('is an http or https URL: "http://127.0.0.1:8080/v1"');
  }
  return text.startsWith('/') || text.startsWith('~/')
    ? ok(text)
    : bad('is the whole path of a file: "/…" or "~/…"');
};

/** Checks a value from TOML. */
export const checkValue = (kind: ValueKind, raw: unknown): CheckedValue => {
  switch (kind.type) {
    case 'words':
      return typeof raw === 'string' && [...kind.words, ...(kind.former ?? [])].includes(raw)
        ? ok(raw)
        : bad(
            `is one of ${kind.words.map((word) => `"${word}"`).join(', ')}, not ` +
              `${showWrongValue(raw)}`,
          );
    case 'number': {
      const fits =
        typeof raw === 'number' && raw > 0 && (kind.whole ? Number.isSafeInteger(raw) : raw < 1e12);
      return fits
        ? ok(raw)
        : bad(
            `is a ${kind.whole ? 'whole ' : ''}number above zero, without quotes, not ` +
              `${showWrongValue(raw)}`,
          );
    }
    case 'switch':
      return typeof raw === 'boolean'
        ? ok(raw)
        : bad(`is true or false, without quotes, not ${showWrongValue(raw)}`);
    case 'hosts': {
      const about = 'hosts without scheme, path and default port: ["example.com", "*.example.org"]';
      const hosts = checkList(raw, isHostPattern, about);
      return hosts.kind === 'ok' ? ok(String(hosts.value).toLowerCase()) : hosts;
    }
    case 'names': {
      const about = 'names of variables: ["DATABASE_URL", "JAVA_HOME"]';
      return checkList(raw, (name) => VARIABLE_NAME.test(name), about);
    }
    case 'models': {
      const about = 'models: ["provider/name", "provider/name"]';
      return checkList(raw, (id) => MODEL_ID.test(id), about);
    }
    case 'model':
    case 'url':
    case 'file':
      return typeof raw === 'string'
        ? checkText(kind, raw)
        : bad(`is a text in quotes, not ${showWrongValue(raw)}`);
    default:
      return kind satisfies never;
  }
};

const SWITCH_WORDS: Readonly<Record<string, boolean>> = {
  1: true,
  true: true,
  on: true,
  yes: true,
  0: false,
  false: false,
  off: false,
  no: false,
};

/** Checks a value from an environment variable. */
export const checkVariable = (kind: ValueKind, text: string): CheckedValue => {
  if (kind.type === 'switch') {
    const value = Object.hasOwn(SWITCH_WORDS, text) ? SWITCH_WORDS[text] : undefined;
    return value === undefined ? bad(`is 1 or 0, not ${showWrongValue(text)}`) : ok(value);
  }
  if (kind.type !== 'number') return checkValue(kind, text);
  const checked = checkValue(kind, /^\d+(\.\d+)?$/.test(text) ? Number(text) : text);
  return checked.kind === 'ok' ? checked : bad(checked.why.replace(', without quotes', ''));
};

/** A value for display: an address without its user name and password. */
export const showValue = (value: Value): string => {
  const text = String(value);
  if (!/^[a-z]+:\/\/[^/]*@/i.test(text)) return text;
  return text.replace(/^([a-z]+:\/\/)[^/]*@/i, '$1…@');
};
