import * as restate from '@restatedev/restate-sdk';
import { type Action, agentMachine } from 'pawl/engine';
import { json } from '../session/json.js';
import { type Head, type HooksOrder, LIVE, type Work } from '../session/session-records.js';
import { type StartedWork, workOf } from '../session/work-of-action.js';

/** Starts and stops the work of a session: calls of services that nobody waits for. */

export const toolsService = (node: string): string => `Tools-${node}`;

/** The signals to running work: end with your outcome, and: end at once, nobody waits for it any more. */
export const STOP = 'stop';
export const FORCE = 'force';

type Context = restate.ObjectContext;

const asJson = { inputSerde: json() } as const;

const send = (ctx: Context, head: Head, { workId, place, action }: StartedWork, isRecovered: boolean) => {
  const { seq, node } = head;
  const isBound = head.bound !== undefined;
  const machineVersion = agentMachine.version;
  const parameter: Work = {
    sessionId: ctx.key,
    machineVersion,
    seq,
    action,
    workId,
    node,
    isBound,
    isRecovered,
  };
  const service = place === 'model' && !isBound ? 'Model' : toolsService(node);
  return ctx.genericSend({ service, method: 'perform', parameter, ...asJson });
};

const signal = (ctx: Context, invocationId: string, name: string): void =>
  ctx.invocation(restate.InvocationIdParser.fromString(invocationId)).signal(name).resolve();

const schedule = (
  ctx: Context,
  { timerId, delayMs }: Extract<Action, { readonly type: 'ScheduleTimer' }>,
): void => {
  const parameter = { timerId };
  ctx.genericSend({
    service: 'Session',
    method: 'timer',
    key: ctx.key,
    parameter,
    delay: delayMs,
    ...asJson,
  });
};

/** Starts hooks of the user, if there are any for the moment. Nobody waits for them here. */
export const startHooks = (ctx: Context, { seq, node, bound }: Head, about: HooksOrder['about']): void => {
  if (bound?.moments.includes(about.moment) !== true && about.moment !== 'session-end') return;
  const parameter: HooksOrder = { sessionId: ctx.key, seq, node, about };
  ctx.genericSend({ service: toolsService(node), method: 'hooks', parameter, ...asJson });
};

const asksUser = ({ type }: Action): boolean => type === 'RequestApproval' || type === 'PromptForInput';

const isForced = (action: Action): boolean => action.type === 'CancelTools' && action.force;

/**
 * The first `recovered` actions go on with what an interruption has left. All work is begun before the first answer is
 * waited for, so that many calls cost one round trip. Returns whether the engine has answered.
 */
export const startWork = async (
  ctx: Context,
  head: Head,
  actions: readonly Action[],
  recovered: number,
): Promise<boolean> => {
  const started = new Map<string, Promise<string>>();
  for (const [index, action] of actions.entries()) {
    if (action.type === 'ScheduleTimer') schedule(ctx, action);
    if (asksUser(action)) startHooks(ctx, head, { moment: 'ask-user', action });
    for (const work of workOf(action)) {
      if (work.kind === 'start') {
        started.set(work.workId, send(ctx, head, work, index < recovered).invocationId);
      } else {
        const id = await (started.get(work.workId) ?? ctx.get<string>(LIVE + work.workId));
        if (id === null) continue;
        signal(ctx, id, STOP);
        if (isForced(action)) signal(ctx, id, FORCE);
      }
    }
  }
  for (const [workId, id] of started) ctx.set(LIVE + workId, await id);
  return started.size > 0;
};

/**
 * Withdraws all work, whether it runs or waits for a node that is gone: there it is not done when the node is back. What
 * runs is not told, so the session's end must follow.
 */
export const withdrawWork = async (ctx: Context): Promise<void> => {
  for (const name of await ctx.stateKeys()) {
    if (!name.startsWith(LIVE)) continue;
    const id = await ctx.get<string>(name);
    if (id !== null) ctx.invocation(restate.InvocationIdParser.fromString(id)).cancel();
    ctx.clear(name);
  }
};

/** The session is over: nothing of it may go on. */
export const stopAllWork = async (ctx: Context, head: Head): Promise<void> => {
  for (const name of await ctx.stateKeys()) {
    if (!name.startsWith(LIVE)) continue;
    const id = await ctx.get<string>(name);
    if (id !== null) for (const one of [STOP, FORCE]) signal(ctx, id, one);
    ctx.clear(name);
  }
  if (head.ending === true) return startHooks(ctx, head, { moment: 'session-end' });
  const parameter = { sessionId: ctx.key };
  ctx.genericSend({ service: toolsService(head.node), method: 'end', parameter, ...asJson });
};
