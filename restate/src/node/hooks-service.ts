import type * as restate from '@restatedev/restate-sdk';
import { attempt, type Posted } from 'pawl/engine';
import { json } from '../session/json.js';
import type { Arrival, HooksOrder } from '../session/session-records.js';
import { isBegunElsewhere } from './process-birth.js';
import type { WorkerWorld } from './session-worker.js';
import type { Workers } from './workers.js';

/**
 * Hooks of the user that are no part of other work: about the start and the end of a session, and about questions to the
 * user. They run in one recorded step, whose result is what they say. If their process dies, they are not run again:
 * their session is told so.
 */

type HooksParts = { readonly workers: Workers; readonly world: WorkerWorld };

const interrupted = ({ about: { moment } }: HooksOrder): Posted => ({
  type: 'UserHooksRan',
  moment,
  requestId: null,
  verdicts: [
    {
      hook: moment,
      decision: 'allow',
      fault: 'the node stopped while the hooks of this moment ran. They are not run again',
    },
  ],
});

const runHooks = async (
  { workers, world }: HooksParts,
  order: HooksOrder,
  isAgain: boolean,
): Promise<readonly Posted[]> => {
  const { sessionId, seq, node, about } = order;
  if (isAgain) {
    if (about.moment === 'session-end') await workers.end(sessionId);
    return [interrupted(order)];
  }
  const ran = await attempt(async () => {
    const worker = await workers.of(sessionId, seq, node);
    return about.moment === 'session-end' ? workers.end(sessionId) : worker.runHooks(about, seq);
  });
  if (ran.kind === 'done') return ran.value;
  world.report(ran.fault);
  const { moment } = about;
  const verdicts = [{ hook: moment, decision: 'allow', fault: ran.fault.message }] as const;
  return [{ type: 'UserHooksRan', moment, requestId: null, verdicts }];
};

/** An engine that was away asks again for hooks that still run here. */
const running = new Map<string, Promise<readonly Posted[]>>();

export const performHooks = async (
  ctx: restate.Context,
  parts: HooksParts,
  order: HooksOrder,
): Promise<void> => {
  const { id } = ctx.request();
  const isAgain = await isBegunElsewhere(ctx);
  const arrival = await ctx.run('hooks', async (): Promise<Arrival> => {
    const going = running.get(id) ?? runHooks(parts, order, isAgain);
    running.set(id, going);
    return { posted: await going, at: Date.now() };
  });
  running.delete(id);
  const isEnd = order.about.moment === 'session-end';
  if (arrival.posted.length === 0 && !isEnd) return;
  ctx.genericSend({
    service: 'Session',
    method: isEnd ? 'ended' : 'event',
    key: order.sessionId,
    parameter: arrival,
    inputSerde: json(),
  });
};
