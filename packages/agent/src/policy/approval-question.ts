/**
 * The content of an approval question, the same for the terminal, plain lines, the JSON stream and
 * programs.
 *
 * 1. `subject` is everything that would run or change, never cut.
 * 2. `choices` are the possible answers, each with exactly what it would allow.
 *
 * From top to bottom: `describeQuestion` and its subject; the answers; the rule for a folder that
 * an answer may write; and odd characters, which are shown beside the question.
 */

import { decide, type PolicySettings } from './decide.js';
import type { JudgedCall, Needs } from './judged-call.js';
import { isHostPattern, isMcpPattern } from './patterns.js';
import type { RuleSubject } from './presets.js';
import {
  type ApprovalScope,
  callNeeds,
  createGrant,
  type Grant,
  type Grantable,
  grantablePrefix,
} from './rules.js';

/** What the question is about. */
type QuestionSubject = {
  /**
   * `command`: a shell command; `address`: a URL; `change`: a unified diff; `input`: the arguments
   * as JSON; `question`: what the model asks the user; `plan`: what
   * the model proposes.
   */
  readonly kind: 'command' | 'address' | 'change' | 'input' | 'question' | 'plan';
  readonly text: string;
};

export type AllowingAnswer = 'once' | 'always' | 'prefix' | 'session';
export type ReplyAnswer = '1' | '2' | '3' | '4' | 'reply' | 'edit';

export type ApprovalChoice = {
  /**
   * `always`: this exact call; `prefix`: commands with the prefix; `session`: the tool or its
   * group. Of a question: `1` to `4`, one of its choices; `reply`: the user's own words;
   * of a plan: `edit`, the whole plan in the user's words.
   */
  readonly answer: AllowingAnswer | ReplyAnswer | 'no';
  /** What it allows, in words; of a choice its text. */
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

/** The question to the user about a call, an action of the machine. */
export type ApprovalRequest = {
  readonly type: 'RequestApproval';
  readonly batchId: string;
  readonly call: JudgedCall;
  readonly why: string;
  /** The preview of the change, as a unified diff. */
  readonly diff?: string;
  /** The answers that may allow the call; absent: any. */
  readonly grantable?: Exclude<Grantable, 'any'>;
};

/** Describes a call completely, for the user who answers. */
export const describeQuestion = (
  { call, why, diff, grantable }: ApprovalRequest,
  workspace: string,
): ApprovalDescription => {
  const { facts, traits, tool } = call;
  const subject = questionSubject(call, diff);
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
    needs: callNeeds(facts, workspace) ?? null,
    protectedPaths: facts.protected ?? [],
    why,
    oddCharacters: oddCharactersIn([subject.text, ...facts.paths, ...facts.hosts].join('\n')),
    choices: listChoices(call, workspace, grantable),
  };
};

/** A word as a shell reads it back. */
export const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The subject of a question. `diff`: the change that the tool has previewed. */
const questionSubject = (call: JudgedCall, diff: string | undefined): QuestionSubject => {
  const { argv, hosts } = call.facts;
  if (call.traits.asks === 'question')
    return { kind: 'question', text: String(call.input.question) };
  if (call.traits.asks === 'plan') return { kind: 'plan', text: planText(call.input) };
  const [command, ...words] = argv;
  if (command !== undefined)
    return { kind: 'command', text: words.length > 0 ? argv.map(quoteWord).join(' ') : command };
  if (diff !== undefined) return { kind: 'change', text: diff };
  const [address, ...others] = Object.values(call.input);
  if (hosts.length > 0 && others.length === 0 && typeof address === 'string')
    return { kind: 'address', text: address };
  return { kind: 'input', text: JSON.stringify(call.input, null, 2) };
};

// ---- Answers ----

/**
 * The scope of the grant that an answer makes. `shape`: this exact call, by the text that names it.
 */
const answerScopes: Readonly<Record<AllowingAnswer, ApprovalScope>> = {
  once: 'once',
  always: 'shape',
  prefix: 'prefix',
  session: 'session',
};

export const scopeOfAnswer = (answer: AllowingAnswer): ApprovalScope => answerScopes[answer];

const NUMBERS = ['1', '2', '3', '4'] as const;

const PLAN_CHOICES: readonly ApprovalChoice[] = [
  { answer: 'once', allows: 'accept the plan and start' },
  { answer: 'edit', allows: 'change the text of the plan, and accept that' },
  { answer: 'no', allows: 'send it back; you may type a reason for the model' },
];

/** The plan of a call as people read and edit it: a title, numbered steps, a text. */
export const planText = ({ title, steps, text }: Readonly<Record<string, unknown>>): string => {
  const numbered = (Array.isArray(steps) ? steps : []).map(
    (step, index) => `${index + 1}. ${String(step).replace(/\s+/g, ' ')}`,
  );
  const more = typeof text === 'string' && text.trim() !== '' ? ['', text.trim()] : [];
  return [String(title).replace(/\s+/g, ' '), ...numbered, ...more].join('\n');
};

/** The choices of a question to the user. */
const questionChoices = ({ input }: JudgedCall): readonly ApprovalChoice[] => {
  const offered = Array.isArray(input.choices) ? input.choices : [];
  return [
    ...NUMBERS.slice(0, offered.length).map((answer, index) => ({
      answer,
      allows: String(offered[index]),
    })),
    { answer: 'reply', allows: 'your own words' },
    { answer: 'no', allows: 'the model decides' },
  ];
};

/** The access that a grant gives outside the sandbox, in words. */
const describeNeeds = (needs: Needs | undefined): string => {
  if (needs === undefined) return '';
  if (needs === 'repository') return ', with changes of git folders';
  return needs === 'network' ? ', with the network' : ', outside the sandbox and the workspace too';
};

/** A path from the folder on, if it lies there. */
const shortenPath = (path: string, folder: string | null): string =>
  folder !== null && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;

/** What a grant allows, in words. `folder` shortens paths. */
export const describeGrant = (grant: Grant, folder: string | null = null): string => {
  const { tool, needs } = grant;
  switch (grant.scope) {
    case 'shape':
      if (grant.shape === tool) return `every ${tool} call${describeNeeds(needs)}`;
      return `${tool} ${shortenPath(grant.shape, folder)}${describeNeeds(needs)}`;
    case 'prefix':
      return `${grant.words.join(' ')} …${describeNeeds(needs)}`;
    case 'session': {
      const what = grant.group === 'fileChanges' ? 'every edit' : `every ${tool} call`;
      const where = grant.group === 'fileChanges' && needs === undefined ? ' in this folder' : '';
      return `${what}${where}${describeNeeds(needs)} (protected paths still ask)`;
    }
    default:
      return grant satisfies never;
  }
};

/** The answers that the call offers. */
const listChoices = (
  call: JudgedCall,
  workspace: string,
  grantable: Grantable | undefined,
): readonly ApprovalChoice[] => {
  if (call.traits.asks === 'question') return questionChoices(call);
  if (call.traits.asks === 'plan') return PLAN_CHOICES;
  const lasting = (['always', 'prefix', 'session'] as const).flatMap(
    (answer): readonly ApprovalChoice[] => {
      const grant = createGrant(call, answerScopes[answer], workspace, grantable);
      if (grant === null) return [];
      if (grant.scope !== 'shape') return [{ answer, allows: describeGrant(grant, workspace) }];
      // a shape that is only the tool's name would allow every call, as `session` does
      if (grant.shape === call.tool) return [];
      const allows =
        call.facts.argv.length > 0
          ? 'this exact command'
          : `every ${call.tool} of ${shortenPath(grant.shape, workspace)}`;
      return [{ answer, allows: `${allows}${describeNeeds(grant.needs)}` }];
    },
  );
  return [
    { answer: 'once', allows: 'this call' },
    ...lasting,
    { answer: 'no', allows: 'you may type a reason for the model' },
  ];
};

// ---- The rule for a folder ----

/** Words without quotes and folders. A program that a path names can be the repository's own. */
const LASTING_WORD = /^[\w@%+=:,.-]+$/;

/** What a rule for calls like this one would say; null if none may be written. */
const lastingSubject = ({ facts, traits }: JudgedCall): RuleSubject | null => {
  const { mcp, shell, hosts, needs } = facts;
  if (mcp !== undefined) {
    const pattern = `${mcp.server}/${mcp.tool}`;
    // a name with `*` at its end would be a pattern for others
    const isName = isMcpPattern(pattern) && !pattern.endsWith('*');
    return isName ? { kind: 'mcp', pattern } : null;
  }
  if (shell !== undefined) {
    const words = grantablePrefix(facts);
    if (words === null || needs === 'repository') return null;
    const isPlain = words.every((word) => LASTING_WORD.test(word));
    return isPlain ? { kind: 'command', words, ...(needs === undefined ? {} : { needs }) } : null;
  }
  const [host] = hosts;
  if (host === undefined || traits.mutating) return null;
  return isHostPattern(host) && !host.startsWith('*') ? { kind: 'host', pattern: host } : null;
};

/**
 * The rule that would allow calls like this one in its folder for ever; null if none can be
 * written, or if it would not allow this call: a rule of the user asks about it, or it is a
 * command that destroys work.
 */
export const createFolderRule = (
  call: JudgedCall,
  settings: PolicySettings,
): RuleSubject | null => {
  const subject = lastingSubject(call);
  if (subject === null) return null;
  const rule = { ...subject, decision: 'allow', origin: '', from: 'folder' } as const;
  const writtenRules = [...(settings.writtenRules ?? []), rule];
  return decide({ ...settings, writtenRules }, [], call).decision === 'allow' ? subject : null;
};

/** What a rule for a folder allows, in words. */
export const describeSubject = (subject: RuleSubject): string => {
  if (subject.kind !== 'command') return `every call of ${subject.pattern}`;
  return `${subject.words.join(' ')} …${describeNeeds(subject.needs)}`;
};

// ---- Odd characters ----

/**
 * Characters that may make a text look like another: controls, invisible characters, direction
 * marks, lookalike letters, long runs of blanks or line breaks. They are shown beside a question
 * and never decide by themselves.
 */
export type OddCharacter = {
  /** `U+202E`. */
  readonly code: string;
  readonly name: string;
  /** Number of occurrences; of runs the length of the longest. */
  readonly count: number;
};

/** Maximum number of listed kinds; the last entry counts the rest. */
const KINDS_MAX = 20;

const ASCII = /^[\n -~]*$/;
/** Runs that push the rest out of sight. */
const RUNS = [
  [/ {16,}/g, 'U+0020', 'run of blanks'],
  [/\n{16,}/g, 'U+000A', 'run of line breaks'],
] as const;
const ODD =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{M}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/u;
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const ORDINARY = new Set(['\n', ' ']);

/** Letters that look like Latin ones. */
const LOOK_ALIKE =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2010-\u2015\u2215\u2044\u0131\u0269\u217c\u01c0]/u;
const WORD = /[^\s"'`|&;<>()$=,:]+/g;
const LATIN = /[A-Za-z]/;

const NAMES: Readonly<Record<number, string>> = {
  0: 'NUL',
  9: 'tab',
  13: 'carriage return',
  27: 'escape',
  127: 'delete',
  160: 'no-break space',
  173: 'soft hyphen',
  1564: 'right-to-left mark',
  8203: 'zero-width space',
  8204: 'zero-width non-joiner',
  8205: 'zero-width joiner',
  8206: 'left-to-right mark',
  8207: 'right-to-left mark',
  8232: 'line separator',
  8233: 'paragraph separator',
  8234: 'left-to-right embedding',
  8235: 'right-to-left embedding',
  8236: 'end of embedding',
  8237: 'left-to-right override',
  8238: 'right-to-left override',
  8294: 'left-to-right isolate',
  8295: 'right-to-left isolate',
  8296: 'isolate',
  8297: 'end of isolate',
  10240: 'blank pattern',
  65279: 'zero-width no-break space',
};

const characterName = (character: string): string => {
  const point = character.codePointAt(0) ?? 0;
  const known = NAMES[point];
  if (known !== undefined) return known;
  if (/\p{Cc}/u.test(character)) return 'control character';
  if (point >= 0xe0000 && point <= 0xe007f) return 'tag character';
  if (/\p{Cs}/u.test(character)) return 'half of a character';
  if (/\p{Zs}/u.test(character)) return 'unusual blank';
  if (/\p{M}/u.test(character)) return 'combining sign';
  return /[\p{Co}\p{Cn}]/u.test(character) ? 'character without a meaning' : 'invisible character';
};

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Counts one more of the character. */
const countCharacter = (
  counts: Map<string, OddCharacter>,
  character: string,
  name: string,
): void => {
  const code = codePoint(character);
  counts.set(code, { code, name, count: (counts.get(code)?.count ?? 0) + 1 });
};

/** Suspicious characters of a text, in order of appearance. */
const oddCharactersIn = (text: string): readonly OddCharacter[] => {
  const counts = new Map<string, OddCharacter>();
  for (const [pattern, code, name] of RUNS)
    for (const [{ length }] of text.matchAll(pattern))
      counts.set(code, { code, name, count: Math.max(length, counts.get(code)?.count ?? 0) });
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (ASCII.test(text)) return [...counts.values()];
  for (const character of text) {
    if (ORDINARY.has(character)) continue;
    if (ODD.test(character)) countCharacter(counts, character, characterName(character));
    else if (RIGHT_TO_LEFT.test(character))
      countCharacter(counts, character, 'letter that is written right to left');
  }
  for (const [word] of text.matchAll(WORD)) {
    if (!LATIN.test(word)) continue;
    for (const letter of word)
      if (LOOK_ALIKE.test(letter)) countCharacter(counts, letter, 'looks like a common sign');
  }
  const all = [...counts.values()];
  if (all.length <= KINDS_MAX) return all;
  const rest = all.slice(KINDS_MAX - 1);
  return [...all.slice(0, KINDS_MAX - 1), { code: '…', name: 'others', count: rest.length }];
};
