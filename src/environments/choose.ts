import type { EnvironmentKind, EnvironmentName } from '../needs-recursive.js';

export type EnvironmentChoice =
  | {
      readonly status: 'chosen';
      readonly kind: EnvironmentKind;
      /** A sentence for the user where it is not what works best; null otherwise. */
      readonly note: string | null;
    }
  | { readonly status: 'missing'; readonly why: string };

/** One, and only that one: who asks for an environment by name does not get another. */
const takeWanted = async (kind: EnvironmentKind): Promise<EnvironmentChoice> => {
  const why = await kind.probe();
  if (why === null) return { status: 'chosen', kind, note: null };
  return { status: 'missing', why: `${kind.name} can't be used here: ${why}` };
};

/**
 * Chooses where the code of a recursive run runs: what the user names, or else `javascript` where it works and
 * `quickjs` where it does not, and says so. `python` only by name.
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
