import { mutableStateMachine, stateMachine } from '../src/builder/builder.js';

/** What the tests of built machines share: a door, and a context that remembers what was called. */

export type Place = 'Closed' | 'Open' | 'Locked' | 'Broken';
export type Push =
  | { readonly type: 'Push'; readonly force: number }
  | { readonly type: 'Pull' }
  | { readonly type: 'Turn'; readonly key: string }
  | { readonly type: 'Kick' };

export const push = (force = 1): Push => ({ type: 'Push', force });
export const pull: Push = { type: 'Pull' };
export const turn = (key = 'gold'): Push => ({ type: 'Turn', key });
export const kick: Push = { type: 'Kick' };

/** Replaced as a whole by each callback. */
export type Notes = { readonly said: readonly string[]; readonly count: number };
export const notes: Notes = Object.freeze({ said: Object.freeze([]), count: 0 });
export const say =
  (text: string) =>
  (...input: readonly unknown[]): Notes => {
    // Callbacks of states get the context alone, those of transitions get it second.
    const { said, count } = (input.length === 1 ? input[0] : input[1]) as Notes;
    return { said: [...said, text], count: count + 1 };
  };

/** Changed in place by each callback. */
export type Pad = { readonly said: string[] };
export const write =
  (text: string) =>
  (...input: readonly unknown[]): void => {
    // As in `say`.
    const { said } = (input.length === 1 ? input[0] : input[1]) as Pad;
    said.push(text);
  };

export const door = () => stateMachine<Place, Push, Notes>();
export const mutableDoor = () => mutableStateMachine<Place, Push, Pad>();

/** Gives the events one after the other, then nothing; remembers where it was asked. */
export const listed = (...events: readonly Push[]) => {
  const asked: Place[] = [];
  let next = 0;
  return {
    asked,
    source: (state: Place): Push | undefined => {
      asked.push(state);
      next += 1;
      return events[next - 1];
    },
  };
};
