/**
 * Version of the agent's machine. Journals, snapshots and calls of the engine name it.
 *
 * Raise it by hand when old events lead to other states than before: when states, events, ids, limits or texts in states
 * change. A test compares the table and the shapes with it, and golden journals of this version must lead to their states. Journals
 * without a version are of version 1.
 */
export const MACHINE_VERSION = 2;
