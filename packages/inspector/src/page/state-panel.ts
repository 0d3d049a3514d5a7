/**
 * The state at the selected entry: queue, budget, calls of the batch, and everything else as a
 * tree.
 */

import type { Call } from '@pawl/agent/machine/call';
import { totalTokens } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { groupDigits } from '@pawl/agent/platform/text';
import { callTitle } from '@pawl/agent/policy/judged-call';
import { durationText, moneyText, percentText } from '../model/figure-text.js';
import { JsonTree, make } from './elements.js';
import type { PageState, Panel } from './page-state.js';

export const statePanel = (pageState: PageState): Panel => {
  const element = make('section', { class: 'state-panel' });
  const tree = new JsonTree();
  return {
    element,
    render() {
      const state = pageState.history.stateAt(pageState.seq);
      const { session, ...fields } = state;
      const { usage } = session;
      const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
      const calls = callsView(state);
      element.replaceChildren(
        make('h2', {}, state.name, make('span', { class: 'faint' }, ` ${describeReason(state)}`)),
        budgetView(state),
        make(
          'p',
          { class: 'faint' },
          `${groupDigits(input)} tokens in ` +
            `(${percentText(input === 0 ? null : usage.cacheReadTokens / input)} from the ` +
            `cache), ${groupDigits(usage.outputTokens)} ` +
            `out${usage.unpriced > 0 ? `; ${usage.unpriced} calls without a known price` : ''}` +
            `${usage.estimated ? `; estimated: ${usage.estimated.join(', ')} reports no usage` : ''}`,
        ),
        ...(calls === null ? [] : [calls]),
        make('h3', {}, 'Queue'),
        queueView(state),
        make('h3', {}, 'Everything'),
        ...Object.entries(fields).map(([key, value]) => tree.draw(key, value, key)),
        tree.draw('session', session, 'session'),
      );
    },
  };
};

/** A limit as a bar. `share`: how much of it is used; null without a limit. */
const meter = (label: string, used: string, limit: string, share: number | null): HTMLElement => {
  const bar = make('meter', {
    min: 0,
    max: 1,
    low: 0.6,
    high: 0.85,
    optimum: 0.2,
    value: Math.min(1, share ?? 0),
    'aria-label': label,
  });
  return make(
    'div',
    { class: 'budget' },
    make('span', {}, label),
    share === null ? make('span', { class: 'faint' }, 'no limit') : bar,
    make('span', { class: 'faint' }, share === null ? used : `${used} of ${limit}`),
  );
};

/** How much of a limit is used, 0 to 1 or more; null without a limit. */
const getShare = (used: number, limit: number | 'unlimited'): number | null =>
  limit === 'unlimited' ? null : limit <= 0 ? 1 : used / limit;

const budgetView = ({ session }: State): HTMLElement => {
  const { usage, settings, turn, contextTokens } = session;
  const { limits, windowTokens } = settings;
  const tokens = totalTokens(usage);
  return make(
    'div',
    { class: 'budgets' },
    meter(
      'Money',
      moneyText(usage.costUsd),
      limits.usd === 'unlimited' ? '' : moneyText(Number(limits.usd)),
      getShare(usage.costUsd, limits.usd),
    ),
    meter(
      'Tokens',
      groupDigits(tokens),
      groupDigits(Number(limits.tokens)),
      getShare(tokens, limits.tokens),
    ),
    meter(
      'Rounds of this turn',
      String(turn.rounds),
      String(limits.rounds),
      getShare(turn.rounds, limits.rounds),
    ),
    meter(
      'Context window',
      groupDigits(contextTokens),
      groupDigits(windowTokens),
      getShare(contextTokens, windowTokens),
    ),
  );
};

const callRow = (call: Call, workspace: string): HTMLElement => {
  const { judged, status } = call;
  const time =
    'completedAt' in call && call.startedAt !== null
      ? durationText(Math.max(0, call.completedAt - call.startedAt))
      : '';
  return make(
    'tr',
    { class: `call ${status}` },
    make('td', {}, judged.tool),
    make('td', {}, callTitle(judged, workspace)),
    make('td', {}, make('span', { class: 'tag' }, status)),
    make('td', {}, time),
  );
};

const callsView = (state: State): HTMLElement | null =>
  state.name !== 'ExecutingTools'
    ? null
    : make(
        'div',
        {},
        make('h3', {}, 'Tool calls of this batch'),
        make(
          'div',
          { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Tool calls' },
          make(
            'table',
            {},
            make(
              'tbody',
              {},
              ...state.calls.map((call) => callRow(call, state.session.settings.workspace)),
            ),
          ),
        ),
      );

const queueView = ({ session: { queue } }: State): HTMLElement =>
  queue.length === 0
    ? make('p', { class: 'faint' }, 'Nothing is queued.')
    : make(
        'ol',
        { class: 'queue' },
        ...queue.map(({ text, mode }) =>
          make('li', {}, make('span', { class: 'tag' }, mode), ` ${text}`),
        ),
      );

/** What the state waits for, or why, in words. */
const describeReason = (state: State): string => {
  if (state.name === 'WaitingForUserInput') {
    const { reason } = state;
    const detail = 'cause' in reason ? reason.cause : 'dimension' in reason ? reason.dimension : '';
    return `${reason.kind}${detail === '' ? '' : `: ${detail}`}${reason.kind === 'error' ? `: ${reason.message}` : ''}`;
  }
  if (state.name === 'CallingLlm')
    return `attempt ${state.attempt}${state.call.mode === 'draining' ? ', being cancelled' : ''}`;
  if (state.name === 'Error')
    return `${state.error.kind}: ${state.error.message}; waits ${durationText(state.delayMs)}`;
  if (state.name === 'PostToolsHook') return state.phase;
  if (state.name === 'ExecutingTools') return state.phase.mode;
  return state.name === 'Compacting' ? state.mode.kind : '';
};
