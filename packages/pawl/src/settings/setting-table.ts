import { DEFAULT_MODEL, providers } from '@pawl/agent/models/provider-table';
import { modelCallSettings } from './model-call-settings.js';
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
    help: `the model to use, for example ${DEFAULT_MODEL} or scripted/FILE`,
  }),
  row({
    key: 'max_usd',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-usd <amount>',
    frozen: false,
    help: 'stop calling models once the session has cost this many dollars; the last reply may exceed the limit',
  }),
  row({
    key: 'max_rounds',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-rounds <count>',
    builtIn: '100 in a terminal, else none',
    tightest: 100,
    frozen: false,
    help: 'stop a turn after this many model calls with tools (default: 100 in a terminal, no limit without one)',
  }),
  row({
    key: 'max_tokens',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-tokens <count>',
    frozen: false,
    help: 'stop calling models once the session has used this many tokens; the last reply may exceed the limit',
  }),
  row({
    key: 'max_minutes',
    kind: anyNumber,
    project: 'tighten',
    flag: '--max-minutes <count>',
    frozen: false,
    help: 'stop a turn after this many minutes',
  }),
  row({
    key: 'preset',
    kind: words('plan', 'careful', 'ci', 'auto'),
    project: 'tighten',
    flag: '--preset <name>',
    builtIn: 'careful in a terminal, else auto',
    tightest: 'careful',
    frozen: false,
    help: 'what the agent may do without asking: plan (only read), careful (asks before edits, before a command deletes or overwrites what git could not restore, and before one leaves the sandbox; default in a terminal), auto (asks only before something leaves the sandbox or the workspace; default without a terminal) or ci (like auto, but denies instead of asking)',
  }),
  row({
    key: 'sandbox',
    kind: words('read-only', 'workspace', 'workspace+net', 'off'),
    project: 'tighten',
    flag: '--sandbox <level>',
    builtIn: 'workspace; with the preset plan read-only',
    tightest: 'read-only',
    frozen: false,
    help: 'what commands can reach: workspace (default: they write only there, and have no network, no keys and no home folder), workspace+net, read-only (default with the preset plan) or off',
  }),
  row({
    key: 'claude_files',
    kind: words('off', 'on'),
    project: 'tighten',
    flag: null,
    builtIn: 'on',
    tightest: 'on',
    frozen: false,
    help: 'also read skills and commands from .claude folders: on or off',
  }),
  row({
    key: 'pass_env',
    kind: { type: 'names' },
    project: 'no',
    flag: null,
    frozen: false,
    help: 'environment variables to pass to commands in the sandbox in addition to the usual ones, for example ["DATABASE_URL"]; keys of providers are never passed',
  }),
  row({
    key: 'allow_hosts',
    kind: { type: 'hosts' },
    project: 'tighten',
    flag: '--allow-hosts <hosts>',
    tightest: '',
    frozen: false,
    help: 'hosts that tools may read from without asking, separated by commas: example.com, *.example.com or example.com:8080',
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
    help: 'when to look for new commits and format changed files: mutating (default: after calls that may have changed something, even if they failed), mutatingOk (only after those that succeeded), always or never',
  }),
  row({
    key: 'formatter',
    kind: words('off', 'on'),
    project: 'tighten',
    flag: '--formatter <on|off>',
    builtIn: 'on with the presets auto and ci, else off',
    tightest: 'off',
    help: "format the files that the agent changed with the repository's formatters (default: on with the presets auto and ci, otherwise off, because a formatter's configuration is code of the repository)",
  }),
  row({
    key: 'explore',
    kind: onOrOff,
    project: 'tighten',
    flag: '--explore',
    builtIn: 'false',
    tightest: false,
    help: 'give the model a tool that answers questions about files too large to read; it uses programs and further model calls (pawl ask), which count toward the limits',
  }),
  row({
    key: 'tasks',
    kind: onOrOff,
    project: 'tighten',
    flag: '--tasks',
    builtIn: 'false',
    tightest: false,
    help: 'give the model a tool that starts other agents: each has a session of its own, reads the workspace, changes nothing, and counts toward the limits',
  }),
  row({
    key: 'pictures',
    kind: words('no', 'auto', 'yes'),
    project: 'tighten',
    flag: '--pictures <auto|yes|no>',
    builtIn: 'auto',
    tightest: 'auto',
    frozen: false,
    help: 'send pictures to the model: auto (default: if the model is known to accept them), yes (even if its server does not say so) or no',
  }),
  row({
    key: 'auto_commit',
    kind: onOrOff,
    project: 'tighten',
    flag: '--auto-commit',
    builtIn: 'false',
    tightest: false,
    help: "commit the agent's changes, and never yours",
  }),
  row({
    key: 'profile',
    kind: words('minimal', 'loom', 'sketch', 'tools', 'full'),
    project: 'no',
    flag: '--profile <name>',
    help: 'a set of settings: minimal, loom and sketch make the agent behave like that seed system, tools is tools mode (after ten rounds the model must answer), full turns on everything that runs after tools, including auto-commit; other flags override it',
  }),
  row({
    key: 'telemetry',
    kind: words('off', 'auto', 'content'),
    project: 'no',
    flag: null,
    builtIn: 'auto',
    frozen: false,
    help: 'send spans of OpenTelemetry to a collector: auto (default: if telemetry_endpoint or OTEL_EXPORTER_OTLP_ENDPOINT names one), content (likewise, with prompts, replies and results) or off',
  }),
  row({
    key: 'telemetry_endpoint',
    kind: { type: 'url' },
    project: 'no',
    flag: null,
    frozen: false,
    help: 'address of the collector (OTLP over HTTP), for example http://localhost:4318',
  }),
  row({
    key: 'allow_unknown_price',
    kind: onOrOff,
    project: 'tighten',
    flag: '--allow-unknown-price',
    builtIn: 'false',
    tightest: false,
    frozen: false,
    help: 'allow --max-usd with a model whose price is unknown',
  }),
  ...modelCallSettings,
];

/** Settings of `pawl ask` only. Its limits and models come from the settings above. */
const asking: readonly Setting[] = [
  row({
    key: 'ask.sub_model',
    kind: { type: 'model' },
    project: 'sameProvider',
    flag: '--sub-model <provider/name>',
    builtIn: 'the same model',
    help: 'the model for calls from its programs (default: the same)',
  }),
  row({
    key: 'ask.environment',
    kind: words('javascript', 'quickjs', 'python'),
    project: 'no',
    flag: '--environment <name>',
    builtIn: 'javascript where that works, else quickjs',
    help: "where the model's programs run: javascript (in bubblewrap), quickjs or python (default: javascript if it works, otherwise quickjs)",
  }),
  row({
    key: 'ask.max_depth',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-depth <count>',
    builtIn: '1',
    tightest: 1,
    help: 'how deep runs may nest: calls above this depth can run programs themselves (default: 1, none can)',
  }),
  row({
    key: 'ask.max_iterations',
    kind: wholeNumber,
    project: 'tighten',
    flag: '--max-iterations <count>',
    builtIn: '30',
    tightest: 30,
    help: 'ask the model for its answer after this many programs (default: 30)',
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
    help: 'time limit for a program, without the time of its calls to models',
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
      help: `address of ${name}, if not its usual one`,
    }),
    row({
      key: `providers.${name}.api_key_file`,
      kind: { type: 'file' },
      project: 'no',
      flag: null,
      variable: keyVariable,
      frozen: false,
      help: `a file with the key of ${name}, readable only by you`,
    }),
  ],
);

export const settings: readonly Setting[] = [...common, ...asking, ...ofProviders];

export const settingOf = (key: string): Setting => {
  const found = settings.find((setting) => setting.key === key);
  if (found === undefined) throw new Error(`there is no setting ${key}`);
  return found;
};
