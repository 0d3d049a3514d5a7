import type { EnvironmentKind, EnvironmentName } from '../environment-and-journal-types.js';

export type EnvironmentChoice =
  | {
      readonly status: 'chosen';
      readonly kind: EnvironmentKind;
      /** A sentence for the user if a slower environment is used; null otherwise. */
      readonly note: string | null;
    }
  | { readonly status: 'missing'; readonly why: string };

/** Uses the named environment or none. */
const takeWanted = async (kind: EnvironmentKind): Promise<EnvironmentChoice> => {
  const why = await kind.probe();
  if (why === null) return { status: 'chosen', kind, note: null };
  return { status: 'missing', why: `${kind.name} can't be used here: ${why}` };
};

/**
 * Chooses the environment of a recursive run: the one that the user names, else `javascript`, else `quickjs` with a
 * note. `python` is used only by name.
 */
export const chooseEnvironment = async (
  wanted: EnvironmentName | null,
  kinds: Readonly<Record<EnvironmentName, EnvironmentKind>>,
): Promise<EnvironmentChoice> => {
  if (wanted !== null) return takeWanted(kinds[wanted]);
  const first = await takeWanted(kinds.javascript);
  if (first.status === 'chosen') return first;
  const second = await takeWanted(kinds.quickjs);
  if (second.status === 'missing') return { status: 'missing', why: `${first.why}; ${second.why}` };
  return { ...second, note: `code runs in QuickJS, which is slower: ${first.why}` };
};
