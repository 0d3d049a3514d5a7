/**
 * Slash commands, by name. Those about stored sessions are in session-commands.ts, `/permissions`
 * in permissions.ts, `/rewind` and `/redo` in rewind-commands.ts.
 *
 * From top to bottom: the commands; `runCommand`, which calls the one that was typed; then what
 * some of them need: `/model`, `/effort` and `/preset`, `/budget`, `/jobs` and `/mcp`.
 */

import type { ConnectionStatus } from '@pawl/agent/extensions/mcp/connection';
import type { ServerStatus } from '@pawl/agent/extensions/mcp/session-servers';
import { remainingIn, toldUsage } from '@pawl/agent/machine/moves/request';
import {
  type Dimension,
  type Effort,
  efforts,
  isLimited,
  type Limit,
  type Limits,
  type Prices,
  readLimit,
} from '@pawl/agent/machine/settings';
import { knownCostUsd, reservedUsd, type SessionData, type State } from '@pawl/agent/machine/state';
import { catalogueFacts, knownModels, modelsLike } from '@pawl/agent/models/catalogue';
import { firstCharacters, plural } from '@pawl/agent/platform/text';
import type { ApprovalRequest } from '@pawl/agent/policy/approval-question';
import type { Preset, RuleSubject } from '@pawl/agent/policy/presets';
import type { ModelFacts } from '@pawl/agent/ports/model';
import type { Input } from '@pawl/agent/ports/session';
import type { Job } from '@pawl/agent/ports/tool';
import { coldUsd } from '@pawl/agent/session/model-call';
import { aboutPresets, presetNames, presetSettings } from '@pawl/agent/session/session-settings';
import type { Inspector } from '@pawl/inspector/server/inspector-server';
import type { Choice } from '@pawl/terminal/choices';
import {
  formatCost,
  formatSpent,
  formatTokens,
  harmless,
  indentWords,
  type Look,
  oneLine,
  paint,
  wrapWords,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { errorEnding } from '../process/exit-codes.js';
import { type CommandName, keyHelp, slashHelp } from '../sessions/typed-input.js';
import { effortNote } from '../settings/connect-model.js';
import { allowInFolder, permissions } from './permissions.js';
import { redo, rewind } from './rewind-commands.js';
import {
  clear,
  copy,
  diff,
  exportConversation,
  fork,
  requireRest,
  resume,
} from './session-commands.js';
import { NotNow, type SlashCommand, type SlashCommandContext } from './slash-command.js';

// /help

/** Characters that /help shows of the description of a skill. */
const SKILL_ABOUT_CHARACTERS_MAX = 100;

/** Columns of the names; the description of a longer one stands below it. */
const NAME_COLUMNS_MAX = 26;

/** A heading, then names with their descriptions beside them, or below them in a narrow window. */
const groupRows = (
  look: Look,
  heading: Safe,
  group: readonly (readonly [string, string])[],
): readonly Safe[] => {
  const nameColumns = Math.min(
    NAME_COLUMNS_MAX,
    4 + Math.max(...group.map(([usage]) => usage.length)),
  );
  const rows = group.flatMap(([usage, about]) => {
    const name = safe`  ${makeSafe(usage)}`;
    if (look.columns < 2 * nameColumns) {
      const below = wrapWords(makeSafe(about), look.columns - 5);
      return [paint(look, 'bold', name), ...below.map((row) => safe`    ${row}`)];
    }
    const beside = wrapWords(makeSafe(about), look.columns - nameColumns - 1);
    const below = beside.map((row) => safe`${safe``.padEnd(nameColumns)}${row}`);
    if (name.length > nameColumns - 2) return [paint(look, 'bold', name), ...below];
    const [first = safe``] = beside;
    return [safe`${paint(look, 'bold', name.padEnd(nameColumns))}${first}`, ...below.slice(1)];
  });
  return [paint(look, 'heading', heading), ...rows];
};

const helpRows = (look: Look, prompts: readonly Choice[]): readonly Safe[] => [
  ...groupRows(look, safe`Commands`, slashHelp),
  safe``,
  ...(prompts.length === 0
    ? []
    : [
        ...groupRows(
          look,
          safe`Skills and commands of your own`,
          prompts.map(
            ({ text, about }) =>
              [`/${text}`, firstCharacters(about, SKILL_ABOUT_CHARACTERS_MAX)] as const,
          ),
        ),
        safe``,
      ]),
  ...groupRows(look, safe`Keys`, keyHelp),
];

const help: SlashCommand = ({ view, look, prompts }) =>
  view.print(joinSafe(helpRows(look, prompts.choices), safe`\n`));

/** `/compact`, `/compact WHAT`, `/compact undo`, and `/compact redo WHAT`, which undoes first. */
const compact: SlashCommand = async (context, words) => {
  const { session } = context;
  const redoWords = /^redo(?:\s+(.*))?$/is.exec(words);
  if (words.toLowerCase() === 'undo' || redoWords !== null) {
    requireRest(context);
    await session.undoCompaction();
    if (redoWords === null) return;
  }
  const instructions = redoWords === null ? words : (redoWords[1] ?? '');
  await session.send({
    type: 'CompactRequested',
    ...(instructions === '' ? {} : { instructions }),
  });
};

/** `/retry`: during the wait before a retry at once, otherwise the last message again. */
const retry: SlashCommand = async ({ session, view }) =>
  void (await session.send({ type: view.state.name === 'Error' ? 'RetryNow' : 'RetryLast' }));

const model: SlashCommand = async (context, words) => {
  const { view, session } = context;
  const { model: before, primary } = view.state.session.settings;
  const chosen = await findModel(context, words);
  const place =
    primary === undefined ? '' : `, in place of ${primary.model} until the next turn begins`;
  if (chosen === null)
    return view.print(
      safe`  The model is ${makeSafe(before + place)}. To change it: /model PROVIDER/NAME`,
    );
  if (chosen === before && primary === undefined)
    return view.print(safe`  The model is already ${makeSafe(before)}.`);
  const now = await session.useModel(chosen);
  view.print(
    safe`  The next call goes to ${makeSafe(now.id)}\n  ${makeSafe(aboutFacts(now.facts))}`,
  );
  const note = effortNote(now, view.state.session.settings.effort ?? 'auto');
  if (note !== null) view.print(safe`  ${makeSafe(note)}`);
};

const effort: SlashCommand = async (context, words) => {
  const { view, session } = context;
  const { effort: now = 'auto' } = view.state.session.settings;
  const chosen = await chooseName(context, words, EFFORT, now);
  if (chosen === null || chosen === now) return view.print(safe`  effort ${makeSafe(now)} holds.`);
  await session.send({ type: 'SettingsChanged', patch: { effort: chosen } });
  view.print(
    safe`  effort ${makeSafe(chosen)} holds from the next call on: ${makeSafe(aboutEfforts[chosen])}`,
  );
  const note = effortNote(await session.model(), chosen);
  if (note !== null) view.print(safe`  ${makeSafe(note)}`);
};

const preset: SlashCommand = async (context, words) => {
  const { preset: before } = context.view.state.session.settings;
  const chosen = await chooseName(context, words, PRESET, before);
  const { settings } = context.view.state.session; // the list may have stood open for long
  // Sessions from before presets have only rules.
  if (chosen === null || chosen === settings.preset)
    return context.view.print(makeSafe(`  The preset is ${settings.preset ?? 'unnamed'}.`));
  const patch = await presetSettings(settings, chosen);
  await context.session.send({ type: 'SettingsChanged', patch });
  context.view.print(
    makeSafe(`  The preset is now ${chosen}: ${aboutPresets[chosen]} · sandbox ${patch.sandbox}`),
  );
};

/** The presets of Shift+Tab. Nobody is asked in `ci`, and `full` is chosen at the start. */
const CYCLED_PRESETS: readonly Preset[] = ['careful', 'auto', 'plan'];
/** One change at a time, so that two quick keys are two steps. */
let lastChange: Promise<void> = Promise.resolve();

/** Shift+Tab: changes to the next preset. The row below the input shows it; nothing is printed. */
export const nextPreset = (context: SlashCommandContext): Promise<void> => {
  const change = (): Promise<void> =>
    attemptFor(context, async () => {
      const { settings } = context.view.state.session;
      if (settings.preset === 'full')
        throw new NotNow('The preset full was chosen at the start. /preset NAME leaves it.');
      const at = settings.preset === undefined ? -1 : CYCLED_PRESETS.indexOf(settings.preset);
      const next = CYCLED_PRESETS[(at + 1) % CYCLED_PRESETS.length] ?? 'careful';
      const patch = await presetSettings(settings, next);
      await context.session.send({ type: 'SettingsChanged', patch });
    });
  lastChange = lastChange.then(change, change);
  return lastChange;
};

/** `/cost`: what the session has cost. */
const cost: SlashCommand = async ({ view, session, look }) => {
  const { settings } = view.state.session;
  const usage = toldUsage(view.state);
  const { prices } = (await session.model()).facts;
  const unpriced =
    usage.unpriced === 0 ? '' : ` · ${plural(usage.unpriced, 'call')} without a known price`;
  const text = [
    `input ${formatTokens(usage.inputTokens)} · cache read ` +
      `${formatTokens(usage.cacheReadTokens)}`,
    `cache write ${formatTokens(usage.cacheWriteTokens)} · output ` +
      `${formatTokens(usage.outputTokens)}`,
    formatSpent(knownCostUsd(usage), usage) + unpriced,
    ...(usage.estimated ?? []).map((model) => `estimated: ${model} reports no usage`),
  ].join(' · ');
  const price =
    prices === null
      ? ''
      : `\n${settings.model}: $${prices.input} in, $${prices.output} out per million tokens`;
  view.print(indentWords(makeSafe(text + price), look.columns));
};

/** `/budget`: shows the limits and what is used of them, or sets one. */
const budget: SlashCommand = async ({ view, session, flags }, words) => {
  const { state } = view;
  const { facts } = await session.model();
  if (words === '') return view.print(makeSafe(budgetText(state, facts)));
  const read = readBudget(words);
  if (read === null)
    throw new NotNow(
      `'${words}' is not a limit. Write for example /budget 5, /budget 200k tokens, 30 ` +
        'rounds or 10 minutes.',
    );
  const event = budgetEvent(state, read);
  const limitsDollars = event.type === 'SettingsChanged' && isLimited(event.patch.limits?.usd);
  const { model } = state.session.settings;
  if (limitsDollars && facts.prices === null && !flags.allowUnknownPrice)
    throw new NotNow(
      `The price of ${model} is unknown, so a limit in dollars can't hold. Limit tokens: ` +
        '/budget 200k tokens',
    );
  await session.send(event);
  const goesOn = event.type === 'ApproveBudget' ? '\n  /retry goes on.' : '';
  // The last row says how to set a limit.
  const text = budgetText(view.state, facts).split('\n').slice(0, -1).join('\n');
  view.print(makeSafe(text + goesOn));
};

/** `/jobs`: lists, reads and kills background commands of the agent. */
const jobs: SlashCommand = async ({ view, session }, words) => {
  const all = await session.jobs();
  const say = (text: string): void => view.print(harmless(text));
  if (words === '') {
    const hint = '  /jobs read 1 shows its output, /jobs kill 1 ends it';
    return say(
      all.length === 0
        ? '  Nothing runs in the background.'
        : [...all.map(jobRow), hint].join('\n'),
    );
  }
  const request = /^(read|kill)\s+(?:job-)?(\d+)$/i.exec(words);
  if (request === null)
    throw new NotNow(
      '/jobs lists the background commands; /jobs read 1 shows the output of one, /jobs kill ' +
        '1 ends it.',
    );
  const job = all.find(({ jobId }) => jobId === `job-${request[2]}`);
  if (job === undefined) {
    const rows =
      all.length === 0 ? 'There are no jobs.' : `There are:\n${all.map(jobRow).join('\n')}`;
    throw new NotNow(harmless(`There is no job-${request[2]}. ${rows}`));
  }
  if (request[1]?.toLowerCase() === 'kill') await job.kill();
  else say(job.output().trimEnd().replace(/^/gm, '    ') || '    (no output yet)');
  say(jobRow(job));
};

/** `/mcp`: the MCP servers of the session, the tools of one, and connecting again. */
const mcp: SlashCommand = async ({ view, servers }, words) => {
  const say = (text: string): void => view.print(harmless(text));
  if (words === 'connect') await servers.reconnect();
  const all = await servers.status();
  if (all === null) return say('  No MCP servers. In a shell: pawl mcp add NAME -- COMMAND ARGS');
  if (words === '') return say([...all.map(serverRow), MCP_HINT].join('\n'));
  if (words === 'connect') return say(all.map(serverRow).join('\n'));
  const server = all.find(({ name }) => name.toLowerCase() === words.toLowerCase());
  if (server === undefined)
    throw new NotNow(
      `There is no MCP server ${words}. There are ${all.map(({ name }) => name).join(', ')}.`,
    );
  say(
    [
      serverRow(server),
      ...server.tools.map((tool) => `    ${oneLine(tool, LINE_CHARACTERS_MAX)}`),
    ].join('\n'),
  );
};

/**
 * One server for all sessions of this process, which also lists detached sessions. It ends with the
 * process, and costs nothing while nobody looks.
 */
let inspectorServer: Promise<Inspector> | null = null;

/** `/inspect`: prints the address at which a browser shows this session while it works. */
const inspect: SlashCommand = async ({ view, session }) => {
  inspectorServer ??= Promise.all([
    import('../sessions/inspector-page.js'),
    import('../detached/live-page.js'),
  ]).then(([{ openInspector }, { livePage }]) => openInspector(livePage));
  try {
    const { addressOf } = await inspectorServer;
    view.print(safe`  ${makeSafe(addressOf(session.id))}`);
    view.print(
      safe`  Open it in a browser on this computer. It changes nothing in this session, but can answer`,
    );
    view.print(
      safe`  questions of detached ones: keep the address to yourself. It ends with this program.`,
    );
  } catch (error) {
    inspectorServer = null;
    throw error;
  }
};

const commands: Readonly<Record<CommandName, SlashCommand>> = {
  help,
  model,
  effort,
  compact,
  cost,
  budget,
  rewind,
  redo,
  resume,
  fork,
  clear,
  permissions,
  preset,
  jobs,
  mcp,
  diff,
  copy,
  export: exportConversation,
  inspect,
  retry,
  paste: ({ paste }) => paste(),
  detach: ({ detach }) => detach(),
  quit: ({ quit }) => quit(),
};

/** Runs `work` for the user: a failure is printed, not thrown. */
export const attemptFor = async (
  { view, look }: SlashCommandContext,
  work: () => void | Promise<void>,
): Promise<void> => {
  try {
    await work();
  } catch (error) {
    const message = error instanceof NotNow ? error.message : errorEnding(error).message;
    view.print(paint(look, 'yellow', indentWords(makeSafe(message), look.columns)));
  }
  view.redraw();
};

/** The answer `P` to a question: yes, and a rule for this folder that answers it from now on. */
export const answerForEver = (
  context: SlashCommandContext,
  question: ApprovalRequest,
  rule: RuleSubject,
): Promise<void> =>
  attemptFor(context, () =>
    allowInFolder(context, question, rule).catch((fault: unknown) => {
      context.view.askAgain(question);
      throw fault;
    }),
  );

/** Runs the command that was typed. A failure is printed. */
export const runCommand = (
  context: SlashCommandContext,
  name: CommandName,
  words: string,
): Promise<void> => attemptFor(context, () => commands[name](context, words));

// What `/model`, `/effort` and `/preset` need

const priceText = (prices: Prices | null): string =>
  prices === null ? 'price unknown' : `$${prices.input} in, $${prices.output} out`;

const aboutFacts = ({
  windowTokens,
  prices,
}: Pick<ModelFacts, 'windowTokens' | 'prices'>): string =>
  `${priceText(prices)} · ${formatTokens(windowTokens)} window`;

/**
 * Lets the user pick one of the models; null if none was picked. The current model is shown with
 * the session's window, which may differ from the catalogue's.
 */
const pickModel = async (
  { view }: SlashCommandContext,
  ids: readonly string[],
): Promise<string | null> => {
  const { model, windowTokens } = view.state.session.settings;
  const choices = ids.map((id) => {
    const facts = catalogueFacts(id);
    const about =
      id === model ? `current · ${aboutFacts({ ...facts, windowTokens })}` : aboutFacts(facts);
    return { text: id, about };
  });
  const title = 'Model (dollars per million tokens):';
  return ids[(await view.pick(title, choices, ids.indexOf(model))) ?? -1] ?? null;
};

/**
 * The model id that the words name: `provider/name` as it is, otherwise a choice of models whose
 * ids contain the words.
 */
const findModel = async (context: SlashCommandContext, words: string): Promise<string | null> => {
  const before = context.view.state.session.settings.model;
  if (words.includes('/')) return words;
  const like = words === '' ? [...new Set([before, ...knownModels()])] : modelsLike(words);
  if (like.length === 0)
    throw new NotNow(
      `'${words}' is not a model. Write provider/name, for example ${before}. /model lists ` +
        'the models.',
    );
  return pickModel(context, like);
};

/** How much the model is to think. */
const aboutEfforts: Readonly<Record<Effort, string>> = {
  auto: 'as the model sees fit',
  low: 'quick and cheap',
  medium: 'between the two',
  high: 'long, and expensive',
  xhigh: 'longer still: for hard problems and long runs',
  max: 'without a limit: slowest, and most expensive',
};

const EFFORT: NamedSetting<Effort> = {
  kind: 'effort',
  title: 'Effort:',
  names: efforts,
  about: aboutEfforts,
};

const PRESET: NamedSetting<Preset> = {
  kind: 'preset',
  title: 'Preset:',
  names: presetNames,
  about: aboutPresets,
};

/** A kind of settings that have a name, such as `effort`: its names and what each means. */
type NamedSetting<Name extends string> = {
  readonly kind: string;
  readonly title: string;
  readonly names: readonly Name[];
  readonly about: Readonly<Record<Name, string>>;
};

/** The name that the words say, or else the one that the user picks; null if none is picked. */
const chooseName = async <Name extends string>(
  { view }: SlashCommandContext,
  words: string,
  { kind, title, names, about }: NamedSetting<Name>,
  current: Name | undefined,
): Promise<Name | null> => {
  if (words !== '') {
    const chosen = names.find((name) => name === words.toLowerCase());
    if (chosen === undefined) {
      const hint =
        kind === 'preset' && words.toLowerCase() === 'full' ? ' full is chosen at the start.' : '';
      throw new NotNow(`There is no ${kind} '${words}'. There are ${names.join(', ')}.${hint}`);
    }
    return chosen;
  }
  const choices = names.map((name) => ({
    text: name,
    about: name === current ? `${about[name]} (now)` : about[name],
  }));
  const at = current === undefined ? -1 : names.indexOf(current);
  return names[(await view.pick(title, choices, at)) ?? -1] ?? null;
};

// What `/budget` needs

type Unit = 'usd' | 'tokens' | 'rounds' | 'time';

const UNITS: Readonly<Record<string, Unit>> = {
  $: 'usd',
  usd: 'usd',
  dollar: 'usd',
  dollars: 'usd',
  token: 'tokens',
  tokens: 'tokens',
  round: 'rounds',
  rounds: 'rounds',
  minute: 'time',
  minutes: 'time',
  min: 'time',
};
const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 };

/** A limit as the user typed it; `unit` is null if only an amount was given. */
type Budget = { readonly amount: number; readonly unit: Unit | null };

/**
 * Parses `5`, `$5`, `200k`, `200k tokens`, `30 rounds`, `10 minutes`; null for anything else, such
 * as `5m`, which may be minutes or millions.
 */
export const readBudget = (words: string): Budget | null => {
  const match = /^(\$?)\s*(\d+(?:\.\d+)?)\s*(?:(k|m)(?![a-z]))?\s*(\$|[a-z]+)?$/i.exec(
    words.trim(),
  );
  if (match === null) return null;
  const [, sign = '', digits = '', factor = '', word = ''] = match;
  const amount = Number(digits) * (FACTORS[factor.toLowerCase()] ?? 1);
  const named = UNITS[word.toLowerCase()] ?? null;
  if (word !== '' && (named === null || (sign !== '' && named !== 'usd'))) return null;
  if (sign !== '') return { amount, unit: 'usd' };
  if (factor === '' || named !== null) return { amount, unit: named };
  return factor.toLowerCase() === 'k' ? { amount, unit: 'tokens' } : null;
};

/** The limit that stopped the turn; null if none did. */
const stoppedBy = (state: State): Dimension | null =>
  state.name === 'WaitingForUserInput' && state.reason.kind === 'budget'
    ? state.reason.dimension
    : null;

const LIMIT_NAMES: Readonly<Record<Unit, keyof Limits>> = {
  usd: 'usd',
  tokens: 'tokens',
  rounds: 'rounds',
  time: 'timeMs',
};

/**
 * The event that sets a limit. Without a unit it is the limit that stopped the turn, or else
 * dollars. Zero means no limit.
 */
export const budgetEvent = (state: State, { amount, unit }: Budget): Input => {
  const stopped = stoppedBy(state);
  const dimension: Dimension = unit ?? stopped ?? 'usd';
  const limit = readLimit(dimension === 'time' ? Math.ceil(amount * 60_000) : amount);
  // For the turn that it stopped, more is approved.
  if (dimension === stopped && amount > 0) return { type: 'ApproveBudget', dimension, limit };
  // The dimension of a stop has the name of its limit, but for time.
  const name = unit === null ? (dimension === 'time' ? 'timeMs' : dimension) : LIMIT_NAMES[unit];
  return {
    type: 'SettingsChanged',
    patch: { limits: { ...state.session.settings.limits, [name]: limit } },
  };
};

const limitText = (limit: Limit, show: (limit: number) => string): string =>
  limit === 'unlimited' ? 'no limit' : `of ${show(limit)}`;

const budgetText = (state: State, facts: ModelFacts): string => {
  const { limits } = state.session.settings;
  const { turn } = state.session;
  const usage = toldUsage(state);
  const tokens =
    usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  const count = (limit: number): string => String(limit);
  return [
    `  dollars  ${formatSpent(knownCostUsd(usage), usage)}, ${limitText(limits.usd, formatCost)}` +
      moneyText(state.session, facts),
    `  tokens   ${formatTokens(tokens)}, ${limitText(limits.tokens, formatTokens)}`,
    `  rounds   ${turn.rounds} in this turn, ${limitText(limits.rounds, count)}`,
    `  minutes  ${limitText(limits.timeMs, (limit) => count(limit / 60_000))} for a turn`,
    ...cacheText(state, facts),
    '  /budget 5 limits dollars; /budget 200k tokens, 30 rounds, 10 minutes the others; 0 ' +
      'removes a limit',
  ].join('\n');
};

/** How long the provider's cache keeps the conversation, and what a longer pause costs. */
const cacheText = (state: State, { cacheLifetimeMs, prices }: ModelFacts): readonly string[] => {
  if (cacheLifetimeMs === undefined) return [];
  const cold = coldUsd(state, prices);
  const price = cold === null ? '' : `; to read it anew costs about ${formatCost(cold)}`;
  return [`  cache    kept ${cacheLifetimeMs / 60_000} minutes from a request on${price}`];
};

/** What of a limit in dollars is set aside for running calls and free; what the cache saved. */
const moneyText = (session: SessionData, { prices }: ModelFacts): string => {
  const { usage } = session;
  const { usd } = remainingIn(session);
  const free =
    usd.type === 'unlimited'
      ? ''
      : `; ${formatCost(reservedUsd(session))} reserved, ${formatCost(usd.amount)} free`;
  if (prices === null) return free;
  const saved =
    (usage.cacheReadTokens * (prices.input - prices.cacheRead) -
      usage.cacheWriteTokens * (prices.cacheWrite - prices.input)) /
    1e6;
  return saved > 0 ? `${free}; the cache saved about ${formatCost(saved)}` : free;
};

// What `/jobs` and `/mcp` need

const COMMAND_COLUMNS = 50;

const jobRow = ({ jobId, command, status }: Job): string => {
  return `  ${jobId}  ${status()}  ${oneLine(command, COMMAND_COLUMNS)}`;
};

const LINE_CHARACTERS_MAX = 300;

const connectionText = (connection: ConnectionStatus): string => {
  switch (connection.kind) {
    case 'off':
      return 'not connected yet';
    case 'connecting':
    case 'connected':
      return connection.kind;
    case 'failed':
      return `failed: ${oneLine(connection.why, LINE_CHARACTERS_MAX)}`;
  }
};

const serverRow = ({ name, connection, tools, declined }: ServerStatus): string => {
  const questions = declined === 0 ? '' : `  ${plural(declined, 'question')} declined`;
  return `  ${name}  ${plural(tools.length, 'tool')}  ${connectionText(connection)}${questions}`;
};

const MCP_HINT =
  '  /mcp NAME lists the tools of one; /mcp connect tries again what failed. Tools that a server ' +
  'has changed, and\n  changes of your config.toml, come with a new session: /clear';
