import { noLimits, type Settings } from '../../machine/settings.js';
import type { Limit, Remaining } from '../../machine/values/limit-value.js';
import { allowedHosts, allowHosts, presetRules } from '../../policy/preset-rules.js';

/** Rounds after which the model is asked for what it has found. */
const ROUNDS_MAX = 50;

type Left = { readonly usd: Remaining; readonly tokens: Remaining };

const limitOf = (left: Remaining, wished: number | undefined): Limit => {
  if (left.type === 'unlimited') return wished ?? 'unlimited';
  return wished === undefined ? left.amount : Math.min(left.amount, wished);
};

/** Whether a limit of the session is used up. */
export const isUsedUp = ({ usd, tokens }: Left): boolean =>
  [usd, tokens].some((left) => left.type === 'left' && left.amount <= 0);

/**
 * The settings of a task that only reads. It gets the model, the written rules and the allowed hosts of its parent, and
 * at most what is left of the parent's limits. Whatever would be asked is denied, since nobody can be asked.
 */
export const readingTaskSettings = (parent: Settings, left: Left, maxUsd: number | undefined): Settings => ({
  ...parent,
  preset: 'plan',
  rules: allowHosts(presetRules.plan, allowedHosts(parent.rules)),
  ...(parent.sandbox === undefined || parent.sandbox === 'off' || parent.sandbox === 'missing'
    ? {}
    : { sandbox: 'read-only' }),
  onAsk: 'deny',
  hooks: 'never',
  formatter: 'off',
  autoCommit: 'off',
  userPolicy: 'none',
  queueOnCancel: 'hold',
  atLimit: 'finish',
  limits: {
    ...noLimits,
    usd: limitOf(left.usd, maxUsd),
    tokens: limitOf(left.tokens, undefined),
    rounds: ROUNDS_MAX,
    truncation: parent.limits.truncation,
    repeats: 5,
    errors: 5,
  },
});
