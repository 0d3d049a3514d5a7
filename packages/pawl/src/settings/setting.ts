/** One setting: its type, and the function that makes a row of the table. */

/** The form of a value. Numbers are positive. */
export type ValueKind =
  | { readonly type: 'words'; readonly words: readonly string[] }
  | { readonly type: 'number'; readonly whole: boolean }
  | { readonly type: 'switch' }
  | { readonly type: 'model' }
  | { readonly type: 'url' }
  | { readonly type: 'file' }
  /** Hosts separated by commas; a list in a file. */
  | { readonly type: 'hosts' }
  /** Names of environment variables, in the same form as hosts. */
  | { readonly type: 'names' };

/**
 * What a project's file may set. `no`: nothing. `free`: anything. `tighten`: only a stricter value, which is a lower
 * number, `false`, an earlier one of `words`, or fewer hosts. `raise`: only a higher number, for times that must not be
 * too short. `sameProvider`: only another model of the current provider.
 */
export type ProjectMay = 'no' | 'free' | 'tighten' | 'raise' | 'sameProvider';

export type Value = string | number | boolean;

export type Setting = {
  /** The key in config.toml. A dot leads into a table. */
  readonly key: string;
  readonly kind: ValueKind;
  /** Half a sentence for `--help`. */
  readonly help: string;
  readonly project: ProjectMay;
  /** Form for the flag parser; null if there is no flag. */
  readonly flag: string | null;
  /** Its environment variable. */
  readonly variable: string;
  /** Shown if no source sets a value. */
  readonly builtIn: string;
  /** The strictest built-in value, to compare a project's value with if no other source sets one. null: no limit. */
  readonly tightest: Value | null;
  /** The range of numbers for a project; null for any. */
  readonly projectRange: readonly [least: number, most: number] | null;
  /** A resumed session keeps its first value unless a flag changes it. */
  readonly frozen: boolean;
};

export const wholeNumber = { type: 'number', whole: true } as const;
export const anyNumber = { type: 'number', whole: false } as const;
export const onOrOff = { type: 'switch' } as const;
export const words = (...list: readonly string[]): ValueKind => ({ type: 'words', words: list });

type Row = Omit<Setting, 'variable' | 'frozen' | 'builtIn' | 'tightest' | 'projectRange'> & Partial<Setting>;

export const row = (given: Row): Setting => ({
  variable: `PAWL_${given.key.toUpperCase().replaceAll('.', '_')}`,
  frozen: true,
  builtIn: 'none',
  tightest: null,
  projectRange: null,
  ...given,
});
