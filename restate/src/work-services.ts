/**
 * The services that do the work of sessions: `Model` on any node, `Tools-<node>` where a workspace
 * is.
 *
 * 1. The work itself runs inside one recorded step, whose result is sent to the session as events.
 * 2. The process that begins it is recorded first. If another one finds the step unfinished, the
 *    work was interrupted, and is found or given up instead of being repeated (SessionWorker).
 * 3. If only the connection to the engine broke, the work goes on here, and the repeated call joins
 *    it. A result that the engine has not taken is kept; once it is dropped, the work counts as
 *    interrupted.
 */

import { randomUUID } from 'node:crypto';
import * as restate from '@restatedev/restate-sdk';
import {
  agentMachine,
  attempt,
  beginHeader,
  checkSettings,
  freezePrompt,
  type Judgement,
  type NewSession,
  type Posted,
  type SessionDependencies,
  type StoppedCall,
} from 'pawl/engine';
import type { DecideParts, DecideRequest } from './decide.js';
import { deciding, FORCE, STOP, toolsService } from './session-object.js';
import {
  type Arrival,
  type BegunSession,
  type Bound,
  type HooksRequest,
  jsonCall,
  type Work,
} from './session-records.js';
import { refuseNewer } from './session-states.js';
import {
  RESULT_KEPT_MS,
  type Workers,
  type WorkerWorld,
  type WorkResult,
} from './session-worker.js';
import { endedWork, failedWork } from './started-work.js';
import { RETRYING } from './stored-objects.js';

type ServiceParts = { readonly workers: Workers; readonly world: WorkerWorld };

/** Longer than any work: the engine would end a silent call and start it again. */
const DAY_MS = 24 * 60 * 60 * 1000;
const OPTIONS = {
  ...RETRYING,
  inactivityTimeout: DAY_MS,
  abortTimeout: DAY_MS,
  journalRetention: 0,
} as const;

/** The parts that must run where the workspace is. Undefined: models may be called on any node. */
const findBound = ({
  userHooks = null,
  isBound = false,
}: Pick<SessionDependencies, 'userHooks' | 'isBound'>): Bound | undefined => {
  if (userHooks === null) return isBound ? { moments: [] } : undefined;
  const moments = (['session-start', 'ask-user', 'session-end'] as const).filter((moment) =>
    userHooks.wants(moment),
  );
  return { moments };
};

/**
 * The failure of a request that must be made again where the session's hooks run; null: the work is
 * there already.
 */
const againOnItsNode = ({ action, node }: Work): readonly Posted[] | null => {
  if (action.type !== 'SendLlmRequest' && action.type !== 'StartCompaction') return null;
  const message =
    'the session has hooks or servers since it was created. Its models are called on its node ' +
    `${node} from now on`;
  return failedWork(action, { message, jitter: 0 });
};

const doWork = async (
  { workers, world }: ServiceParts,
  id: string,
  work: Work,
  isAgain: boolean,
): Promise<WorkResult> => {
  const done = await attempt(async () => {
    const worker = await workers.of(work.sessionId, work.seq, work.node);
    const bound = findBound(worker.equipment);
    if (!work.isBound && bound !== undefined) {
      await world.store.call({
        service: 'Session',
        handler: 'bind',
        key: work.sessionId,
        parameter: bound,
      });
      const posted = againOnItsNode(work);
      if (posted !== null) return { posted, at: Date.now(), isOpen: false };
    }
    // the session is taken over now, and its turn ends with that
    if (await isForeign(world, work))
      return { posted: [], at: Date.now(), machineVersion: agentMachine.version, isOpen: false };
    return (await worker.run(id, work, isAgain)).result;
  });
  if (done.kind === 'done') return done.value;
  world.report(done.fault);
  const { message: why } = done.fault;
  const fault = isAgain
    ? ({
        status: 'lost',
        message: `it may have been begun, and what became of it is not known: ${why}`,
      } as const)
    : { message: `it could not be begun: ${why}` };
  return { posted: failedWork(work.action, fault), at: Date.now(), isOpen: false };
};

/**
 * Tells the session, in the terms of the version that asked for the work. `isEnd`: the work ends
 * with it, also if no event says so.
 */
const sendTo = (
  ctx: restate.Context,
  { sessionId, workId, machineVersion = 1 }: Work,
  arrival: Arrival,
  isEnd: boolean,
): void => {
  const isSaid = !isEnd || arrival.posted.some((event) => endedWork(event) === workId);
  const ended = isSaid ? {} : { ended: { workId, invocationId: ctx.request().id } };
  const parameter: Arrival = { machineVersion, ...arrival, ...ended };
  ctx.genericSend(jsonCall('Session', 'event', parameter, sessionId));
};

/**
 * Whether the session is of an earlier machine and this one does not follow its entries, so that
 * the conversation for a model can't be made here.
 */
const isForeign = async (
  { store, states }: WorkerWorld,
  { sessionId, machineVersion = 1, action }: Work,
): Promise<boolean> => {
  if (machineVersion === agentMachine.version) return false;
  if (action.type !== 'SendLlmRequest' && action.type !== 'StartCompaction') return false;
  const { seq } = await store.session(sessionId);
  return (await states.exact(sessionId, seq)).upgrade?.session !== undefined;
};

type Signal = { readonly signalled: string };

const perform = async (ctx: restate.Context, parts: ServiceParts, work: Work): Promise<void> => {
  const { id } = ctx.request();
  const { sessionId, machineVersion = 1 } = work;
  refuseNewer(sessionId, machineVersion);
  const isAgain = (await isBegunBefore(ctx, parts.workers)) || work.isRecovered;
  const working = ctx.run('work', () => doWork(parts, id, work, isAgain));
  const signals = [STOP, FORCE].map((name) =>
    ctx.signal<unknown>(name).map((): Signal => ({ signalled: name })),
  );
  let first: WorkResult | Signal = await restate.RestatePromise.race([working, ...signals]);
  if ('signalled' in first) {
    parts.workers.stopWork(sessionId, id, first.signalled === FORCE);
    const [, forced] = signals;
    const rest = first.signalled === FORCE || forced === undefined ? [working] : [working, forced];
    first = await restate.RestatePromise.race(rest);
    if ('signalled' in first) {
      parts.workers.stopWork(sessionId, id, true);
      first = await working;
    }
  }
  const { isOpen, ...arrival } = first;
  sendTo(ctx, work, arrival, true);
  if (isOpen) {
    const late = await ctx.run('late usage', async () => ({
      posted: (await parts.workers.known(sessionId)?.find(id)?.late()) ?? [],
      at: Date.now(),
    }));
    if (late.posted.length > 0) sendTo(ctx, work, late, false);
  }
  parts.workers.forget(sessionId, id);
};

export const modelService = (parts: ServiceParts) =>
  restate.service({
    name: 'Model',
    options: OPTIONS,
    handlers: { perform: (ctx: restate.Context, work: Work) => perform(ctx, parts, work) },
  });

type BeginRequest = NewSession & { readonly sessionId: string };
type JudgeRequest = {
  readonly sessionId: string;
  readonly tool: string;
  readonly input: Parameters<import('pawl/engine').Tool['judge']>[0];
  readonly workspace: string;
};

/** The header of a new session. Its tools and prices are those of this node. */
const begin = async (
  { world }: ServiceParts,
  { settings, instructions, startedBy, sessionId }: BeginRequest,
): Promise<BegunSession> => {
  checkSettings(settings);
  const started = startedBy === undefined ? {} : { startedBy };
  const needs = await world.equip({ settings, sessionId, isNew: true, isHere: true, ...started });
  const session = {
    sessionId,
    createdAt: Date.now(),
    settings,
    startedBy,
    machine: agentMachine.fingerprint,
    prices: needs.model(settings.model).facts.prices,
  };
  const prompt = freezePrompt(instructions, needs.tools, settings);
  await needs.close?.(false);
  const stored = await attempt(() => beginHeader(session, prompt, world.blobs));
  // no fault of the request: its sender may try again
  if (stored.kind === 'fault') throw new restate.TerminalError(stored.fault.message);
  const bound = findBound(needs);
  const versioned = { ...stored.value, machineVersion: agentMachine.version };
  return { header: versioned, ...(bound === undefined ? {} : { bound }) };
};

const judge = async (
  { workers, world }: ServiceParts,
  { sessionId, tool, input, workspace }: JudgeRequest,
): Promise<Judgement> => {
  const { seq, node } = await world.store.session(sessionId);
  if (node !== world.node) throw new Error(`the session was moved to the node ${node}`);
  const { equipment } = await workers.of(sessionId, seq, node);
  const known = equipment.tools.get(tool);
  if (known === undefined) throw new restate.TerminalError(`there is no tool ${tool} on this node`);
  return known.judge(input, workspace);
};

/** Tells the caller what went wrong instead of trying again for ever. */
const answer = async <T>(work: () => Promise<T>): Promise<T> => {
  const done = await attempt(work);
  if (done.kind === 'done') return done.value;
  if (done.fault instanceof restate.TerminalError) throw done.fault;
  throw new restate.TerminalError(done.fault.message, { errorCode: 400 });
};

export const createToolsService = (parts: ServiceParts & { readonly decider: DecideParts }) =>
  restate.service({
    name: toolsService(parts.world.node),
    options: OPTIONS,
    handlers: {
      perform: (ctx: restate.Context, work: Work) => perform(ctx, parts, work),
      // Recorded, since another attempt at the same call must return the same: a header has its
      // time in it.
      begin: (ctx: restate.Context, request: BeginRequest) =>
        ctx.run('begin', () => answer(() => begin(parts, request))),
      judge: (ctx: restate.Context, request: JudgeRequest) =>
        ctx.run('judge', () => answer(() => judge(parts, request))),
      ping: async () => true,
      /** For nodes of another version. */
      decide: async (_ctx: restate.Context, request: DecideRequest) => {
        const { decision, change } = await deciding(parts.decider, request);
        if (change !== null) parts.decider.applied?.(request.sessionId, change);
        return decision;
      },
      stop: (ctx: restate.Context, { sessionId }: { readonly sessionId: string }) =>
        ctx.run(
          'stop',
          async (): Promise<readonly StoppedCall[]> =>
            (await parts.workers.known(sessionId)?.stopCalls()) ?? [],
        ),
      hooks: (ctx: restate.Context, request: HooksRequest) => performHooks(ctx, parts, request),
      end: async (_ctx: restate.Context, { sessionId }: { readonly sessionId: string }) => {
        await parts.workers.end(sessionId);
      },
    },
  });

type HooksParts = { readonly workers: Workers; readonly world: WorkerWorld };

const interrupted = ({ about: { moment } }: HooksRequest): Posted => ({
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
  request: HooksRequest,
  isAgain: boolean,
): Promise<readonly Posted[]> => {
  const { sessionId, seq, node, about } = request;
  if (isAgain) {
    if (about.moment === 'session-end') await workers.end(sessionId);
    return [interrupted(request)];
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

/**
 * Hooks of the user that are no part of other work: about the start and the end of a session, and
 * about questions to the user. They run in one recorded step, whose result is what they say. If
 * their process dies, they are not run again: their session gets a notice.
 */
const performHooks = async (
  ctx: restate.Context,
  parts: HooksParts,
  request: HooksRequest,
): Promise<void> => {
  const { id } = ctx.request();
  const isAgain = await isBegunBefore(ctx, parts.workers);
  const arrival = await ctx.run('hooks', async (): Promise<Arrival> => {
    const going = running.get(id) ?? runHooks(parts, request, isAgain);
    running.set(id, going);
    return { posted: await going, at: Date.now() };
  });
  running.delete(id);
  parts.workers.forget(request.sessionId, id);
  const isEnd = request.about.moment === 'session-end';
  if (arrival.posted.length === 0 && !isEnd) return;
  ctx.genericSend(jsonCall('Session', isEnd ? 'ended' : 'event', arrival, request.sessionId));
};

/** This process. */
const PROCESS_ID = randomUUID();

/**
 * Records the process that begins a call, before its work. Returns whether the work was begun
 * before and this process can't join it: another process began it, it has ended here, or it began
 * so long ago that this process has forgotten it.
 */
const isBegunBefore = async (ctx: restate.Context, workers: Workers): Promise<boolean> => {
  const born = await ctx.run('born in', () => ({ processId: PROCESS_ID, at: performance.now() }));
  const isElsewhere = born.processId !== PROCESS_ID;
  const { id } = ctx.request();
  return isElsewhere || workers.hasEnded(id) || performance.now() - born.at >= RESULT_KEPT_MS;
};
