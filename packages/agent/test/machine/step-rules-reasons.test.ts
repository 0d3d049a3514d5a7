import { batch, llm, PROMPT, queued, session } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import {
  checkRests,
  NOTICE,
  path,
  rests,
  stopped,
  W,
  wrong,
} from '../../../../test/kit/agent/step-rows.js';
import type { Action } from '../../src/machine/action.js';
import type { StopReason } from '../../src/machine/event.js';
import type { AssistantMessage } from '../../src/machine/message.js';
import type { State, WaitReason } from '../../src/machine/state.js';

// The reasons that depend on more than the way: who stopped a turn, and how a reply ended it.

const HOOKED: State = {
  name: 'PostToolsHook',
  session: session(),
  phase: 'CheckingGitCommits',
  hookId: 'hook-1',
  mutated: [],
  tree: 'unknown',
};
const ABORT: Action = { type: 'AbortHook', hookId: 'hook-1' };
const stopping = { ...batch([queued('1')]), phase: { mode: 'stopping' } } as const;
const cancelling = {
  ...batch([queued('1')]),
  phase: { mode: 'cancelling', graceTimerId: null, cause: 'user' },
} as const;
const progress: g.Given = g.progress('1');

checkRests([
  {
    title: 'the stopping policy',
    before: llm(),
    event: g.policyStops(),
    path: path('CallingLlm', 'Cancelled', W),
    after: stopped('policy'),
  },
  {
    title: 'the stopping policy',
    before: llm(),
    event: g.policyStops(),
    path: path('CallingLlm', 'Cancelled', W),
    after: stopped('user'),
    says: [wrong('cancelled user', 'cancelled policy')],
  },
  {
    title: 'the veto of a hook',
    before: HOOKED,
    event: g.hookDone({ proceed: false }),
    path: path('PostToolsHook', 'Cancelled', W),
    after: stopped('veto'),
  },
  {
    title: 'the veto of a hook',
    before: HOOKED,
    event: g.hookDone({ proceed: false }),
    path: path('PostToolsHook', 'Cancelled', W),
    after: stopped('user'),
    says: [wrong('cancelled user', 'cancelled veto')],
  },
  {
    title: 'a cancel while a hook runs',
    before: HOOKED,
    path: path('PostToolsHook', 'Cancelled', W),
    actions: [ABORT, NOTICE, PROMPT],
    after: stopped('user'),
  },
  {
    title: 'a cancel while a hook runs',
    before: HOOKED,
    path: path('PostToolsHook', 'Cancelled', W),
    actions: [ABORT, NOTICE, PROMPT],
    after: stopped('veto'),
    says: [wrong('cancelled veto', 'cancelled user')],
  },
  {
    title: 'nobody was there to ask',
    before: stopping,
    event: progress,
    path: path('ExecutingTools', 'Cancelled', W),
    after: stopped('approval'),
  },
  {
    title: 'nobody was there to ask',
    before: stopping,
    event: progress,
    path: path('ExecutingTools', 'Cancelled', W),
    after: stopped('user'),
    says: [wrong('cancelled user', 'cancelled approval')],
  },
  {
    title: 'a cancel of tools',
    before: stopping,
    path: path('ExecutingTools', 'Cancelled', W),
    after: stopped('user'),
  },
  {
    title: 'a cancel of tools that came before',
    before: cancelling,
    event: progress,
    path: path('ExecutingTools', 'Cancelled', W),
    after: stopped('user'),
  },
  {
    title: 'a cancel that begins with the stop itself',
    path: path('Cancelled', W),
    after: stopped('user'),
  },
  {
    title: 'a cancel on the way through tools that were never begun',
    event: progress,
    path: path('CheckingForCancellation', 'Cancelled', W),
    after: stopped('user'),
  },
]);

// ---- The end of a turn ----

const says = (text: string): AssistantMessage => ({
  role: 'assistant',
  model: 'test/model',
  cut: false,
  parts: [{ type: 'text', text }],
});
const thinks: AssistantMessage = { ...says(''), parts: [{ type: 'reasoning', text: 'hm' }] };
type Cause = Extract<WaitReason, { readonly kind: 'endOfTurn' }>['cause'];
const ended = (cause: Cause): State => rests({ kind: 'endOfTurn', cause });
const endings: readonly (readonly [StopReason, AssistantMessage | null, Cause])[] = [
  ['end', says('yes'), 'answer'],
  ['end', says(' \n'), 'empty'],
  ['end', thinks, 'empty'],
  ['end', { ...says(''), parts: [...thinks.parts, ...says('so').parts] }, 'answer'],
  ['end', null, 'empty'],
  ['toolUse', says('yes'), 'answer'],
  ['maxTokens', says('and th'), 'truncated'],
  ['refusal', says('no'), 'refused'],
  ['contentFilter', says('no'), 'refused'],
  ['other', says('no'), 'refused'],
];

for (const [stopReason, message, cause] of endings) {
  const reply = g.eventOf(g.completed({ stopReason, usage: g.usage(0, 0) }), llm());
  const given = { ...reply, message } as g.Given;
  const others = (['answer', 'empty', 'truncated', 'refused'] as const).filter(
    (other) => other !== cause,
  );
  const row = { before: llm(), event: given, path: path('EndOfTurn', W), actions: [PROMPT] };
  checkRests([
    { ...row, title: `a reply that ends with ${stopReason}: ${cause}`, after: ended(cause) },
    ...others.map((other) => ({
      ...row,
      title: `a reply that ends with ${stopReason}: ${other}`,
      after: ended(other),
      says: [wrong(`endOfTurn ${other}`, `endOfTurn ${cause}`)],
    })),
  ]);
}

checkRests([
  {
    title: 'the end of a turn by something else is not judged',
    path: path('EndOfTurn', W),
    actions: [PROMPT],
    after: rests({ kind: 'start' }),
  },
]);
