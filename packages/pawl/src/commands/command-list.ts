/**
 * The list of commands. Parser, help, completion, manual page and documentation are made from it.
 * The code of a command is loaded when it runs, to keep the start quick.
 *
 * From top to bottom: the types; `runAgent`, which is `pawl` without a command; one object for each
 * command; and the list.
 */

import { usualModel } from '@pawl/agent/models/provider-table';
import type { Command as Parser } from 'commander';
import type { Prompt } from '../headless/headless.js';
import {
  acpFlags,
  type ConfigFlags,
  configFlags,
  nodeFlags,
  type RunFlags,
  runFlags,
  usageStop,
} from '../settings/flags.js';
import { type AskFlags, askFlags } from './ask-flags.js';
import type { CheckpointsFlags } from './checkpoints.js';
import type { DoctorFlags } from './doctor.js';
import type { HooksFlags } from './hooks.js';
import type { McpFlags } from './mcp.js';
import type { ModelsFlags } from './models.js';
import type { PolicyFlags } from './policy.js';
import type { RewindFlags } from './rewind.js';
import { repeatedFlags, type ServeFlags, singleFlags } from './serve.js';
import type { SessionsFlags } from './sessions.js';
import type { SkillsFlags } from './skills.js';
import type { TrustFlags } from './trust.js';

/**
 * A flag in the form of help, its meaning, and whether it must be given or may be repeated. The
 * first line of a meaning is for lists; `pawl help FLAG` shows what follows it.
 */
export type Flag = readonly [form: string, help: string, count?: 'required' | 'repeated'];

export type PawlCommandContext<Flags> = {
  /** The arguments of the command, in order. */
  readonly words: readonly string[];
  /**
   * The flags of the command, and those of the program that stand before its name. For commands
   * with flags that `pawl` has too, such as `--workspace` and `--model`.
   */
  readonly flags: Flags;
  /** The flags of the command alone. For all other commands. */
  readonly ownFlags: Flags;
  /** The parser of the whole program. */
  readonly program: Parser;
};

export type PawlCommand<Flags extends object = object> = {
  readonly name: string;
  /**
   * Arguments in the form that help shows: `<id>`, `[prompt...]`. Without an `[id]` most commands
   * take the last session of this folder.
   */
  readonly words: string;
  /** The first line is for lists; the command's own help shows what follows it. */
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** Returns the exit code. */
  run(context: PawlCommandContext<Flags>): Promise<number>;
};

const workspaceFlag = (help: string): Flag => ['--workspace <folder>', help];
const PROJECT = workspaceFlag('the folder of the project (default: this one)');

/** The prompt from `-p TEXT` and the words after the flags, or else from stdin. */
const readPrompt = async ({ print }: RunFlags, words: readonly string[]): Promise<Prompt> => {
  const parts = typeof print === 'string' ? [print, ...words] : words;
  return (await import('../headless/headless.js')).readPrompt(parts);
};

/**
 * Whether to look for a key first: in a terminal, for a new session, if neither a flag nor the
 * environment names a model. config.toml may still name one.
 */
const mayLackKey = ({ model, continue: last, resume }: RunFlags): boolean =>
  process.stdin.isTTY === true &&
  process.stdout.isTTY === true &&
  [model, last, resume].every((flag) => flag === undefined) &&
  !process.env.PAWL_MODEL &&
  usualModel(process.env).variable === null;

/** Flags that are only for a turn without a terminal: the attribute, and how it is typed. */
const HEADLESS_FLAGS = [
  ['json', '--json'],
  ['jsonSchema', '--json-schema FILE'],
  ['failOn', '--fail-on KINDS'],
  ['detach', '--detach'],
  ['sameFolder', '--detach --same-folder'],
] as const;

/**
 * Runs the agent: one turn with `-p`, sessions in the terminal without it. Words are the prompt, in
 * the terminal the first one.
 */
export const runAgent = async (flags: RunFlags, words: readonly string[]): Promise<number> => {
  if (flags.print !== undefined) {
    const prompt = await readPrompt(flags, words);
    return flags.detach
      ? (await import('./detached.js')).runDetached(flags, prompt)
      : (await import('../headless/headless.js')).runHeadless(flags, prompt);
  }
  for (const [name, typed] of HEADLESS_FLAGS)
    if (flags[name] !== undefined) throw usageStop(`${typed} needs -p: pawl -p "prompt" ${typed}`);
  const first = words.length === 0 ? null : words.join(' ');
  if (first?.trim() === '') throw usageStop('The prompt is empty.');
  const chosen = mayLackKey(flags)
    ? await (await import('../interactive/ask-key.js')).askForKey(flags)
    : flags;
  if (chosen === 'demo') return (await import('./demo.js')).runDemo(false);
  return (await import('../interactive/run-sessions.js')).runTerminal(chosen, first);
};

const run: PawlCommand<RunFlags> = {
  name: 'run',
  words: '[prompt...]',
  summary: 'the same as pawl -p',
  flags: runFlags,
  // the flag -p TEXT, if given, replaces `true`
  run: ({ flags, words }) => runAgent({ print: true, ...flags }, words),
};

const demo: PawlCommand<{ readonly crash?: true; readonly print?: true }> = {
  name: 'demo',
  words: '',
  summary: 'watch the agent repair a small project; needs no key and no network',
  flags: [
    ['-p, --print', 'print a log, as where there is no terminal'],
    [
      '--crash',
      'kill Pawl in the middle of a command instead, and resume: the command went on, and ' +
        'its result is found',
    ],
  ],
  run: async ({ ownFlags: { crash, print } }) =>
    crash
      ? (await import('./crash-demo.js')).runCrashDemo()
      : (await import('./demo.js')).runDemo(print === true),
};

const ask: PawlCommand<AskFlags> = {
  name: 'ask',
  words: '[question...]',
  summary: "ask a question about inputs far larger than the model's context window",
  flags: askFlags,
  run: async ({ flags, words }) => (await import('./ask.js')).runAsk(flags, words),
};

const acp: PawlCommand<RunFlags> = {
  name: 'acp',
  words: '',
  summary:
    'be the agent of an editor\nThe editor speaks the Agent Client Protocol (docs/use/editors.md).',
  flags: acpFlags,
  run: async ({ flags }) => (await import('../editor/acp-command.js')).runAcp(flags),
};

const fork: PawlCommand<RunFlags & { readonly at: string; readonly worktree?: string }> = {
  name: 'fork',
  words: '<id> [prompt...]',
  summary: 'start a new session from a line of an old one',
  flags: [
    ...runFlags,
    ['--at <seq>', 'the last line of the journal that both sessions share', 'required'],
    [
      '--worktree <folder>',
      'also copy the files as they were then\n' +
        'Into a new git worktree, or a new folder where there is no git.',
    ],
  ],
  run: async ({ flags, words: [id = '', ...words] }) => {
    const hasPrompt = words.length > 0 || flags.print !== undefined;
    const prompt = hasPrompt ? await readPrompt(flags, words) : undefined;
    return (await import('./fork.js')).forkSession(id, flags, prompt);
  },
};

const serve: PawlCommand<ServeFlags> = {
  name: 'serve',
  words: '',
  summary: 'run sessions for other programs, over HTTP\nThey need a token (docs/build/serve.md).',
  flags: [
    ...singleFlags,
    ...repeatedFlags.map(([form, help]): Flag => [form, help, 'repeated']),
    ...nodeFlags,
  ],
  run: async ({ flags }) => (await import('./serve-node.js')).runServe(flags),
};

const sessions: PawlCommand<SessionsFlags> = {
  name: 'sessions',
  words: '[what] [id]',
  summary:
    'list the sessions, or delete one\n' +
    'pawl sessions lists them, newest first (list). pawl sessions delete ID deletes one with the ' +
    'tasks that it started.',
  flags: [
    ['--live', 'the detached sessions, and what each does'],
    ['--stats', 'sums over all sessions: by model, tool and day'],
    ['--json', 'as JSON lines; with --stats as one JSON object'],
    ['--yes', 'delete without a question'],
  ],
  run: async ({ ownFlags, words: [what, id] }) =>
    (await import('./sessions.js')).runSessions(what, id, ownFlags),
};

const attach: PawlCommand<RunFlags> = {
  name: 'attach',
  words: '[id]',
  summary:
    'take part in a detached session from this terminal\n' +
    'Without an id in the one that runs, or the last if none does. It brings back a session whose ' +
    'process died.',
  flags: [
    ['--plain', 'print whole lines and never redraw, for screen readers'],
    ['--verbose', 'print more details to stderr'],
  ],
  run: async ({ flags, words: [id] }) => (await import('./detached.js')).attach(id, flags),
};

const logs: PawlCommand<{ readonly follow?: true }> = {
  name: 'logs',
  words: '[id]',
  summary: 'print what a session has done, in lines',
  flags: [['-f, --follow', 'go on with what a detached session does, until it ends']],
  run: async ({ ownFlags: { follow }, words: [id = ''] }) =>
    (await import('./detached.js')).showLogs(id, follow === true),
};

const answer: PawlCommand<{ readonly json?: true }> = {
  name: 'answer',
  words: '<id> [words...]',
  summary:
    'answer the questions of a detached session\n' +
    'pawl answer ID shows them, each whole and with a code; in a terminal it asks. pawl answer ID ' +
    'CODE yes allows the one with that code, pawl answer ID CODE no "reason" refuses it. Other words ' +
    'answer a question of the model.',
  flags: [['--json', 'print the questions as JSON, a line each']],
  run: async ({ ownFlags: { json }, words: [id = '', ...words] }) =>
    (await import('./detached.js')).answerDetached(id, words, json === true),
};

const stop: PawlCommand<{ readonly kill?: true }> = {
  name: 'stop',
  words: '<id>',
  summary: 'end a detached session\nIts turn is cancelled first.',
  flags: [['--kill', 'kill its process if it does not answer\nThe session can be brought back.']],
  run: async ({ ownFlags: { kill }, words: [id = ''] }) =>
    (await import('./detached.js')).stopDetached(id, kill === true),
};

const resume: PawlCommand<{ readonly all?: true }> = {
  name: 'resume',
  words: '[id...]',
  summary: 'start detached sessions again whose process died\nFor example with the machine.',
  flags: [['--all', 'all of them']],
  run: async ({ ownFlags: { all }, words }) =>
    (await import('./detached.js')).resumeDetached(words, all === true),
};

const SEED_SYSTEMS =
  'A published agent whose states ours fit: one of minimal, minimal-head, loom, sketch, tools ' +
  '(docs/seeds).';

type AtFlags = { readonly at?: string; readonly json?: true };

const show: PawlCommand<
  AtFlags & { readonly request?: true; readonly view?: string; readonly time?: true }
> = {
  name: 'show',
  words: '[id]',
  summary:
    'print the conversation of a session, or what it cost\nOr the request that the model got.',
  flags: [
    ['--at <seq>', 'the state after this line of the journal'],
    ['--request', 'the exact request to the model, as JSON'],
    ['--time', 'where time and money went\nBy state, tool and request, and all of it in order.'],
    ['--json', 'with --time: the figures as JSON'],
    ['--view <name>', `the path through the states of a seed system\n${SEED_SYSTEMS}`],
  ],
  run: async ({ ownFlags, words: [id = ''] }) =>
    (await import('./show.js')).showSession(id, ownFlags),
};

const replay: PawlCommand<AtFlags> = {
  name: 'replay',
  words: '[id]',
  summary:
    'recompute a session from its journal\n' +
    'It performs nothing, checks the hashes, and prints the path through the states.',
  flags: [
    ['--at <seq>', 'stop after this line of the journal'],
    ['--json', 'the path as JSON lines'],
  ],
  run: async ({ ownFlags, words: [id = ''] }) =>
    (await import('./verify.js')).replaySession(id, ownFlags),
};

const diff: PawlCommand<{ readonly at: string; readonly json?: true }> = {
  name: 'diff',
  words: '<id>',
  summary:
    'show what a session changed in files\n' +
    'Between two lines of its journal. The exit code is 1 if a file differs.',
  flags: [
    ['--at <a..b>', 'the two lines of the journal\n12.. is to the end.', 'required'],
    ['--json', 'as one JSON object'],
  ],
  run: async ({ ownFlags: { at, json = false }, words: [id = ''] }) =>
    (await import('./diff-files.js')).diffFiles(id, at, json),
};

const rewind: PawlCommand<RewindFlags> = {
  name: 'rewind',
  words: '[id]',
  summary:
    'take back what a session did, in its conversation and its files\n' +
    'Without --at it lists where the session can go back to (docs/use/rewind.md).',
  flags: [
    ['--at <seq>', 'go back to this line of the journal'],
    ['--files', 'only the files; the conversation stays'],
    ['--conversation', 'only the conversation; files stay'],
    ['--force', 'also take back what somebody else changed since\nTheir version is saved first.'],
    ['--edits-only', 'leave what changed while commands ran: it may be yours'],
    ['--refs', 'also move HEAD and branches back, and what is staged'],
    ['--dry-run', 'only say what it would do'],
    ['--json', 'as JSON; without --at one line a point'],
  ],
  run: async ({ ownFlags, words: [id = ''] }) =>
    (await import('./rewind.js')).rewindSession(id, ownFlags),
};

const redo: PawlCommand<{ readonly json?: true }> = {
  name: 'redo',
  words: '[id]',
  summary: 'go forward again from the last rewind',
  flags: [['--json', 'as JSON']],
  run: async ({ ownFlags, words: [id = ''] }) =>
    (await import('./rewind.js')).redoSession(id, ownFlags),
};

const checkpoints: PawlCommand<CheckpointsFlags> = {
  name: 'checkpoints',
  words: '[id]',
  summary: 'list the copies of files that rewind uses\n' + 'Their size, and what was left out.',
  flags: [
    [
      '--restore <path>',
      'bring back the last version of this file\nThe last that differs from the present one.',
    ],
    ['--at <seq>', 'with --restore: the version of this line of the journal'],
    [
      '--prune',
      'remove what is over the limits, or belongs to deleted sessions\n' +
        'With an id all of that session.',
    ],
    ['--json', 'as JSON'],
  ],
  run: async ({ ownFlags, words: [id] }) =>
    (await import('./checkpoints.js')).runCheckpoints(id, ownFlags),
};

const bisect: PawlCommand = {
  name: 'bisect',
  words: '<id> [command...]',
  summary:
    'find the change of a session after which a command fails\nFor example: pawl bisect ID -- npm test',
  flags: [],
  run: async ({ words: [id = '', ...words] }) =>
    (await import('./bisect.js')).bisectSession(id, words),
};

const inspect: PawlCommand = {
  name: 'inspect',
  words: '[id]',
  summary:
    'show a session in a browser, while it runs or later\n' +
    'Without an id the list of all (docs/use/inspector.md).',
  flags: [],
  run: async ({ words: [id] }) => (await import('./inspect.js')).inspectSessions(id),
};

const verify: PawlCommand = {
  name: 'verify',
  words: '[id]',
  summary: 'check every line of a session, or of a file\nIt names the first fault.',
  flags: [],
  run: async ({ words: [id = ''] }) => (await import('./verify.js')).verifySession(id),
};

const exportSession: PawlCommand<{
  readonly html?: string;
  readonly atif?: string;
  readonly withFiles?: true;
}> = {
  name: 'export',
  words: '[id] [file]',
  summary: 'write a session with its blobs to one file (ID.pawl)',
  flags: [
    ['--html <file>', 'as a page for a browser, with secrets replaced\nIt needs no server.'],
    [
      '--atif <file>',
      'as a trajectory (ATIF 1.7), with secrets replaced\nFor Harbor. - is stdout.',
    ],
    [
      '--with-files',
      'take its checkpoints along\n' +
        'So its changes can be taken back after an import. Files with secrets are left out and named.',
    ],
  ],
  run: async ({ ownFlags: { html, atif, withFiles = false }, words: [id = '', file] }) => {
    if (withFiles && (html !== undefined || atif !== undefined))
      throw usageStop(
        '--with-files is for an export that can be imported: leave --html and --atif.',
      );
    const [one, other] = [atif, html, file].filter((name) => name !== undefined);
    if (other !== undefined) throw usageStop(`Name one file to write: ${one} or ${other}.`);
    if (atif !== undefined)
      return (await import('./export-trajectory.js')).exportTrajectory(id, atif);
    return html === undefined
      ? (await import('./transfer.js')).exportTo(id, file, withFiles)
      : (await import('./inspect.js')).exportPage(id, html);
  },
};

const importSession: PawlCommand = {
  name: 'import',
  words: '<file>',
  summary:
    'store a session from an exported file, or from a journal\n' +
    'It performs nothing and replaces nothing.',
  flags: [],
  run: async ({ words: [file = ''] }) => (await import('./transfer.js')).importFrom(file),
};

type MachineFlags = {
  readonly table?: true;
  readonly json?: true;
  readonly view?: string;
  readonly check?: true;
  readonly bounds?: string;
};

const machine: PawlCommand<MachineFlags> = {
  name: 'machine',
  words: '',
  summary: 'print the state machine as a diagram or table',
  flags: [
    ['--mermaid', 'as a Mermaid diagram (default)'],
    ['--table', 'as a Markdown table'],
    ['--json', 'as JSON edges'],
    ['--view <name>', `the states of a seed system\n${SEED_SYSTEMS}`],
    ['--check', 'explore every path within bounds and check every step'],
    ['--bounds <name=number,...>', 'limits for --check'],
  ],
  run: async ({ ownFlags }) =>
    ownFlags.check || ownFlags.bounds !== undefined
      ? (await import('./machine-check.js')).checkMachine(ownFlags)
      : (await import('./machine.js')).showMachine(ownFlags),
};

const config: PawlCommand<ConfigFlags> = {
  name: 'config',
  words: '',
  summary:
    'print every setting and its source\n' +
    'Settings of a provider are shown where something sets them; with --json all of them.',
  flags: configFlags,
  run: async ({ flags }) => (await import('./config.js')).showConfig(flags),
};

const models: PawlCommand<ModelsFlags> = {
  name: 'models',
  words: '[provider]',
  summary:
    'list the providers, or the models of one\n' +
    'Without a provider: which there are, and whether their keys are set. With one its server is ' +
    'asked which models the key can reach.',
  flags: [['--json', 'as JSON lines']],
  run: async ({ ownFlags, words: [provider] }) =>
    (await import('./models.js')).runModels(provider, ownFlags),
};

const doctor: PawlCommand<DoctorFlags> = {
  name: 'doctor',
  words: '',
  summary: 'check that everything is set up; name each problem and its repair',
  flags: [
    ['--online', "also send a request to the provider's server"],
    ['--model <provider/name>', 'the model to check'],
    workspaceFlag('the folder to check (default: this one)'),
    ['--json', 'as JSON'],
  ],
  run: async ({ flags }) => (await import('./doctor.js')).runDoctor(flags),
};

const policy: PawlCommand<PolicyFlags> = {
  name: 'policy',
  words: '[explain] [command]',
  summary:
    'say whether a command may run, and which rule decides\n' +
    'Why, and where it would run. It is not run.',
  flags: [
    [
      '--needs <what>',
      'assume that the command needs to leave the sandbox\nFor: network, outside or repository.',
    ],
    ['--preset <name>', 'plan, careful (default), auto, ci or full'],
    ['--sandbox <level>', 'workspace, workspace+net, read-only or off'],
    workspaceFlag('the folder to check (default: this one)'),
    ['--json', 'as JSON'],
  ],
  run: async ({ flags, words: [what, text] }) =>
    (await import('./policy.js')).explainPolicy(what, text, flags),
};

const hooks: PawlCommand<HooksFlags> = {
  name: 'hooks',
  words: '[what]',
  summary: 'list your hooks and those of this project (list)',
  flags: [PROJECT],
  run: async ({ flags, words: [what] }) => (await import('./hooks.js')).runHooks(what, flags),
};

const skills: PawlCommand<SkillsFlags> = {
  name: 'skills',
  words: '[what]',
  summary: 'list the skills and commands of this folder and of yours (list)',
  flags: [workspaceFlag('the folder to list (default: this one)')],
  run: async ({ flags, words: [what] }) => (await import('./skills.js')).runSkills(what, flags),
};

const mcp: PawlCommand<McpFlags> = {
  name: 'mcp',
  words: '[what] [name] [words...]',
  summary:
    'list, test, add or remove MCP servers; serve as one\n' +
    'list: those of your configuration. test [NAME]: connect one or all, and show their tools. add ' +
    'NAME -- COMMAND ARGS, or add NAME --url URL: add one to your config.toml. remove NAME: remove ' +
    'it. login NAME: log in at one over HTTP. logout NAME: forget the login. serve: be an MCP server ' +
    'for other agents.',
  flags: [
    ['--url <url>', 'the address of the server to add'],
    [
      '--header <line>',
      'a header for the server to add: "Name: value"\nIt may be repeated.',
      'repeated',
    ],
    [
      '--env <variable>',
      'a variable for the server to add: NAME=value\nIt may be repeated.',
      'repeated',
    ],
    ['--oauth-client-id <id>', 'how Pawl is registered at the login of the server to add'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: users write it so
    ['--oauth-client-secret <variable>', 'the secret of that client: "${NAME}"\nBy its variable.'],
    [
      '--oauth-redirect-port <port>',
      'the port of its redirect\nThat to 127.0.0.1 with which the client is registered.',
    ],
    workspaceFlag('the folder to start them in (default: this one)'),
    ['--model <provider/name>', 'the model of the sessions of serve'],
  ],
  run: async ({ flags, words: [what, name, ...words] }) =>
    (await import('./mcp.js')).runMcp(what, name, words, flags),
};

const trust: PawlCommand<TrustFlags> = {
  name: 'trust',
  words: '[words...]',
  summary: 'what this project may run on your machine\nlist, allow KIND NAME, revoke KIND NAME.',
  flags: [
    ['--all', 'list the answers for all projects'],
    PROJECT,
    [
      '--sandbox <level>',
      'where an MCP server may run\n' +
        'read-only (default), read-only+net, workspace, workspace+net, or off: as you.',
    ],
  ],
  run: async ({ flags, words }) => {
    const [{ runTrust }, { serverSource, hookSource }] = await Promise.all([
      import('./trust.js'),
      import('../sessions/project-trust.js'),
    ]);
    // the two readers of what a project's files want to run
    return runTrust(words, flags, [serverSource, hookSource]);
  },
};

const completion: PawlCommand = {
  name: 'completion',
  words: '<shell>',
  summary: 'print a script that completes commands in bash, zsh or fish',
  flags: [],
  run: async ({ program, words: [shell = ''] }) =>
    (await import('./shell-completion.js')).printCompletion(shell, program),
};

/** All commands, in the order of help. */
export const commands: readonly PawlCommand[] = [
  run,
  demo,
  ask,
  acp,
  fork,
  serve,
  sessions,
  attach,
  logs,
  answer,
  stop,
  resume,
  show,
  replay,
  rewind,
  redo,
  checkpoints,
  diff,
  bisect,
  inspect,
  verify,
  exportSession,
  importSession,
  machine,
  config,
  models,
  doctor,
  policy,
  hooks,
  skills,
  mcp,
  trust,
  completion,
];
