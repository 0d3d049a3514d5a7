/**
 * What a typed line means: a slash command, a shell command, or a message with the skills and
 * pictures that it names.
 *
 * From top to bottom: the meaning of a line (`readTypedInput`); skills and commands of a session;
 * pictures that a text mentions; and what MCP servers offer, prompts and resources. A prompt here
 * is a text that the user can name by `/NAME`: a skill, a command of the user's own, or one of an
 * MCP server.
 */

import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { SessionOffers } from '@pawl/agent/extensions/mcp/offers';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import {
  type PromptFault,
  type PromptFiles,
  type PromptSources,
  promptPlaces,
} from '@pawl/agent/extensions/skills/prompt-file';
import type { InputMode } from '@pawl/agent/machine/event';
import type { Image } from '@pawl/agent/machine/message';
import { attempt } from '@pawl/agent/platform/attempt';
import { configFolder, homeFolder } from '@pawl/agent/platform/environment';
import { nearestWord } from '@pawl/agent/platform/text';
import type { Model } from '@pawl/agent/ports/model';
import type { Tool } from '@pawl/agent/ports/tool';
import type { Session } from '@pawl/agent/session/create-agent';
import { imagesFault } from '@pawl/agent/session/request-pictures';
import { loadFile } from '@pawl/agent/tools/files';
import type { Choice } from '@pawl/terminal/choices';
import { type Configured, userExtensions } from '../settings/configuration.js';
import type { ExtensionCommand } from '../settings/user-extensions.js';

/** Meaning of a submitted line: a message, a slash command, or a shell command. */
export type TypedInput =
  | { readonly kind: 'say'; readonly text: string; readonly mode: InputMode }
  | { readonly kind: 'command'; readonly name: CommandName; readonly words: string }
  /** `!command`: runs at once; the model gets the output with the next message. */
  | { readonly kind: 'shell'; readonly command: string }
  | { readonly kind: 'nothing' }
  /** Looks like a command but is none: nothing is sent. */
  | { readonly kind: 'refused'; readonly why: string };

/** Name, arguments, description. Help, completion and documentation are made from this table. */
export const slashCommands = [
  ['help', '', 'show this list'],
  ['model', '[NAME]', 'choose the model for the next calls'],
  ['effort', '[LEVEL]', 'how much the model should think: auto, low, medium, high, xhigh or max'],
  [
    'compact',
    '[WHAT, undo, redo WHAT]',
    'summarise the conversation to free context; WHAT says what the summary must keep; undo ' +
      'takes the summary back, redo makes another one',
  ],
  ['cost', '', 'tokens and cost of this session'],
  [
    'budget',
    '[LIMIT]',
    'show the limits and the amounts used; 5 or $5, 200k tokens, 30 rounds, 10 minutes set a limit',
  ],
  [
    'rewind',
    '[SEQ] [files, conversation]',
    'take back turns or calls, their files and conversation: choose from a list (Escape twice ' +
      'does the same), or by number',
  ],
  ['redo', '', 'bring back what the last rewind took back; again for the one before'],
  ['resume', '[ID]', 'continue another session of this folder'],
  ['fork', '[SEQ]', 'continue in a copy of this session, from now or from a line of its journal'],
  ['clear', '', 'start a new session; this one is kept'],
  [
    'preset',
    '[NAME]',
    'what the agent may do without asking in this session: plan, careful, auto or ci',
  ],
  ['permissions', '[revoke N]', 'show the rules and your permissions; revoke takes one back'],
  [
    'jobs',
    '[read N, kill N]',
    'background commands of the agent: list them, read the output of one, or kill one',
  ],
  ['mcp', '[NAME, connect]', 'the MCP servers and their state; the tools of one; connect again'],
  [
    'diff',
    '[session]',
    "all changes since HEAD, the agent's and others'; session: only the edits of this session",
  ],
  ['copy', '[N]', 'copy the last answer to the clipboard; with N its code block of that number'],
  ['export', 'FILE', 'write the conversation as Markdown'],
  ['inspect', '', 'look into this session in a browser while it works'],
  ['retry', '', 'send the last message again; during the wait before a retry: retry now'],
  ['later', 'TEXT', 'send TEXT after this turn (Alt+Enter does the same)'],
  ['paste', '', "insert the clipboard's picture into the input line (Ctrl-V does the same)"],
  ['detach', '', 'leave; the session goes on by itself, and pawl attach comes back to it'],
  ['quit', '', 'leave; the session can be resumed'],
] as const;

export type CommandName = Exclude<(typeof slashCommands)[number][0], 'later'>;

/** Names that no skill or command of the user can have. */
export const builtInNames: readonly string[] = [...slashCommands.map(([name]) => name), 'exit'];

export const slashHelp: readonly (readonly [string, string])[] = slashCommands.map(
  ([name, words, about]) => [`/${name} ${words}`.trim(), about],
);

/** Command names with descriptions, for completion. */
export const commandChoices: readonly Choice[] = slashCommands.map(([name, words, about]) => ({
  text: name,
  about: words === '' ? about : `${words}  ${about}`,
  // Enter on it in the list runs it at once
  ...(words === '' || words.startsWith('[') ? { runs: true } : {}),
}));

export const keyHelp: readonly (readonly [string, string])[] = [
  ['Enter', 'send; during a turn: with the next tool results'],
  ['Alt+Enter', 'send after this turn'],
  ['Enter on an empty line', 'during the wait before a retry: retry now'],
  ['Ctrl-J, Shift+Enter, \\ Enter', 'new line'],
  ['Shift+Tab', 'the next preset: careful, auto, plan'],
  ['Alt+P, Alt+R', 'the list of models; of earlier sessions here'],
  ['? alone in the line', 'a card of the most useful keys'],
  ['@', 'mention a file of this folder; Tab completes its name'],
  ['Ctrl-V', "insert the clipboard's picture; you can also drag a file here"],
  ['!COMMAND', 'run a shell command; the model gets its output with your next message'],
  ['Escape, Ctrl-C', 'stop the turn; queued messages return to the input line'],
  [
    'Escape twice',
    'on an empty line, when nothing runs: take back turns or calls, and their files',
  ],
  ['Up, Down, Ctrl-R', 'earlier messages; search them'],
  ['Ctrl-_, Ctrl-Y', 'undo; paste the last cut text'],
  ['Ctrl-C twice, Ctrl-D', 'leave'],
  ['Ctrl-Z', 'back to the shell; fg returns'],
];

const refused = (why: string): TypedInput => ({ kind: 'refused', why });

/** What other programs call a thing, and what is typed here for it. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  plan: '/preset plan looks and changes nothing (Shift+Tab goes through the presets).',
  undo: '/rewind takes back turns, calls and their files; /redo brings them back.',
  context: '/cost shows the tokens; the row below the line shows the share of the context.',
  status: '/cost shows tokens and money, /budget the limits, /mcp the servers, /jobs what runs.',
  new: '/clear starts a new session; this one is kept.',
  theme: 'Colours follow the terminal; NO_COLOR=1 turns them off.',
  init: 'Ask for it in words: write AGENTS.md, with what one must know of this project.',
};

const refuseUnknown = (name: string, prompts: readonly string[]): TypedInput => {
  const lower = name.toLowerCase();
  const other = Object.hasOwn(OTHER_NAMES, lower) ? OTHER_NAMES[lower] : undefined;
  if (other !== undefined) return refused(`There is no /${name}. ${other}`);
  const close = nearestWord(name, [...slashCommands.map(([known]) => known), ...prompts]);
  if (close !== undefined)
    return refused(`There is no /${name}. Did you mean /${close}? /help lists them all.`);
  return refused(`There is no /${name}. /help lists all commands.`);
};

const readCommand = (written: string, words: string, prompts: readonly string[]): TypedInput => {
  const lower = written.toLowerCase();
  const commandName = lower === 'exit' ? 'quit' : lower;
  const known = slashCommands.find(([name]) => name === commandName);
  if (known === undefined) return refuseUnknown(written, prompts);
  const [name, usage] = known;
  if (name === 'later') {
    return words === ''
      ? refused('There is no text: /later TEXT.')
      : { kind: 'say', text: words, mode: 'followUp' }; // sent after the turn
  }
  if (usage === '' && words !== '') return refused(`/${name} takes no arguments.`);
  if (words === '' && usage !== '' && !usage.startsWith('['))
    return refused(`/${name} needs an argument: /${name} ${usage}.`);
  return { kind: 'command', name, words };
};

/**
 * Words that run a command when they stand alone in a line: as a message they would only cost a
 * reply.
 */
const LONE_WORDS: Readonly<Record<string, CommandName>> = {
  '?': 'help',
  help: 'help',
  exit: 'quit',
  quit: 'quit',
};

/**
 * Parses a submitted line. `/word` is a command for the terminal; a path like /etc/hosts is text.
 * `prompts`: names of skills and commands of the user, whose lines are messages that are expanded
 * when they are sent.
 */
export const readTypedInput = (
  typed: string,
  mode: InputMode,
  prompts: readonly string[] = [],
): TypedInput => {
  const text = typed.trim();
  if (text === '') return { kind: 'nothing' };
  const loneCommand = Object.hasOwn(LONE_WORDS, text) ? LONE_WORDS[text] : undefined;
  if (loneCommand !== undefined) return { kind: 'command', name: loneCommand, words: '' };
  // Not a shell command: a text of several lines, or one that begins with a Markdown image (`![`).
  const shell = /^!(?!\[)\s*(.*)$/.exec(text);
  if (shell !== null) {
    const command = shell[1] ?? '';
    return command === '' ? refused('There is no command: !COMMAND.') : { kind: 'shell', command };
  }
  const command = /^\/([\w:-]*)(?:\s+(.*))?$/s.exec(text);
  if (command === null) return { kind: 'say', text, mode };
  const name = command[1] ?? '';
  if (prompts.includes(name) && !builtInNames.includes(name)) return { kind: 'say', text, mode };
  return readCommand(name, (command[2] ?? '').trim(), prompts);
};

// The skills and commands of a session: what the model is told of them, and what the user can name.

/**
 * `fault`: why a skill could not be read. The message then says so, and nothing that was typed is
 * lost.
 */
export type ExpandedText = { readonly text: string; readonly fault: string | null };

export type SessionPrompts = {
  /** The tool `skill`, if there are skills. */
  readonly tools: readonly Tool[];
  /** For the instructions; empty without skills. */
  readonly section: string;
  /** Names that the user can type after `/`. */
  readonly choices: readonly Choice[];
  /** What the user can mention after `@` besides files. */
  mentions(): readonly Choice[];
  /** Whether `expand` may change this text. */
  expands(typed: string): boolean;
  /**
   * The message for a typed text: for `/NAME WORDS` the line, and below it the text of the skill or
   * command.
   */
  expand(typed: string): Promise<ExpandedText>;
};

/** Faults that are printed when a session starts. */
const FAULTS_PRINTED_MAX = 3;

export const NO_PROMPTS: SessionPrompts = {
  tools: [],
  section: '',
  choices: [],
  mentions: () => [],
  expands: () => false,
  expand: async (text) => ({ text, fault: null }),
};

export const promptSources = (workspace: string, { claudeFiles }: Configured): PromptSources => ({
  workspace,
  home: homeFolder(process.env),
  configFolder: configFolder(process.env),
  claude: claudeFiles === 'off' ? 'no' : 'yes',
});

const warnOfFaults = (
  faults: readonly PromptFault[],
  faultText: (fault: PromptFault) => string,
  warn: (text: string) => void,
): void => {
  // Faults of a project must not hide that it replaces what the user would expect.
  const sorted = (['replaced', 'skipped'] as const).flatMap((kind) =>
    faults.filter(({ weight }) => weight === kind),
  );
  for (const fault of sorted.slice(0, FAULTS_PRINTED_MAX)) warn(faultText(fault));
  const more = sorted.length - FAULTS_PRINTED_MAX;
  if (more > 0) warn(`${more} more faults in skills and commands: pawl skills lists them.`);
};

/** `/NAME` at the start of a line, and the words behind it. */
const PROMPT_LINE = /^\/([\w:-]+)(?:\s+([\s\S]*))?$/;

const expandWith =
  ({ files }: PromptFiles): SessionPrompts['expand'] =>
  async (typed) => {
    const [, name = '', words = ''] = PROMPT_LINE.exec(typed.trim()) ?? [];
    const promptFile = builtInNames.includes(name)
      ? undefined
      : files.find((file) => file.name === name);
    if (promptFile === undefined) return { text: typed, fault: null };
    const { readPromptBlock } = await import('@pawl/agent/extensions/skills/read-skill');
    const block = await readPromptBlock(promptFile, words.trim());
    if (block.kind === 'text') return { text: `${typed.trim()}\n\n${block.text}`, fault: null };
    const fault = `The ${promptFile.kind} ${name} can't be read: ${promptFile.file}: ${block.why}`;
    return { text: `${typed.trim()}\n\n(${fault})`, fault };
  };

export type SessionPromptsOptions = {
  readonly workspace: string;
  readonly flags: Configured;
  readonly isResumed: boolean;
  readonly warn: (text: string) => void;
};

/** Reads the skills and commands of the folder and of the user. */
export const openSessionPrompts = async (
  options: SessionPromptsOptions,
): Promise<SessionPrompts> => {
  const { workspace, flags, isResumed, warn } = options;
  const sources = promptSources(workspace, flags);
  // Most folders have none: nothing is loaded then. The tools of a resumed session were settled
  // when it began.
  if (promptPlaces(sources).length === 0 && !isResumed) return NO_PROMPTS;
  const [{ loadPromptFiles, offerSkills }, { faultText }, { createSkillTool }] = await Promise.all([
    import('@pawl/agent/extensions/skills/load-skills'),
    import('@pawl/agent/extensions/skills/prompt-file'),
    import('@pawl/agent/extensions/skill-tool'),
  ]);
  const loaded = await loadPromptFiles(sources, builtInNames);
  warnOfFaults(loaded.faults, faultText, warn);
  const { skills, section, warning } = offerSkills(loaded.files);
  if (warning !== '' && !isResumed) warn(warning);
  const choices = loaded.files
    .filter(({ name }) => !builtInNames.includes(name))
    .map(({ name, hint, description }) => ({
      text: name,
      about: hint === '' ? description : `${hint}  ${description}`,
    }));
  return {
    tools: skills.length > 0 || isResumed ? [createSkillTool(skills)] : [],
    section: section ?? '',
    choices,
    mentions: () => [],
    expands: (typed) => typed.trim().startsWith('/') && choices.length > 0,
    expand: expandWith(loaded),
  };
};

// Pictures that a text mentions as `@shot.png` or `@"my shot.png"`. They are sent with the text,
// also when the text is sent again. A missing picture does not stop the text.

const PICTURE_MENTION =
  /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|([^\s"]\S*\.(?:png|jpe?g|gif|webp))(?=$|[\s,;:.!?)]))/gi;

/** The mentioned paths as written, without duplicates. */
export const picturesNamed = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(PICTURE_MENTION)].map(([, quoted, bare]) => quoted ?? bare ?? '')),
];

/** The mention for a picture; null for other files, and for paths that no mention can express. */
export const pictureMention = (file: string): string | null =>
  [`@${file}`, `@"${file}"`].find((text) => picturesNamed(text)[0] === file) ?? null;

type Pictures = {
  readonly images: readonly Image[];
  /** One line for each picture that the model will not see, with the reason. */
  readonly faults: readonly string[];
};

const readPicture = async (file: string): Promise<Uint8Array> => {
  const real = await realpath(file).catch(() => file); // a missing file is reported below
  const loaded = await loadFile(real);
  switch (loaded.kind) {
    case 'file':
      return loaded.bytes;
    case 'absent':
      throw new Error('there is no such file');
    case 'folder':
      throw new Error('it is a folder');
    case 'unreadable':
      throw new Error(`it can't be read: ${loaded.why}`);
    default:
      return loaded satisfies never;
  }
};

/** Stores the pictures that a text mentions. Never rejects. */
export const storePictures = async (
  names: readonly string[],
  workspace: string,
  keep: (bytes: Uint8Array) => Promise<Image>,
): Promise<Pictures> => {
  const keepNamed = async (name: string): Promise<Pictures> => {
    const file = name.startsWith('~/') ? path.join(homeFolder(process.env), name.slice(2)) : name;
    const stored = await attempt(async () =>
      keep(await readPicture(path.resolve(workspace, file))),
    );
    return stored.kind === 'done'
      ? { images: [stored.value], faults: [] }
      : { images: [], faults: [`${name} is not sent: ${stored.fault.message}`] };
  };
  const tried = await Promise.all(names.map(keepNamed));
  return {
    images: tried.flatMap(({ images }) => images),
    faults: tried.flatMap(({ faults }) => faults),
  };
};

/**
 * The pictures for a text of this session. Never rejects. A picture that the current model can't
 * see is still sent, since a later model may be able to.
 */
export const attachPictures = async (
  names: readonly string[],
  workspace: string,
  session: Pick<Session, 'keepPicture'> & { model(): Promise<Pick<Model, 'id' | 'facts'>> },
): Promise<Pictures> => {
  const pictures = await storePictures(names, workspace, session.keepPicture);
  if (pictures.images.length === 0) return pictures;
  const model = await attempt(session.model);
  const withFault = (fault: string): Pictures => ({
    ...pictures,
    faults: [...pictures.faults, fault],
  });
  if (model.kind === 'fault')
    return withFault(`It is unknown whether the model gets the pictures: ${model.fault.message}`);
  const why = imagesFault(model.value);
  if (why === null) return pictures;
  const advice =
    model.value.facts.images === undefined
      ? ' If it accepts pictures, start with --pictures yes.'
      : '';
  return withFault(`The model does not get the pictures: ${why}.${advice}`);
};

// What MCP servers offer: prompts, named as `/mcp__server__prompt words`, and resources, mentioned
// as `@server:uri`. Both are asked for when the message is sent; the names come from the cache.

/** `@server:uri`, or `@"server:uri with spaces"`. */
const RESOURCE_MENTION =
  /(?<=^|\s)@(?:"([A-Za-z0-9][\w-]{0,31}):([^"\n]+)"|([A-Za-z0-9][\w-]{0,31}):([^\s"]+))/g;
const PROMPT_NAME = /^\/(mcp__[\w-]+)(?:\s+([\s\S]*))?$/;
const RESOURCES_MAX = 10;
/** Characters that end a sentence rather than an address. */
const SENTENCE_END = /[.,;:!?)\]}'>]+$/;

type Mention = { readonly server: string; readonly uri: string };

/** The resources that a text mentions, of servers that the session has. */
const mentionsIn = (text: string, offers: SessionOffers): readonly Mention[] => {
  const listed = new Set(offers.resources().map(({ server, uri }) => `${server}:${uri}`));
  const mentions = new Map<string, Mention>();
  for (const [, quoted, quotedUri, bare, bareUri] of text.matchAll(RESOURCE_MENTION)) {
    const server = quoted ?? bare ?? '';
    const whole = quotedUri ?? bareUri ?? '';
    const isWhole = quoted !== undefined || listed.has(`${server}:${whole}`);
    const uri = isWhole ? whole : whole.replace(SENTENCE_END, '');
    if (uri !== '' && offers.hasServer(server)) mentions.set(`${server}:${uri}`, { server, uri });
  }
  return [...mentions.values()];
};

const joinFaults = (faults: readonly (string | null)[]): string | null =>
  faults.filter((fault) => fault !== null).join('\n') || null;

/**
 * The texts of the resources that are mentioned. A fault stands in the place of a resource that
 * can't be read.
 */
const attachResources = async (typed: string, offers: SessionOffers): Promise<ExpandedText> => {
  const mentions = mentionsIn(typed, offers);
  const read = await Promise.all(
    mentions.slice(0, RESOURCES_MAX).map(async ({ server, uri }): Promise<ExpandedText> => {
      const got = await attempt(() => offers.resource(server, uri));
      if (got.kind === 'done') return { text: got.value, fault: null };
      const fault = `@${server}:${uri} can't be read: ${got.fault.message}`;
      return { text: `(${fault})`, fault };
    }),
  );
  const others = mentions.length - read.length;
  const more =
    others > 0
      ? `${others} more resources are not attached: a message takes ${RESOURCES_MAX}`
      : null;
  return {
    text: [...read.map(({ text }) => text), ...(more === null ? [] : [`(${more})`])].join('\n\n'),
    fault: joinFaults([...read.map(({ fault }) => fault), more]),
  };
};

/** The text of a prompt, if the message names one; null otherwise. */
const fillPrompt = async (typed: string, offers: SessionOffers): Promise<ExpandedText | null> => {
  const [, name, words = ''] = PROMPT_NAME.exec(typed.trim()) ?? [];
  const declared = offers.prompts().find((prompt) => prompt.declaredName === name);
  if (declared === undefined) return null;
  const got = await attempt(() => offers.prompt(declared, words));
  if (got.kind === 'done') return { text: `${typed.trim()}\n\n${got.value}`, fault: null };
  const fault =
    `The prompt ${declared.name} of the MCP server ${declared.server} can't be used: ` +
    `${got.fault.message}`;
  return { text: `${typed.trim()}\n\n(${fault})`, fault };
};

const promptChoices = (offers: SessionOffers): readonly Choice[] =>
  offers.prompts().map(({ declaredName, description, arguments: all }) => ({
    text: declaredName,
    about: [
      ...all.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)),
      description,
    ].join(' '),
  }));

/** The skills and commands of a session together with what its MCP servers offer. */
export const withServerPrompts = (
  prompts: SessionPrompts,
  offers: SessionOffers | null,
): SessionPrompts => {
  if (offers === null) return prompts;
  const choices = [...prompts.choices, ...promptChoices(offers)];
  return {
    ...prompts,
    choices,
    mentions: () =>
      offers.resources().map(({ server, uri, about }) => ({ text: `${server}:${uri}`, about })),
    expands: (typed) =>
      (typed.trim().startsWith('/') && choices.length > 0) || mentionsIn(typed, offers).length > 0,
    async expand(typed) {
      const [named, attached] = await Promise.all([
        fillPrompt(typed, offers).then((filled) => filled ?? prompts.expand(typed)),
        attachResources(typed, offers),
      ]);
      const text = attached.text === '' ? named.text : `${named.text}\n\n${attached.text}`;
      return { text, fault: joinFaults([named.fault, attached.fault]) };
    },
  };
};

/** The commands of extensions beside what else the user can name. */
const withExtensionCommands = (
  prompts: SessionPrompts,
  all: readonly ExtensionCommand[],
  warn: (text: string) => void,
): SessionPrompts => {
  const commands = all.filter(({ name }) => !builtInNames.includes(name));
  const isReplaced = ({ text }: Choice): boolean => commands.some(({ name }) => name === text);
  for (const { name } of all)
    if (builtInNames.includes(name))
      warn(`The command ${name} of an extension is not used: Pawl has one of that name.`);
  for (const { text } of prompts.choices.filter(isReplaced))
    warn(`The command ${text} of an extension replaces the skill or command of that name.`);
  const choices = commands.map(({ name, description }) => ({ text: name, about: description }));
  return {
    ...prompts,
    choices: [...prompts.choices.filter((one) => !isReplaced(one)), ...choices],
    expands: (typed) => typed.trim().startsWith('/') || prompts.expands(typed),
    async expand(typed) {
      const [, name, words = ''] = PROMPT_LINE.exec(typed.trim()) ?? [];
      const command = commands.find((one) => one.name === name);
      if (command === undefined) return prompts.expand(typed);
      const ran = await attempt(() => command.run(words.trim()));
      if (ran.kind === 'done') return { text: `${typed.trim()}\n\n${ran.value}`, fault: null };
      const fault = `The command ${name} failed: ${ran.fault.message}`;
      return { text: `${typed.trim()}\n\n(${fault})`, fault };
    },
  };
};

/**
 * All that the user can name in a session: skills, commands, and what extensions and MCP servers
 * offer.
 */
export const openAllPrompts = async (
  options: SessionPromptsOptions,
  servers: SessionServers | null,
): Promise<SessionPrompts> => {
  const { commands } = await userExtensions(process.env);
  const own = await openSessionPrompts(options);
  const prompts = commands.length === 0 ? own : withExtensionCommands(own, commands, options.warn);
  return withServerPrompts(prompts, servers?.offers ?? null);
};
