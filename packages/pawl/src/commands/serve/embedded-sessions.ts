import { systemClock } from '@pawl/agent/session/clock';
import type { LocalRuntime } from '@pawl/agent/session/in-process-runtime';
import { newSessionId } from '@pawl/agent/session/new-session-id';
import type { NodeRuntime } from '@pawl/serve/adapt-runtime-to-node';
import type { RunFlags } from '../../flags.js';
import { type Opened, openFromFlags } from '../../sessions/open-session.js';
import { storedJournals } from '../../sessions/stored-sessions.js';
import type { Warn } from '../../settings/connect-model.js';
import { blamingClient, flagsToReopen, wishedFlags } from './client-session-flags.js';

/**
 * The sessions of a node without an engine: in this process, with their journals on disk. Each is opened as every
 * command opens one, from flags and configuration, with the same policy and sandbox.
 */

export const embeddedSessions = (flags: RunFlags, warn: Warn): NodeRuntime => {
  const runtimes = new Map<string, LocalRuntime>();
  const journals = storedJournals();
  const keep = ({ session, runtime }: Opened): string => {
    runtimes.set(session.id, runtime);
    const forget = (): void => void runtimes.delete(session.id);
    session.ended.then(forget, forget);
    return session.id;
  };
  const find = (sessionId: string): LocalRuntime => {
    const runtime = runtimes.get(sessionId);
    if (runtime === undefined) throw new Error(`session ${sessionId} is not open on this node`);
    return runtime;
  };
  const open = async (sessionId: string): Promise<void> => {
    if (runtimes.has(sessionId)) return;
    keep(await openFromFlags(flagsToReopen(flags), 'node', { warn, resume: sessionId }));
  };
  return {
    endsWithNode: true,
    create: (wanted) =>
      blamingClient(async () =>
        keep(await openFromFlags(await wishedFlags(flags, wanted), 'node', { warn })),
      ),
    open,
    send: async (sessionId, input) => find(sessionId).send(sessionId, input),
    read: (sessionId, from = 1) =>
      runtimes.get(sessionId)?.read(sessionId, from) ?? journals.read(sessionId, from),
    watch: (sessionId, watcher) => find(sessionId).watch(sessionId, watcher),
    state: async (sessionId) => runtimes.get(sessionId)?.state(sessionId) ?? journals.peek(sessionId),
    fork: async (sessionId, seq) => {
      const runtime = runtimes.get(sessionId);
      if (runtime !== undefined) return runtime.fork(sessionId, seq);
      const forked = newSessionId(systemClock);
      await journals.fork(sessionId, seq, forked, systemClock.now());
      return forked;
    },
    list: () => journals.list(),
    close: async (sessionId) => find(sessionId).close(sessionId),
  };
};
