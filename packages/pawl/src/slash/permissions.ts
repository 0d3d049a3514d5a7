import type { Grant, Settings } from '@pawl/agent/machine/settings';
import type { CommandPlace, PolicyRule, WrittenRule } from '@pawl/agent/policy/preset-rules';
import { describeRule } from '@pawl/agent/policy/user-rules';
import { joinSafe, makeSafe, safe } from '@pawl/terminal/safe-text';
import { wrapWords } from '@pawl/terminal/width';
import { grantText } from '../interactive/read-approval-answer.js';
import { type Command, NotNow } from './command-context.js';

/** `/permissions`: lists the rules and the user's own grants, and revokes grants. */

const commands: Readonly<Record<CommandPlace, string>> = {
  sandboxed: 'commands in the sandbox',
  leaving: 'commands that leave it',
  unfenced: 'commands without a sandbox',
  missing: 'commands where none works',
  mcpServer: 'tools of MCP servers',
};

const hostsText = (hosts: readonly string[]): string =>
  hosts.includes('*') ? 'hosts of the network' : hosts.join(', ');

const ruleText = ({ decision, tool, where, touches, runs, hosts, why }: PolicyRule): string => {
  if (hosts !== undefined) return `  ${decision.padEnd(5)}  ${hostsText(hosts)}: ${why}`;
  const does =
    runs === undefined
      ? { reads: 'reading', mutates: 'changes', anything: 'anything' }[touches]
      : commands[runs];
  const place = { inside: ' in the folder', outside: ' outside the folder', anywhere: '' }[where];
  return `  ${decision.padEnd(5)}  ${does}${place}${tool === '*' ? '' : ` by ${tool}`}: ${why}`;
};

/** The places where commands can run at this level. Rules for other places are not listed. */
const placesWith = (sandbox: NonNullable<Settings['sandbox']>): readonly CommandPlace[] => {
  if (sandbox === 'off') return ['unfenced', 'mcpServer'];
  return sandbox === 'missing' ? ['missing', 'mcpServer'] : ['sandboxed', 'leaving', 'mcpServer'];
};

const writtenText = (rules: readonly WrittenRule[]): readonly string[] =>
  rules.length === 0
    ? []
    : [
        '  Rules from files: deny wins over ask, ask wins over allow.',
        ...rules.map((rule) => `  ${describeRule(rule)}`),
      ];

const list = (
  { rules, writtenRules = [], preset, sandbox = 'off' }: Settings,
  grants: readonly Grant[],
): string =>
  [
    `  ${preset === undefined ? '' : `Preset ${preset}. `}The first matching rule decides; calls without a match are denied.`,
    ...rules.filter(({ runs }) => runs === undefined || placesWith(sandbox).includes(runs)).map(ruleText),
    ...writtenText(writtenRules),
    ...(grants.length === 0
      ? ['  You have added no permissions.']
      : [
          '  Your permissions in this session, where a rule asks:',
          ...grants.map((grant, index) => `  ${index + 1}  ${grantText(grant)}`),
          '  /permissions revoke 1 takes one back, /permissions revoke all takes all back',
        ]),
  ].join('\n');

/** The grants that remain after a revocation; null if the words name no grant. */
const without = (grants: readonly Grant[], words: string): readonly Grant[] | null => {
  if (/^all$/i.test(words)) return [];
  const index = Number(words) - 1;
  return grants[index] === undefined ? null : grants.filter((_, each) => each !== index);
};

export const permissions: Command = async ({ view, session, look }, words) => {
  const { settings, grants } = view.state.session;
  if (words === '')
    return view.print(joinSafe(wrapWords(makeSafe(list(settings, grants)), look.columns - 1), safe`\n`));
  const revoke = /^revoke\s+(\S+)$/i.exec(words);
  if (revoke === null)
    throw new NotNow(
      '/permissions shows the rules and your permissions; /permissions revoke 1 takes one back.',
    );
  const left = without(grants, revoke[1] ?? '');
  if (left === null) throw new NotNow(`You have no permission ${revoke[1]}. /permissions lists them.`);
  await session.send({ type: 'SettingsChanged', patch: {}, grants: left });
  const taken = grants.filter((grant) => !left.includes(grant)).map((grant) => grantText(grant));
  view.print(
    taken.length === 0 ? safe`  Nothing was allowed.` : makeSafe(`  asks again for: ${taken.join(', ')}`),
  );
};
