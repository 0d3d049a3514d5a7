/** The part of the package js-yaml that Pawl uses: the package brings no types. */
declare module 'js-yaml' {
  interface Schema {
    extend(types: readonly Type[]): Schema;
  }

  /** Knows only texts, lists and maps: no dates, numbers or types of JavaScript. */
  export const FAILSAFE_SCHEMA: Schema;
  /** Knows what YAML 1.2 has, and dates. */
  export const DEFAULT_SCHEMA: Schema;

  type Kind = 'scalar' | 'sequence' | 'mapping';

  /** How values with a tag are read. `multi`: for all tags that begin with `tag`. */
  export class Type {
    constructor(tag: string, options: { readonly kind: Kind; readonly multi?: boolean });
  }

  export class YAMLException extends Error {
    /** What is wrong, without a piece of the text. */
    readonly reason: string;
    /** Counted from 0. Absent for some faults. */
    readonly mark?: { readonly line: number };
  }

  export const load: (text: string, options: { readonly schema: Schema }) => unknown;
  export const loadAll: (
    text: string,
    take: (document: unknown) => void,
    options: { readonly schema: Schema },
  ) => void;
}
