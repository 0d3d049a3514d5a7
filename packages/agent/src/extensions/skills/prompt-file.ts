/** A skill or a command: a Markdown file with instructions for the model. */

export type PromptPlace = {
  readonly folder: string;
  readonly owner: 'project' | 'user';
  readonly kind: 'skill' | 'command';
  /** Folders that links may lead to, as real paths. Null: any, since the user has made them. */
  readonly within: readonly string[] | null;
};

export type PromptFile = {
  /** `skill`: the model and the user may load it. `command`: only the user. */
  readonly kind: 'skill' | 'command';
  /** Small letters, digits, `-` and `_`; in names of commands also `:` between folders. */
  readonly name: string;
  /** One line, perhaps empty for a command. */
  readonly description: string;
  /** The arguments that it takes, for help; perhaps empty. */
  readonly hint: string;
  /** The path by which it was found. */
  readonly file: string;
  readonly place: PromptPlace;
  /** Whether the model is told of it. */
  readonly offered: 'toModel' | 'toUser';
};

/**
 * `replaced`: a file of the user is not used, since the project has one of the same name. `skipped`: the file is not
 * used. `note`: it is used, but something is odd.
 */
export type PromptFault = {
  readonly file: string;
  readonly line: number | null;
  readonly text: string;
  readonly weight: 'replaced' | 'skipped' | 'note';
};

export type PromptFiles = {
  /** Sorted by name; names are unique. */
  readonly files: readonly PromptFile[];
  readonly faults: readonly PromptFault[];
};

/** `FILE:LINE: what is wrong`. */
export const faultText = ({ file, line, text }: PromptFault): string =>
  `${line === null ? file : `${file}:${line}`}: ${text}`;

/** A text from a file in one line: line breaks and control characters could imitate other text. */
export const inOneLine = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
