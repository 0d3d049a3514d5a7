/**
 * A mutant that no test catches, and why none can or should. It is known by its texts, wherever its
 * line moves.
 */
export type Survivor = {
  readonly file: string;
  readonly mutator: string;
  /** The original text and its replacement, with collapsed white space. */
  readonly was: string;
  readonly becomes: string;
  /** Number of equal mutants in one file. Default: 1. */
  readonly count?: number;
  readonly because: string;
};

type Row = readonly [mutator: string, was: string, becomes: string, count?: number];

/** Survivors of one file, by their reasons. */
export const aliveIn = (
  file: string,
  byReason: readonly (readonly [because: string, ...rows: readonly Row[]])[],
): readonly Survivor[] =>
  byReason.flatMap(([because, ...rows]) =>
    rows.map(([mutator, was, becomes, count = 1]) => ({
      file,
      mutator,
      was,
      becomes,
      count,
      because,
    })),
  );

/** Kinds of mutants, as Stryker calls them. */
export const CONDITION = 'ConditionalExpression';
export const EQUALITY = 'EqualityOperator';
export const LOGIC = 'LogicalOperator';
export const CHAIN = 'OptionalChaining';
export const LIST = 'ArrayDeclaration';
export const METHOD = 'MethodExpression';

/** Reasons that several have in common. */
export const KIND =
  'The compiler asks for the kind first. What is looked at next exists in this kind alone, and where it is missing the answer is the same.';
export const ASKED =
  'Asked before: by the guard of the row, by the caller, or by what stands beside it. The compiler does not know that.';
export const SHORTCUT = 'A shortcut: the long way comes to the same.';
export const NOBODYS = 'One thing more in a list, of a kind that nobody looks for.';
