import { messagesOf } from '@pawl/agent/machine/conversation';
import type { State } from '@pawl/agent/machine/state';
import { INPUT_NAME, replyCost } from '../parts/model.js';
import type { World } from '../world.js';

/** What must be true of a session at its end. */

const count = (names: Map<string, number>, text: string): void => {
  for (const name of text.match(INPUT_NAME) ?? []) names.set(name, (names.get(name) ?? 0) + 1);
};

/** Names of inputs in the user's own texts, and in summaries of earlier ones. */
const namesIn = ({ session }: State) => {
  const own = new Map<string, number>();
  const summarised = new Map<string, number>();
  for (const { role, parts } of messagesOf(session.conversation)) {
    if (role !== 'user') continue;
    for (const part of parts)
      if (part.type === 'text') count(part.origin === 'summary' ? summarised : own, part.text);
  }
  for (const { text } of session.queue) count(own, text);
  return { own, summarised };
};

const checkInputs = (world: World, state: State): void => {
  const { own, summarised } = namesIn(state);
  for (const { text, isAcknowledged, isWithdrawn } of world.inputs.values()) {
    const times = own.get(text) ?? 0;
    const isThere = times > 0 || summarised.has(text);
    if (times > 1) world.violate('input-exactly-once', `${text} is in the conversation ${times} times`);
    if (isAcknowledged && !isWithdrawn && !isThere) world.violate('input-exactly-once', `${text} is lost`);
  }
};

/**
 * The limit and one reply: what a request costs is known only when it ends. Requests that the user gave up, and that had not
 * said their cost when the last one went out, come on top.
 */
const checkSpending = (world: World, { session }: State): void => {
  const { usd } = world.plan.settings.limits;
  if (usd === 'unlimited' || world.isLimitRaised) return;
  const most = usd + replyCost(world.requestTokens) * (1 + world.uncountedRequests);
  if (session.usage.costUsd > most)
    world.violate(
      'spend-within-limit',
      `$${session.usage.costUsd} were spent of $${usd}, at most $${most} may be`,
    );
};

/** Each line of a file was added by one call, once. */
const checkFiles = (world: World): void => {
  for (const [path, content] of world.files) {
    const lines = content.split('\n').filter((line) => line !== '');
    if (new Set(lines).size < lines.length) world.violate('no-second-effect', `${path} holds a line twice`);
  }
};

export const checkEnd = (world: World, state: State): void => {
  checkInputs(world, state);
  checkSpending(world, state);
  checkFiles(world);
};
