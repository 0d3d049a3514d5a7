import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as g from '../../../../test/kit/agent/given.js';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import { bring, PLACES, type Step } from '../../../../test/kit/agent/walker.js';
import type { Action } from '../../src/machine/action.js';
import { type Conversation, messagesOf } from '../../src/machine/conversation.js';
import type { Event, On } from '../../src/machine/event.js';
import { step } from '../../src/machine/machine.js';
import { costsNothing } from '../../src/machine/moves/request.js';
import type { Usage } from '../../src/machine/settings.js';
import type { State } from '../../src/machine/state.js';

const typedIn = (conversation: Conversation): readonly string[] =>
  messagesOf(conversation).flatMap((message) =>
    message.role === 'assistant'
      ? []
      : message.parts.flatMap((part) =>
          part.type === 'text' && part.origin === 'user'
            ? (part.text.match(/text-\d+\./g) ?? [])
            : [],
        ),
  );

const heldBy = ({ session }: State): readonly string[] => [
  ...typedIn(session.conversation),
  ...session.queue.map((item) => item.text),
];

/** Texts that a step may take away: edited out, handed back, summed up, or taken back. */
const released = (before: State, event: Event, { actions }: Step): readonly string[] => {
  const edited =
    event.type === 'EditQueue'
      ? before.session.queue.filter(
          (item) => !event.items.some((kept) => kept.inputId === item.inputId),
        )
      : [];
  const restored = actions.flatMap((action) =>
    action.type === 'RestoreQueue' ? action.texts : [],
  );
  const { closed } = before.session.conversation;
  const summed =
    event.type === 'CompactionCompleted' && before.name === 'Compacting'
      ? typedIn({ closed, open: null })
      : [];
  const takesBack =
    (event.type === 'RewindRequested' && before.name === 'WaitingForUserInput') ||
    (event.type === 'Rewound' && before.name === 'Rewinding');
  const takenBack = takesBack ? typedIn(before.session.conversation) : [];
  return [...edited.map((item) => item.text), ...restored, ...summed, ...takenBack];
};

test('nothing-typed-is-lost: nothing that was typed is lost, and nothing is there twice', (t) => {
  forAll(t, 120, (walked) => {
    const walker = roam(walked);
    walker.events().forEach((event, index) => {
      const before = walker.steps()[index]?.state;
      const taken = walker.steps()[index + 1];
      assert.ok(before !== undefined && taken !== undefined);
      const held = heldBy(taken.state);
      assert.equal(new Set(held).size, held.length, `twice in ${held}`);
      const typed = event.type === 'UserInput' && event.text.trim() !== '' ? [event.text] : [];
      const gone = released(before, event, taken).join('\n');
      for (const text of [...heldBy(before), ...typed]) {
        assert.ok(
          held.includes(text) || gone.includes(text),
          `${text} was lost in ${before.name} on ${event.type}`,
        );
      }
    });
  });
});

const idOf = (action: Action): readonly string[] => {
  if (action.type === 'SendLlmRequest') return [action.requestId];
  if (action.type === 'StartCompaction') return [action.compactionId];
  return action.type === 'RunHook' ? [action.hookId] : [];
};

const usageOf = (event: Event): { readonly id: string; readonly usage: Usage } | null => {
  if (!('usage' in event) || event.usage === null) return null;
  const { usage } = event;
  if ('requestId' in event) return { id: event.requestId, usage };
  if ('compactionId' in event) return { id: event.compactionId, usage };
  return { id: 'hookId' in event ? event.hookId : event.usageId, usage };
};

test('usage-counts-once: usage counts once per id, whatever comes late or twice', (t) => {
  forAll(t, 120, (walked) => {
    const walker = roam(walked);
    const known = new Set<string>();
    const open = new Set<string>();
    let tokens = 0;
    let cents = 0;
    walker.steps().forEach(({ state, actions, path }, index) => {
      const event = walker.events()[index - 1];
      const spent = event === undefined ? null : usageOf(event);
      if (spent !== null && open.delete(spent.id)) {
        tokens += spent.usage.inputTokens;
        cents += Math.round((spent.usage.costUsd ?? 0) * 100);
      }
      // a phase of the hooks that ended without usage used nothing: what comes later under its id is not its own
      if (event?.type === 'HookCompleted') open.delete(event.hookId);
      // a request that was refused cost nothing
      if (event?.type === 'LlmFailed' && event.usage === null && costsNothing(event))
        open.delete(event.requestId);
      // a request that was held back was not sent
      const heldBack = path.some((edge) => edge.event === 'PolicyStopped' && edge.kind === 'go');
      if (event?.type === 'PolicyStopped' && heldBack) open.delete(event.requestId);
      for (const id of actions.flatMap(idOf)) {
        if (!known.has(id)) open.add(id);
        known.add(id);
      }
      assert.deepEqual(
        state.session.unaccounted.filter((id) => !open.has(id)),
        [],
      );
      assert.equal(state.session.usage.inputTokens, tokens);
      assert.equal(Math.round(state.session.usage.costUsd * 100), cents);
    });
  });
});

const stateAfter = (state: State, ...given: readonly g.Given[]): string =>
  JSON.stringify(given.reduce((before, one) => step(before, g.eventOf(one, before)).state, state));

test('merged-text: two pieces of text in a row leave the same state as their concatenation', (t) => {
  t.diagnostic('all places, random texts');
  const draining = bring('C[u]', { cancelMode: 'drain' });
  draining.send(g.cancel);
  const states = [...PLACES.map((place) => bring(place).state()), draining.state()];
  fc.assert(
    fc.property(
      fc.constantFrom(...states),
      fc.string(),
      fc.string(),
      fc.constantFrom('req-1', 'req-2'),
      (state, one, two, id) => {
        assert.equal(
          stateAfter(state, g.delta(one, id), g.delta(two, id)),
          stateAfter(state, g.delta(one + two, id)),
        );
      },
    ),
  );
});

const SHOWN_ONLY = new Set<Event['type']>(['ReasoningDelta', 'ToolCallDelta', 'ToolProgress']);
type Delta = On<'TextDelta'>;

/** What the journal keeps: pieces merged, left out before the completion of their reply; each with its place. */
const journaled = (
  events: readonly Event[],
): readonly { readonly event: Event; readonly index: number | null }[] => {
  const kept: { event: Event; index: number | null }[] = [];
  let pieces: Delta[] = [];
  events.forEach((event, index) => {
    if (SHOWN_ONLY.has(event.type)) return;
    if (event.type === 'TextDelta') {
      const last = pieces.at(-1);
      if (last === undefined || last.requestId !== event.requestId) pieces.push(event);
      else pieces = [...pieces.slice(0, -1), { ...last, text: last.text + event.text }];
      return;
    }
    const whole = event.type === 'LlmCompleted' ? event.requestId : null;
    for (const piece of pieces)
      if (piece.requestId !== whole) kept.push({ event: piece, index: null });
    pieces = [];
    kept.push({ event, index });
  });
  return kept;
};

const done = ({ actions }: Step): string =>
  JSON.stringify(
    actions.filter(({ type }) => !type.startsWith('Display') && type !== 'RetractPartial'),
  );

test('deterministic: the journal of a live run gives the same states, actions and ids', (t) => {
  forAll(t, 120, (walked) => {
    const walker = roam(walked);
    let state = begun(walked.settings);
    for (const { event, index } of journaled(walker.events())) {
      const taken = step(state, event);
      state = taken.state;
      if (index === null) continue;
      const live = walker.steps()[index + 1];
      assert.ok(live !== undefined);
      assert.equal(JSON.stringify(state), JSON.stringify(live.state));
      assert.equal(done(taken), done(live));
    }
  });
});
