import { DEFAULT_MODEL, providers } from '../providers/provider-table.js';
import { ofCalls } from './call-rows.js';
import { anyNumber, onOrOff, row, type Setting, wholeNumber, words } from './setting.js';

/**
 * The table of settings. Config files, environment, flags, help, completion, the man page and docs/configuration.md are
 * made from it.
 *
 * 1. A project's file affects the user's money, files and endpoints, so it may only make those settings stricter.
 *    `project` says which value is stricter.
 * 2. No setting contains a secret, but a setting may name a file that does.
 */

const common: readonly Setting[] = [
  row({
    key: 'model',
    kind: { type: 'model' },
    project: 'sameProvider',
    flag: '--model <provider/name>',
    builtIn: 'see docs/models.md',
    help: `which model answers, for example ${DEFAULT_MODEL} or scripted/FILE`,
  }),
  row({
    key: 'max_usd',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-usd <amount>',
    help: 'no further model call once this session has cost so many dollars; the reply that crosses the limit is still paid for',
  }),
  row({
    key: 'max_rounds',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-rounds <count>',
    builtIn: '100 in a terminal, else none',
    tightest: 100,
    help: 'stop after so many model calls with tools in a turn (default: 100 in a terminal, none without one)',
  }),
  row({
    key: 'max_tokens',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-tokens <count>',
    help: 'no further model call once this session has used so many tokens; the reply that crosses the limit still counts',
  }),
  row({
    key: 'max_minutes',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-minutes <count>',
    help: 'stop a turn after so many minutes',
  }),
  row({
    key: 'preset',
    kind: words('plan', 'careful', 'ci', 'auto'),
    project: 'tighten',
    flag: '--preset <name>',
    builtIn: 'careful in a terminal, else auto',
    tightest: 'careful',
    help: 'what needs no question: plan (only reads), careful (asks before changes, and before a command leaves the sandbox; default in a terminal), auto (asks only before something leaves the sandbox or the workspace; default without a terminal) or ci (denies that, never asks)',
  }),
  row({
    key: 'sandbox',
    kind: words('read-only', 'workspace', 'workspace+net', 'off'),
    project: 'tighten',
    flag: '--sandbox <level>',
    builtIn: 'workspace; with the preset plan read-only',
    tightest: 'read-only',
    frozen: false,
    help: 'how far commands reach: workspace (default: they write only there, without network, keys and your home), workspace+net, read-only (default with the preset plan) or off',
  }),
  row({
    key: 'pass_env',
    kind: { type: 'names' },
    project: 'no',
    flag: null,
    frozen: false,
    help: 'variables of your environment that commands in the sandbox get besides the usual ones, for example ["DATABASE_URL"]; keys of providers never',
  }),
  row({
    key: 'allow_hosts',
    kind: { type: 'hosts' },
    project: 'tighten',
    flag: '--allow-hosts <hosts>',
    tightest: '',
    help: 'hosts that tools may read from without asking, with commas between them: example.com, *.example.com or example.com:8080',
  }),
  row({
    key: 'on_ask',
    kind: words('stop', 'deny'),
    project: 'free',
    flag: '--on-ask <what>',
    builtIn: 'stop',
    frozen: false,
    help: 'without a terminal, when a call needs approval: stop (default) or deny',
  }),
  row({
    key: 'hooks',
    kind: words('never', 'mutatingOk', 'mutating', 'always'),
    project: 'tighten',
    flag: '--hooks <when>',
    builtIn: 'mutating',
    tightest: 'mutating',
    help: 'look for new commits and format changed files after tools: mutating (default: after calls that may have changed something, however they ended), mutatingOk (only those that succeeded), always or never',
  }),
  row({
    key: 'formatter',
    kind: words('off', 'on'),
    project: 'tighten',
    flag: '--formatter <on|off>',
    builtIn: 'on with the presets auto and ci, else off',
    tightest: 'off',
    help: 'run the formatters that the repository uses on files that the agent changed (default: on with the presets auto and ci, else off, since how a formatter is set up is code of the repository)',
  }),
  row({
    key: 'explore',
    kind: onOrOff,
    project: 'tighten',
    flag: '--explore',
    builtIn: 'false',
    tightest: false,
    help: 'give the model a tool that answers questions about files too large to read, by programs and further model calls (pawl ask); what it spends counts',
  }),
  row({
    key: 'pictures',
    kind: words('no', 'auto', 'yes'),
    project: 'tighten',
    flag: '--pictures <auto|yes|no>',
    builtIn: 'auto',
    tightest: 'auto',
    frozen: false,
    help: 'whether the model is shown pictures: auto (default: if it is known to take them), yes (it does, though its server does not say so) or no',
  }),
  row({
    key: 'auto_commit',
    kind: onOrOff,
    project: 'tighten',
    flag: '--auto-commit',
    builtIn: 'false',
    tightest: false,
    help: 'commit what the agent has changed, never what you have',
  }),
  row({
    key: 'profile',
    kind: words('minimal', 'loom', 'sketch', 'tools', 'full'),
    project: 'no',
    flag: '--profile <name>',
    help: 'settings by name: minimal, loom or sketch make the agent behave as that seed system does, tools is tools mode (ten rounds, then the model is asked for its answer), full turns everything after tools on, auto-commit too; flags beside it win',
  }),
  row({
    key: 'allow_unknown_price',
    kind: onOrOff,
    project: 'tighten',
    flag: '--allow-unknown-price',
    builtIn: 'false',
    tightest: false,
    frozen: false,
    help: 'let --max-usd start with a model whose price is unknown',
  }),
  ...ofCalls,
];

/** Settings of `pawl ask` only. Its limits and models come from the settings above. */
const asking: readonly Setting[] = [
  row({
    key: 'ask.sub_model',
    kind: { type: 'model' },
    project: 'sameProvider',
    flag: '--sub-model <provider/name>',
    builtIn: 'the same model',
    help: 'which model answers the calls of its programs (default: the same)',
  }),
  row({
    key: 'ask.environment',
    kind: words('javascript', 'quickjs', 'python'),
    project: 'no',
    flag: '--environment <name>',
    builtIn: 'javascript where that works, else quickjs',
    help: 'where programs of the model run: javascript (in bubblewrap), quickjs or python (default: javascript where that works, else quickjs)',
  }),
  row({
    key: 'ask.max_depth',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-depth <count>',
    builtIn: '1',
    tightest: 1,
    help: 'up to which depth calls of programs have an environment of their own (default: 1, none has)',
  }),
  row({
    key: 'ask.max_iterations',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-iterations <count>',
    builtIn: '30',
    tightest: 30,
    help: 'ask for the answer after so many programs (default: 30)',
  }),
  row({
    key: 'ask.cell_ms',
    kind: wholeNumber,
    project: 'tighten',
    flag: null,
    variable: 'PAWL_CELL_MS',
    builtIn: '60000',
    tightest: 60_000,
    projectRange: [1_000, 60_000],
    help: 'how long a program may work, its calls to models not counted',
  }),
];

const ofProviders: readonly Setting[] = providers.flatMap(
  ({ name, keyVariables: [keyVariable], urlVariable }) => [
    row({
      key: `providers.${name}.base_url`,
      kind: { type: 'url' },
      project: 'no',
      flag: null,
      variable: urlVariable,
      builtIn: "the provider's own",
      frozen: false,
      help: `where ${name} is reached, in place of its own address`,
    }),
    row({
      key: `providers.${name}.api_key_file`,
      kind: { type: 'file' },
      project: 'no',
      flag: null,
      variable: keyVariable,
      frozen: false,
      help: `a file that holds the key of ${name}, and that nobody else can read`,
    }),
  ],
);

export const settings: readonly Setting[] = [...common, ...asking, ...ofProviders];

export const settingOf = (key: string): Setting => {
  const found = settings.find((setting) => setting.key === key);
  if (found === undefined) throw new Error(`there is no setting ${key}`);
  return found;
};
