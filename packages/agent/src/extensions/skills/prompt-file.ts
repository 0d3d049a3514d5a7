/**
 * Skills and commands: Markdown files with instructions for the model. The types, and
 * `promptPlaces`, the folders in which they lie.
 */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { realPath } from '../../platform/files.js';
import { repositoryFolders } from '../../platform/trusted-folders.js';

/** A folder with skills or with commands. */
export type PromptPlace = {
  readonly folder: string;
  readonly owner: 'project' | 'user';
  readonly kind: 'skill' | 'command';
  /** Folders that links may lead to, as real paths. Null: any, since they are the user's. */
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
  /** The path before links were followed. */
  readonly file: string;
  readonly place: PromptPlace;
  /** Whether the model sees it. */
  readonly offered: 'toModel' | 'toUser';
};

/**
 * `replaced`: a file of the user is not used, since the project has one of the same name.
 * `skipped`: the file is not used. `note`: it is used, but something is odd.
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

export type PromptSources = {
  /** Real path. */
  readonly workspace: string;
  readonly home: string;
  /** Folder of the user's configuration. */
  readonly configFolder: string;
  /** Whether `.claude` is looked into, too. */
  readonly claude: 'yes' | 'no';
};

const KINDS = ['skill', 'command'] as const;

const folderNames = (
  { claude }: PromptSources,
  kind: PromptPlace['kind'],
  userFolder: string,
): readonly string[] => [
  path.join(userFolder, `${kind}s`),
  ...(kind === 'skill' ? ['.agents/skills'] : []),
  ...(claude === 'yes' ? [`.claude/${kind}s`] : []),
];

/**
 * The existing folders with skills and commands. Of equal names the first one counts: the
 * workspace, the folders above it up to the repository's, the user's. A folder of another user is
 * ignored, as for AGENTS.md.
 */
export const promptPlaces = (sources: PromptSources): readonly PromptPlace[] => {
  const { workspace, home, configFolder } = sources;
  const { folders } = repositoryFolders(workspace);
  const top = folders.at(-1) ?? workspace;
  const ofUser = KINDS.flatMap((kind): PromptPlace[] => {
    // The first is Pawl's own folder, in whose place the user has `configFolder`.
    const [, ...elsewhere] = folderNames(sources, kind, '');
    const all = [
      path.join(configFolder, `${kind}s`),
      ...elsewhere.map((name) => path.join(home, name)),
    ];
    return all.map((folder) => ({ folder, owner: 'user', kind, within: null }));
  }).filter(({ folder }) => existsSync(folder));
  const userFolders = ofUser.map(({ folder }) => realPath(folder)).filter((real) => real !== null);
  const ofProject = folders.flatMap((folder) =>
    KINDS.flatMap((kind) =>
      folderNames(sources, kind, '.pawl').map(
        (name): PromptPlace => ({
          folder: path.join(folder, name),
          owner: 'project',
          kind,
          within: [top, ...userFolders],
        }),
      ),
    ),
  );
  return [...ofProject.filter(({ folder }) => existsSync(folder)), ...ofUser];
};
