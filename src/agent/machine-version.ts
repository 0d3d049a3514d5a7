/**
 * Version of the agent's machine. Journals, snapshots and calls of the engine name it.
 *
 * Raise it by hand when old events lead to other states than before: when states, events, ids, limits or texts in states
 * change. `test/agent/machine-version.test.ts` compares the table, the shapes and the golden journals with it. Journals
 * without a version are of version 1.
 */
export const MACHINE_VERSION = 2;
