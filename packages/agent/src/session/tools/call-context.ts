import type { JudgedCall } from '../../machine/call.js';
import { remainingIn } from '../../machine/moves/budget.js';
import type { SessionData } from '../../machine/state.js';
import { levelOfCall } from '../../policy/call-sandbox-level.js';
import { decide } from '../../policy/policy.js';
import type { Blobs } from '../../ports/journal.js';
import type { FileMemory, ToolContext } from '../../ports/tool.js';
import type { Equipment } from '../dependency-types.js';
import type { Joiner } from '../model/join-deltas.js';
import type { DeadlineWatch } from './watch-deadline.js';

/** What a tool gets for one call. */

export type CallInContext = {
  readonly batchId: string;
  readonly call: JudgedCall;
  readonly signal: AbortController;
  readonly force: AbortController;
  readonly joiner: Joiner;
  /** By real path: what this call read or wrote. */
  readonly seen: Map<string, string>;
  /** True if the machine no longer needs the outcome. */
  readonly forgotten: boolean;
  readonly deadline: DeadlineWatch;
};

/** The session's memory; what is set in it is noted for the end of the call. */
export const filesOf = ({ seen }: Pick<CallInContext, 'seen'>, files: FileMemory): FileMemory => ({
  get: (path) => files.get(path),
  set: (path, sha256) => {
    if (typeof path !== 'string' || typeof sha256 !== 'string')
      throw new TypeError('files.set takes the real path of a file and the sha256 of its bytes, as texts');
    files.set(path, sha256);
    seen.set(path, sha256);
  },
});

export const keyOf = (batchId: string, callId: string): string => `${batchId} ${callId}`;

export const contextOf = (
  run: CallInContext,
  { files, jobs, sentCalls }: Equipment,
  session: () => SessionData,
  blobs: Blobs,
): ToolContext => {
  const { batchId, call, signal, force, joiner } = run;
  const { callId, facts } = call;
  const { settings, grants } = session();
  const { workspace, sandbox } = settings;
  const level = levelOfCall(sandbox, facts.needs);
  const isUnasked = (): boolean => decide(settings, grants, call).decision === 'allow';
  const widened = level === levelOfCall(sandbox, undefined) ? null : isUnasked() ? 'unasked' : 'byUser';
  return {
    workspace,
    batchId,
    callId,
    blobs,
    jobs,
    sandbox: level,
    ...(widened === null ? {} : { widened }),
    paths: facts.paths,
    hosts: facts.hosts,
    signal: signal.signal,
    force: force.signal,
    files: filesOf(run, files),
    left: () => remainingIn(session()),
    progress: (text) => {
      if (!run.forgotten && typeof text === 'string') joiner.add('progress', text);
    },
    sending: () => sentCalls?.record(workspace, keyOf(batchId, callId)),
    findSent: async () => (await sentCalls?.find(workspace, keyOf(batchId, callId))) ?? 'unknown',
    whileAsking: (asked) => asked.finally(run.deadline.pause()),
  };
};
