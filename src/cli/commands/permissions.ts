import type { Grant, Rule } from '../../agent/settings.js';
import { grantText } from '../approval.js';
import { type Command, NotNow } from './room.js';

/** What may be done, by rule and by the user's own word. */

const ruleText = ({ decision, tool, where, touches, why }: Rule): string => {
  const does = { reads: 'reading', mutates: 'changes', anything: 'anything' }[touches];
  const place = { inside: ' in the folder', outside: ' outside the folder', anywhere: '' }[where];
  return `  ${decision.padEnd(5)}  ${does}${place}${tool === '*' ? '' : ` by ${tool}`}: ${why}`;
};

const list = (rules: readonly Rule[], grants: readonly Grant[]): string =>
  [
    '  The first rule that fits decides; what none fits is denied.',
    ...rules.map(ruleText),
    ...(grants.length === 0
      ? ['  You have allowed nothing beyond that.']
      : [
          '  You allowed in this session, where a rule asks:',
          ...grants.map((grant, index) => `  ${index + 1}  ${grantText(grant)}`),
          '  /permissions revoke 1 takes one back, /permissions revoke all every one',
        ]),
  ].join('\n');

/** What is left of the grants, or null where the words name none. */
const without = (grants: readonly Grant[], words: string): readonly Grant[] | null => {
  if (/^all$/i.test(words)) return [];
  const index = Number(words) - 1;
  return grants[index] === undefined ? null : grants.filter((_, each) => each !== index);
};

export const permissions: Command = async ({ desk, session }, words) => {
  const { settings, grants } = desk.state.session;
  if (words === '') return desk.print(list(settings.rules, grants));
  const revoke = /^revoke\s+(\S+)$/i.exec(words);
  if (revoke === null)
    throw new NotNow('/permissions shows what is allowed; /permissions revoke 1 takes one back.');
  const left = without(grants, revoke[1] ?? '');
  if (left === null)
    throw new NotNow(`There is no permission ${revoke[1]} of yours. /permissions lists them.`);
  await session.send({ type: 'SettingsChanged', patch: {}, grants: left });
  const taken = grants.filter((grant) => !left.includes(grant)).map(grantText);
  desk.print(taken.length === 0 ? '  Nothing was allowed.' : `  asks again for: ${taken.join(', ')}`);
};
