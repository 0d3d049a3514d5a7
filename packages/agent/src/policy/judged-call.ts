/**
 * A tool call with the facts on which the policy and the machine decide.
 *
 * "Judged" means that the runtime has looked at the call before the journal: its input is valid or
 * not, and its facts are known. So a replay needs no look at the disk.
 */

import type { Count, JsonObject } from '@pawl/machine/kernel/shape';
import { cut } from '../platform/text.js';

/**
 * After an interruption a `pure` call may run again, a `probeable` one can be checked, an `opaque`
 * one never reruns.
 */
export type CallEffect = 'pure' | 'probeable' | 'opaque';

/** Tools that one grant may cover: `fileChanges` are those that write files. */
export type ToolGroup = 'fileChanges';

/** How the calls of a tool behave: each alike, but for `mutating` and the deadline. */
export type CallTraits = {
  readonly effect: CallEffect;
  /** Other calls may run beside it. */
  readonly parallelSafe: boolean;
  /** It may change something. A command that may not runs where nothing can be written. */
  readonly mutating: boolean;
  /** How long it may run. */
  readonly deadlineMs: number;
  /** The call makes model calls itself. Its outcome carries their usage. */
  readonly spends?: 'yes';
  /** The tool can preview the change, or refuse the call, before it runs. */
  readonly previews?: 'yes';
  /** One grant for the session may cover all tools of a group. */
  readonly group?: ToolGroup;
  /**
   * `list`: the result is a to-do list that stays visible until it is done: a heading, then one
   * item per line, marked `[ ]` (open), `[>]` (in progress) or `[x]` (done). An empty
   * line ends it.
   */
  readonly shown?: 'list';
  /** A question to the user, or a plan that the user accepts: nothing else allows the call. */
  readonly asks?: 'question' | 'plan';
};

/**
 * The access outside the sandbox that a call needs: the network, everything, or only changes of git
 * folders.
 */
export type Needs = 'network' | 'outside' | 'repository';

/** The end of a command's `shape` if it needs access: an answer counts for that access alone. */
export const needsMark = (needs: Needs): string => ` (needs: ${needs})`;

/** One simple command of a shell text, also inside a list, loop, function or substitution. */
export type ParsedCommand = {
  /** Words after quote removal, the program first. null: a word that is computed at run time. */
  readonly words: readonly (string | null)[];
  /**
   * Assignments before the words, as written: `PAGER=cat`. Without words they change the shell
   * itself.
   */
  readonly assignments: readonly string[];
  /** Files that its redirections may write. null: a name that is computed at run time. */
  readonly writes: readonly (string | null)[];
  /** Indexes of `writes` that only append. Absent: none is known to. */
  readonly appends?: readonly Count[];
  /** Files that its redirections read, without names that are computed at run time. */
  readonly readsFrom?: readonly string[];
  /**
   * For each word: its pattern (`src/*.ts`, `{a,b}`, quoted characters escaped) if it expands to
   * file names, or names files by `$PWD` or a variable whose value stands in the text.
   */
  readonly patterns?: readonly (string | null)[];
  /**
   * Absolute path at which the program is found, the real one if a symlink leads into the
   * workspace; null for a builtin, a function or a missing program.
   */
  readonly program: string | null;
  /** Index of the word at which a wrapped command begins: 2 in `timeout 5 npm test`. */
  readonly runs?: Count;
  /**
   * Index of the word from which a command may stand, behind options of its runner: 2 in `docker
   * run IMAGE npm test`.
   */
  readonly mayRun?: Count;
  /**
   * The words as git reads them, where they alone do not show it: an alias, or `git checkout FILE`
   * of a file whose name no branch has.
   */
  readonly readAs?: readonly (string | null)[];
  /**
   * The folder of the `cd` that surely ran before it: `dist` in `cd dist && rm *`. It is relative
   * to a folder in which that `cd` may run.
   */
  readonly folder?: string;
  /** It deletes only what the command before it has made. */
  readonly undoes?: 'previous';
  /** It only passes on its own input, of a pipe or a text of the command: `| tail -3`. */
  readonly filters?: 'yes';
  /** This is a wrapped command, listed in `commands` beside its wrapper. */
  readonly wrapped?: 'yes';
};

/** The commands that a shell text would run, by the shell grammar. */
export type ShellFacts = {
  readonly commands: readonly ParsedCommand[];
  /** Why `commands` may be wrong. Only the preset `full` allows such a text without a question. */
  readonly unclear: string | null;
  /** Why more than `commands` may run, for example a sourced file. No rule allows such a text. */
  readonly indirect?: string;
};

/**
 * Facts that the runtime found before the call reached the journal. The policy decides from these
 * alone.
 */
export type CallFacts = {
  /** The words of a command, or none. */
  readonly argv: readonly string[];
  /** Real absolute paths the call touches. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  /** The key of a grant for this exact call, e.g. the command or the file. */
  readonly shape: string;
  /** The access outside the sandbox that it needs; absent if none. */
  readonly needs?: Needs;
  /**
   * Access that the words are expected to need, although the call does not ask for it. The user is
   * asked at once, if possible.
   */
  readonly expects?: { readonly needs: 'network' | 'outside'; readonly words: string };
  /** Present for a call that runs a shell command. */
  readonly shell?: ShellFacts;
  /** The `paths` that something runs later without a question: hooks, start files, editor tasks. */
  readonly protected?: readonly string[];
  /** The `paths` that hold credentials. */
  readonly secret?: readonly string[];
  /**
   * Files that the command would delete or overwrite and that git could not restore. Absent: not
   * looked up, so every file that the words name counts.
   */
  readonly unrecoverable?: readonly string[];
  /**
   * Uncommitted changes of others that `git restore` and `git checkout` of paths would discard:
   * files that are neither deleted nor as this session wrote them. Absent: not looked up.
   */
  readonly discarded?: readonly string[];
  /** The command runs on after the end of the call. */
  readonly background?: 'yes';
  /** Present for a call to a tool of an MCP server. */
  readonly mcp?: McpToolName;
};

/**
 * A tool of an MCP server: the server's name in the configuration, and the tool's name at the
 * server.
 */
export type McpToolName = {
  readonly server: string;
  readonly tool: string;
  /** The project names the server. Absent for one of the user. */
  readonly from?: 'project';
  /**
   * The session declares it otherwise than the session that last ran it. Absent: the same, or it
   * never ran.
   */
  readonly declaration?: 'changed';
};

/** Whether the call can run at all. */
export type CallVerdict =
  | { readonly kind: 'ok' }
  | { readonly kind: 'noSuchTool'; readonly known: readonly string[] }
  | { readonly kind: 'invalid'; readonly field: string; readonly why: string };

/**
 * A tool call with everything the machine needs to decide about it (rules.md#judged-calls).
 */
export type JudgedCall = {
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonObject;
  /** The arguments as the model wrote them, if they are no JSON object; `input` is then empty. */
  readonly rawInput?: string;
  readonly verdict: CallVerdict;
  readonly traits: CallTraits;
  readonly facts: CallFacts;
  /**
   * The tool's title of the call: one line for people. `titleOf` makes one for calls without it.
   */
  readonly title?: string;
  /** What hooks said before the call; absent if none ran. */
  readonly hooks?: HookVerdicts;
  /** The user's words to a call that `asks`; empty for a plain yes. Absent: not answered. */
  readonly reply?: string;
};

/** Characters of a title in the journal: more than a row of any screen has. */
const TITLE_CHARACTERS_MAX = 300;

/** A title as it is journaled. */
export const shortTitle = (title: string): string =>
  title.length <= TITLE_CHARACTERS_MAX ? title : cut(title, TITLE_CHARACTERS_MAX);

/**
 * For a tool that gives no title, and for calls of older journals: the command, or the first text
 * of the input and the paths.
 */
const guessTitle = ({ facts, input, traits }: JudgedCall, workspace: string): string => {
  if (facts.argv.length > 0) return facts.argv.join(' ');
  const paths = facts.paths
    .map((path) => (path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path))
    .filter((path) => path !== '' && path !== workspace);
  const texts = Object.values(input).filter((value) => typeof value === 'string');
  const others = texts.filter((text) => !paths.includes(text) && !facts.paths.includes(text));
  const words = traits.mutating && paths.length > 0 ? paths : [...others.slice(0, 1), ...paths];
  return words.length > 0 ? words.join(' ') : facts.shape;
};

/** Whether a call runs a command that only reads: it was judged so, and the kernel keeps it. */
export const isReadingCommand = ({
  traits,
  facts,
}: Pick<JudgedCall, 'traits' | 'facts'>): boolean =>
  !traits.mutating && (facts.shell?.commands.length ?? 0) > 0;

/** What a call is about, in one line: the title that its tool gave it, or a guess. */
export const callTitle = (call: JudgedCall, workspace: string): string =>
  call.title ?? guessTitle(call, workspace);

/** Whether a call changes only files that it names: its tool knows what it writes. */
export const namesItsFiles = ({ traits, facts }: JudgedCall): boolean =>
  traits.group === 'fileChanges' && facts.shell === undefined;

// ---- What hooks of the user say, and how it reaches the model ----

export type HookDecision = 'allow' | 'ask' | 'deny';

/** The answer of one hook. */
export type HookVerdict = {
  /** The hook's name in the configuration. */
  readonly hook: string;
  /** A hook can only tighten: `allow` overrides nothing. */
  readonly decision: HookDecision;
  /** Why it asks or denies. */
  readonly reason?: string;
  /** Text for the model. */
  readonly note?: string;
  /** The hook failed in this way; `decision` is then the one that it declares for this case. */
  readonly fault?: string;
};

/**
 * Moments at which hooks run, and whose verdicts stand in an event of their own. At other moments
 * hooks run beside something that has an event, such as a call: their verdicts are part of that.
 */
export type ReportedMoment =
  | 'session-start'
  | 'session-end'
  | 'after-batch'
  | 'before-request'
  | 'ask-user';

export type HookVerdicts = readonly HookVerdict[];

const NONE: HookVerdicts = [];
/** The verdicts, or an empty list: a journal leaves the field out if no hook ran. */
export const verdictsIn = (verdicts: HookVerdicts | undefined): HookVerdicts => verdicts ?? NONE;

export const verdictReason = ({ reason }: HookVerdict): string => reason ?? 'it gave no reason';

/** Whether any hook objects: it denies what it was asked about. */
export const someHookObjects = (verdicts: HookVerdicts): boolean =>
  verdicts.some(({ decision }) => decision === 'deny');

/** Notes for the model. */
export const hookNotes = (verdicts: HookVerdicts): readonly string[] =>
  verdicts.flatMap(({ hook, note }) => (note === undefined ? [] : [`[hook ${hook}] ${note}`]));

/**
 * Notes and objections for the model, about something that has happened and can't be denied any
 * more.
 */
export const hookRemarks = (verdicts: HookVerdicts): readonly string[] => [
  ...hookNotes(verdicts),
  ...verdicts
    .filter(({ decision }) => decision === 'deny')
    .map((verdict) => `[hook ${verdict.hook}] objects: ${verdictReason(verdict)}`),
];

/** A text with what hooks add to it. */
export const withRemarks = (text: string, remarks: readonly string[]): string =>
  remarks.length === 0 ? text : [text, ...remarks].join('\n');
