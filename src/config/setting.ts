/** One setting as data: its type, and how a row of the table is made. */

/** The form of a value; numbers are above zero. */
export type ValueKind =
  | { readonly type: 'words'; readonly words: readonly string[] }
  | { readonly type: 'number'; readonly whole: boolean }
  | { readonly type: 'switch' }
  | { readonly type: 'model' }
  | { readonly type: 'url' }
  | { readonly type: 'file' }
  /** Hosts with commas between them; a list in a file. */
  | { readonly type: 'hosts' }
  /** Names of environment variables, in the same form as hosts. */
  | { readonly type: 'names' };

/**
 * What a project's file may set. `no`: nothing. `free`: anything. `tighten`: a tighter value, which is a lower number,
 * `false`, an earlier one of `words`, fewer hosts. `raise`: a higher number, for times that must not be too short.
 * `sameProvider`: another model of the provider that is used anyway.
 */
export type ProjectMay = 'no' | 'free' | 'tighten' | 'raise' | 'sameProvider';

export type Value = string | number | boolean;

export type Setting = {
  /** The key in config.toml; a dot leads into a table. */
  readonly key: string;
  readonly kind: ValueKind;
  /** Half a sentence for `--help`. */
  readonly help: string;
  readonly project: ProjectMay;
  /** Form for the flag parser; null if no flag sets it. */
  readonly flag: string | null;
  /** Its environment variable. */
  readonly variable: string;
  /** Shown if nothing sets it. */
  readonly builtIn: string;
  /** Compared with a project's value if nothing else sets it: the tightest built-in value; null is no limit. */
  readonly tightest: Value | null;
  /** The lowest and the highest number that a project may choose; null: any. */
  readonly projectRange: readonly [least: number, most: number] | null;
  /** True if a resumed session keeps its first value, unless a flag changes it. */
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
