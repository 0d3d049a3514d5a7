import type { Look, Stamp } from './look.js';

/**
 * Whose the uncommitted changes of a file are.
 *
 * 1. A file is the agent's if it was as committed (or not there) when a call of the agent first changed it. It stops
 *    being so when it is as committed again, or when it was changed between the calls: then somebody else had a hand
 *    in it.
 * 2. Of the others only those are remembered that the agent changed too: they are left alone, and that is said once.
 * 3. In doubt a file is not the agent's.
 *
 * Paths are relative to the top of the repository.
 */
export type Touched = {
  /** A call changed the file; `before` is the last look before it. */
  touch(name: string, before: Look): void;
  /** A formatter of ours changed the file in this batch; `now` is a look after it. */
  format(name: string, now: Look): void;
  /** A call changed the file in a way that leaves open whose the change is. */
  doubt(name: string, why: string): void;
  /** A call changed a file that is not this repository's to commit. */
  exclude(name: string, why: string): void;
  /** Compares with a look before which no call of ours ran: what changed since was changed by somebody else. */
  notice(now: Look): void;
  /** Takes the files as they are now for what the agent left. */
  settle(now: Look): void;
  /** The agent's files. */
  ours(): readonly string[];
  /** Left alone, and not yet said. */
  tellLeft(): readonly { readonly name: string; readonly why: string }[];
  /** These files are committed. */
  commit(names: readonly string[]): void;
  forget(): void;
};

const NOT_OURS = 'it had other uncommitted changes before the agent changed it';
const SOMEBODY_ELSE = 'somebody else changed it too';

export const createTouched = (): Touched => {
  const ours = new Map<string, Stamp | null>();
  const left = new Map<string, { readonly why: string; told: boolean }>();
  const excluded = new Map<string, { readonly why: string; told: boolean }>();
  const leave = (name: string, why: string): void => {
    ours.delete(name);
    if (!left.has(name)) left.set(name, { why, told: false });
  };
  /** What is as committed again is nobody's. */
  const dropClean = ({ changed }: Look): void => {
    for (const names of [ours, left])
      for (const name of names.keys()) if (!changed.has(name)) names.delete(name);
  };
  return {
    touch(name, before) {
      if (ours.has(name) || left.has(name)) return;
      if (before.changed.has(name)) leave(name, NOT_OURS);
      else ours.set(name, null);
    },
    format(name, now) {
      if (left.has(name)) return;
      ours.set(name, now.changed.get(name)?.stamp ?? null);
    },
    doubt(name, why) {
      if (!ours.has(name)) leave(name, why);
    },
    notice(now) {
      dropClean(now);
      for (const [name, stamp] of ours) {
        if (stamp !== now.changed.get(name)?.stamp) leave(name, SOMEBODY_ELSE);
      }
    },
    settle(now) {
      dropClean(now);
      for (const name of ours.keys()) ours.set(name, now.changed.get(name)?.stamp ?? null);
    },
    ours: () => [...ours.keys()],
    exclude(name, why) {
      if (!excluded.has(name)) excluded.set(name, { why, told: false });
    },
    tellLeft: () =>
      [...left, ...excluded].flatMap(([name, entry]) => {
        if (entry.told) return [];
        entry.told = true;
        return [{ name, why: entry.why }];
      }),
    commit(names) {
      for (const name of names) ours.delete(name);
    },
    forget() {
      ours.clear();
      left.clear();
      excluded.clear();
    },
  };
};
