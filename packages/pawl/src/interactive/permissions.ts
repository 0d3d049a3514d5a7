/** What is allowed beyond the preset: the answers of a session (grants), and the rules of files. */

import type { Settings } from '@pawl/agent/machine/settings';
import type { ApprovalRequest } from '@pawl/agent/policy/approval-question';
import {
  type CommandPlace,
  isNeedsReason,
  type PolicyRule,
  type RuleSubject,
  type WrittenRule,
} from '@pawl/agent/policy/presets';
import { describeRule, type Grant } from '@pawl/agent/policy/rules';
import { harmless, indentWords, paint, wrapWords } from '@pawl/terminal/paint';
import { joinSafe, makeSafe, safe } from '@pawl/terminal/safe-text';
import { parseConfig, userFile } from '../settings/configuration.js';
import { changeConfigFile, refused } from '../settings/edit-config.js';
import { addFolderRule, findRule, removeFolderRule, writableRule } from '../settings/edit-rules.js';
import { NotNow, type SlashCommand, type SlashCommandContext } from './slash-command.js';
import { grantText } from './view.js';

/** Where a call would run (`runs` of a rule). `missing`: a sandbox is required, but none works. */
const commandPlaces: Readonly<Record<CommandPlace, string>> = {
  sandboxed: 'commands',
  leaving: 'commands that leave the sandbox',
  unfenced: 'commands without a sandbox',
  missing: 'commands',
  mcpServer: 'tools of MCP servers',
};

const subjectOf = ({ where, touches, runs, unrecoverable }: PolicyRule): string => {
  if (unrecoverable !== undefined) return 'commands that lose work';
  if (runs !== undefined) return commandPlaces[runs];
  const does = { reads: 'reading', mutates: 'changes', anything: 'anything' }[touches];
  return does + { inside: ' in the folder', outside: ' outside the folder', anywhere: '' }[where];
};

/** A rule as a row. `above`: the rules that are asked before it. */
const policyRuleText = (rule: PolicyRule, above: readonly PolicyRule[]): string => {
  const { decision, tool, runs, hosts, why } = rule;
  const row = (subject: string): string =>
    `  ${decision.padEnd(5)}  ${subject}${isNeedsReason(why) ? '' : `: ${why}`}`;
  if (hosts !== undefined)
    return row(hosts.includes('*') ? 'hosts of the network' : hosts.join(', '));
  const isOther = runs !== undefined && above.some((one) => one.runs === runs);
  const by = tool === '*' ? '' : ` by ${tool}`;
  return row(`${isOther ? 'other ' : ''}${subjectOf(rule)}${by}`);
};

/** Where calls can run with this setting of the sandbox. Rules for other places are not listed. */
const placesWith = (sandbox: NonNullable<Settings['sandbox']>): readonly CommandPlace[] => {
  if (sandbox === 'off') return ['unfenced', 'mcpServer'];
  return sandbox === 'missing' ? ['missing', 'mcpServer'] : ['sandboxed', 'leaving', 'mcpServer'];
};

/** The rules that an answer has written. They are numbered behind the grants. */
const folderRules = ({ writtenRules = [] }: Settings): readonly WrittenRule[] =>
  writtenRules.filter(({ from, decision }) => from === 'folder' && decision === 'allow');

const writtenRulesText = (rules: readonly WrittenRule[]): readonly string[] =>
  rules.length === 0
    ? []
    : [
        '  Rules from files, changed there: deny wins over ask, ask wins over allow.',
        ...rules.map((rule) => `  ${describeRule(rule)}`),
      ];

const permissionsTexts = (settings: Settings, grants: readonly Grant[]): readonly string[] => {
  const { rules, writtenRules = [], preset, sandbox = 'off' } = settings;
  const folderRuleList = folderRules(settings);
  const numbered = (texts: readonly string[], from: number): readonly string[] =>
    texts.map((text, index) => `  ${from + index}  ${text}`);
  return [
    `  ${preset === undefined ? '' : `Preset ${preset}. `}The first matching rule decides; ` +
      'calls without a match are denied.',
    ...rules
      .filter(({ runs }) => runs === undefined || placesWith(sandbox).includes(runs))
      .map((rule, index, all) => policyRuleText(rule, all.slice(0, index))),
    ...writtenRulesText(writtenRules.filter((rule) => !folderRuleList.includes(rule))),
    ...(grants.length + folderRuleList.length === 0 ? ['  You have added no permissions.'] : []),
    ...(grants.length === 0 ? [] : ['  Your permissions in this session, where a rule asks:']),
    ...numbered(
      grants.map((grant) => grantText(grant)),
      1,
    ),
    ...(folderRuleList.length === 0
      ? []
      : ['  Your permissions always in this folder, where a rule asks:']),
    ...numbered(folderRuleList.map(describeRule), grants.length + 1),
    ...(grants.length + folderRuleList.length === 0
      ? []
      : ['  /permissions revoke 1 takes one back, /permissions revoke all takes all back']),
  ];
};

type Revoked = { readonly grants: readonly Grant[]; readonly rules: readonly WrittenRule[] };

/** What the words of a revocation name; null if they name nothing. */
const findRevoked = (
  settings: Settings,
  grants: readonly Grant[],
  words: string,
): Revoked | null => {
  const rules = folderRules(settings);
  if (/^all$/i.test(words)) return { grants, rules };
  const index = Number(words) - 1;
  const [grant, rule] = [grants[index], rules[index - grants.length]];
  if (grant !== undefined) return { grants: [grant], rules: [] };
  return rule === undefined ? null : { grants: [], rules: [rule] };
};

/** Takes the rules out of the user's file. Resolves with those that stay there, and why. */
const removeRules = async (
  rules: readonly WrittenRule[],
  workspace: string,
): Promise<ReadonlyMap<WrittenRule, string>> => {
  const remaining = new Map<WrittenRule, string>();
  for (const rule of rules) {
    const written = writableRule(rule, workspace);
    const why = rule.kind === 'path' ? 'rules for paths are changed there by hand.' : NO_LIST;
    const changed =
      written === null
        ? null
        : await changeConfigFile(userFile(process.env), (text, format) =>
            removeFolderRule(text, written, format),
          );
    if (changed?.kind !== 'edited') remaining.set(rule, changed?.why ?? why);
  }
  return remaining;
};
const NO_LIST = 'no list can hold such a rule.';

const revoke = async (
  { view, session, look, workspace }: SlashCommandContext,
  words: string,
): Promise<void> => {
  const { settings, grants } = view.state.session;
  const revoked = findRevoked(settings, grants, words);
  if (revoked === null)
    throw new NotNow(`You have no permission ${words}. /permissions lists them.`);
  const remaining = await removeRules(revoked.rules, workspace);
  const now = view.state.session; // it may have changed meanwhile
  await session.send({
    type: 'SettingsChanged',
    patch:
      revoked.rules.length === 0
        ? {}
        : { writtenRules: without(now.settings.writtenRules ?? [], revoked.rules) },
    grants: without(now.grants, revoked.grants),
  });
  const texts = [
    ...revoked.grants.map((grant) => grantText(grant)),
    ...revoked.rules.map(describeRule),
  ];
  view.print(
    texts.length === 0
      ? safe`  Nothing was allowed.`
      : harmless(`  asks again for: ${texts.join(', ')}`),
  );
  for (const [rule, why] of remaining)
    view.print(
      paint(
        look,
        'yellow',
        indentWords(
          harmless(
            `${describeRule(rule)} is still in ${userFile(process.env)}: ${why} ` +
              'It is off in this session only.',
          ),
          look.columns,
        ),
      ),
    );
};

/** The list without those that are equal to a removed one. */
const without = <T>(all: readonly T[], removed: readonly T[]): readonly T[] => {
  const texts = new Set(removed.map((one) => JSON.stringify(one)));
  return all.filter((one) => !texts.has(JSON.stringify(one)));
};

export const permissions: SlashCommand = async (context, words) => {
  const { view, look } = context;
  const { settings, grants } = view.state.session;
  if (words === '') {
    const rows = permissionsTexts(settings, grants).flatMap((text) =>
      wrapWords(makeSafe(text), look.columns - 5).map((row, at) =>
        at === 0 ? row : safe`    ${row}`,
      ),
    );
    return view.print(joinSafe(rows, safe`\n`));
  }
  const revocation = /^revoke\s+(\S+)$/i.exec(words);
  if (revocation === null)
    throw new NotNow(
      '/permissions shows the rules and your permissions; /permissions revoke 1 takes one back.',
    );
  await revoke(context, revocation[1] ?? '');
};

// The answer `P`: a rule in the user's file, for this folder.

/**
 * What is allowed for the session, if a rule can't be written: commands that begin so, this exact
 * call for a host, or else the whole tool.
 */
const sessionScope = ({ kind }: RuleSubject): 'prefix' | 'session' | 'shape' =>
  kind === 'command' ? 'prefix' : kind === 'host' ? 'shape' : 'session';

type WrittenAnswer =
  | { readonly kind: 'written'; readonly rule: WrittenRule; readonly line: string }
  | { readonly kind: 'failed'; readonly why: string };

const writeRule = async (subject: RuleSubject, folder: string): Promise<WrittenAnswer> => {
  const rule = writableRule(subject, folder);
  if (rule === null) return { kind: 'failed', why: 'the folder has a name that no text holds.' };
  const file = userFile(process.env);
  let place = { line: 1, text: '' };
  const changed = await changeConfigFile(file, (text, format) => {
    const edited = addFolderRule(text, rule, format);
    if (edited.kind === 'refused') return edited;
    // a file with a fault would keep every session from starting
    const [fault] = parseConfig(edited.text, format.parse).faults;
    if (fault !== undefined) return refused(`line ${fault.line} would be wrong: ${fault.text}`);
    place = findRule(edited.text, rule, format);
    return edited;
  });
  if (changed.kind === 'refused') return { kind: 'failed', why: changed.why };
  const origin = `${file}:${place.line}`;
  return {
    kind: 'written',
    rule: { ...subject, decision: 'allow', origin, from: 'folder' },
    line: `${origin}: ${place.text}`,
  };
};

/**
 * Writes the rule, gives it to the running session, and answers the question. If the rule can't be
 * written, that is said, and the answer counts for the session.
 */
export const allowInFolder = async (
  { view, session, look, workspace }: SlashCommandContext,
  { batchId, call: { callId } }: ApprovalRequest,
  subject: RuleSubject,
): Promise<void> => {
  const written = await writeRule(subject, workspace);
  const answer = { type: 'ApprovalAnswered', batchId, callId, answer: { kind: 'allow' } } as const;
  if (written.kind === 'written') {
    const { writtenRules = [] } = view.state.session.settings;
    const patch = { writtenRules: [...without(writtenRules, [written.rule]), written.rule] };
    await session.send({ type: 'SettingsChanged', patch });
    view.print(paint(look, 'dim', indentWords(harmless(written.line), look.columns)));
    await session.send({ ...answer, scope: 'once' });
  } else {
    const text = `${userFile(process.env)} is not changed: ${written.why} It is allowed in this session only.`;
    view.print(paint(look, 'yellow', indentWords(harmless(text), look.columns)));
    await session.send({ ...answer, scope: sessionScope(subject) });
  }
  view.redraw();
};
