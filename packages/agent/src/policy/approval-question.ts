import type { Action } from '../machine/action.js';
import type { JudgedCall, Needs } from '../machine/call.js';
import type { ApprovalScope } from '../machine/event.js';
import type { Grant } from '../machine/settings.js';
import { type Grantable, grantOf, needsOf } from './grants.js';
import { type OddCharacter, oddCharactersIn } from './suspicious-characters.js';

/**
 * The content of an approval question, the same for the terminal, plain lines, the JSON stream and programs.
 *
 * 1. `subject` is everything that would run or change, never cut.
 * 2. `choices` are the possible answers, each with exactly what it would allow.
 */

export type QuestionSubject = {
  /** `command`: a shell command; `address`: a URL; `change`: a unified diff; `input`: the arguments as JSON. */
  readonly kind: 'command' | 'address' | 'change' | 'input';
  readonly text: string;
};

export type ApprovalChoice = {
  /** `always`: this exact call; `prefix`: commands with the prefix; `session`: the tool or its group. */
  readonly answer: 'once' | 'always' | 'prefix' | 'session' | 'no';
  /** What it allows, in words. */
  readonly allows: string;
};

export type ApprovalDescription = {
  readonly tool: string;
  readonly subject: QuestionSubject;
  /** Absolute paths and hosts that the call touches. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  /** Absolute paths of the known programs that a command would start. */
  readonly programs: readonly string[];
  /** Working folder of a command. */
  readonly folder: string;
  /** Milliseconds; null without a limit. */
  readonly timeLimitMs: number | null;
  readonly background: boolean;
  /** The access outside the sandbox or workspace that it needs; null if it stays inside. */
  readonly needs: Needs | null;
  /** The `paths` that something runs later without a question. */
  readonly protectedPaths: readonly string[];
  /** The rule that asks. */
  readonly why: string;
  readonly oddCharacters: readonly OddCharacter[];
  readonly choices: readonly ApprovalChoice[];
};

export type ApprovalRequest = Extract<Action, { readonly type: 'RequestApproval' }>;

const scopeOf: Readonly<Record<Exclude<ApprovalChoice['answer'], 'no'>, ApprovalScope>> = {
  once: 'once',
  always: 'shape',
  prefix: 'prefix',
  session: 'session',
};

/** The scope of an answer. */
export const scopeOfAnswer = (answer: Exclude<ApprovalChoice['answer'], 'no'>): ApprovalScope =>
  scopeOf[answer];

const leaving = (needs: Needs | undefined): string => {
  if (needs === undefined) return '';
  if (needs === 'repository') return ', with changes of git folders';
  return needs === 'network' ? ', with the network' : ', outside the sandbox and the workspace too';
};

const near = (path: string, folder: string): string =>
  path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;

/** What a grant allows, in words. `folder` shortens paths. */
export const describeGrant = (grant: Grant, folder = ''): string => {
  const { tool, needs } = grant;
  switch (grant.scope) {
    case 'shape':
      if (grant.shape === tool) return `every ${tool}${leaving(needs)}`;
      return `${tool} ${near(grant.shape, folder)}${leaving(needs)}`;
    case 'prefix':
      return `every command that begins with: ${grant.words.join(' ')}${leaving(needs)}`;
    case 'session': {
      const what = grant.group === 'fileChanges' ? 'every change of files' : `every ${tool}`;
      const where = grant.group === 'fileChanges' && needs === undefined ? ' in the workspace' : '';
      return `${what}${where}${leaving(needs)}, but for protected paths`;
    }
    default:
      return grant satisfies never;
  }
};

/** The answers that the call offers. */
const choicesOf = (
  call: JudgedCall,
  workspace: string,
  grantable: Grantable | undefined,
): readonly ApprovalChoice[] => {
  const lasting = (['always', 'prefix', 'session'] as const).flatMap((answer): readonly ApprovalChoice[] => {
    const grant = grantOf(call, scopeOf[answer], workspace, grantable);
    if (grant === null) return [];
    if (grant.scope !== 'shape') return [{ answer, allows: describeGrant(grant, workspace) }];
    const allows =
      call.facts.argv.length > 0
        ? 'this exact command'
        : `every ${call.tool} of ${near(grant.shape, workspace)}`;
    if (grant.shape === call.tool) return [];
    return [{ answer, allows: `${allows}${leaving(grant.needs)}` }];
  });
  return [
    { answer: 'once', allows: 'this call' },
    ...lasting,
    { answer: 'no', allows: 'nothing; a reason is read by the model' },
  ];
};

const textFields = (call: JudgedCall): readonly string[] =>
  Object.values(call.input).filter((value) => typeof value === 'string');

const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

const subjectOf = (call: JudgedCall, diff: string | undefined): QuestionSubject => {
  const { argv, hosts } = call.facts;
  const [command] = argv;
  if (argv.length === 1 && command !== undefined) return { kind: 'command', text: command };
  if (argv.length > 1) return { kind: 'command', text: argv.map(quoted).join(' ') };
  if (diff !== undefined) return { kind: 'change', text: diff };
  const [address, ...others] = textFields(call);
  const isAddress = hosts.length > 0 && others.length === 0 && Object.keys(call.input).length === 1;
  if (isAddress && address !== undefined) return { kind: 'address', text: address };
  return { kind: 'input', text: JSON.stringify(call.input, null, 2) };
};

/** Describes a call completely, for whoever answers. */
export const describeQuestion = (
  { call, why, diff, grantable }: ApprovalRequest,
  workspace: string,
): ApprovalDescription => {
  const { facts, traits, tool } = call;
  const subject = subjectOf(call, diff);
  const commands = facts.shell?.commands ?? [];
  return {
    tool,
    subject,
    paths: facts.paths,
    hosts: facts.hosts,
    programs: [...new Set(commands.flatMap(({ program }) => (program === null ? [] : [program])))],
    folder: workspace,
    timeLimitMs: traits.deadlineMs > 0 ? traits.deadlineMs : null,
    background: facts.background === 'yes',
    needs: needsOf(facts, workspace) ?? null,
    protectedPaths: facts.protected ?? [],
    why,
    oddCharacters: oddCharactersIn([subject.text, ...facts.paths, ...facts.hosts].join('\n')),
    choices: choicesOf(call, workspace, grantable),
  };
};
