/** The part of the package js-yaml that read-skill.ts uses. */
declare module 'js-yaml' {
  /** Knows only texts, lists and maps: no dates, numbers or types of JavaScript. */
  export const FAILSAFE_SCHEMA: object;

  export class YAMLException extends Error {
    /** What is wrong, without a piece of the text. */
    readonly reason: string;
    /** Counted from 0. Absent for some faults. */
    readonly mark?: { readonly line: number };
  }

  export const load: (text: string, options: { readonly schema: object }) => unknown;
}
