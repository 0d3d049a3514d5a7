import { existsSync } from 'node:fs';
import path from 'node:path';
import { realPathOf } from '../../platform/files/entry-status.js';
import { repositoryFolders } from '../../platform/files/repository-folders.js';
import type { PromptPlace } from './prompt-file.js';

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

const namesOf = ({ claude }: PromptSources, kind: PromptPlace['kind'], own: string): readonly string[] => [
  path.join(own, `${kind}s`),
  ...(kind === 'skill' ? ['.agents/skills'] : []),
  ...(claude === 'yes' ? [`.claude/${kind}s`] : []),
];

/**
 * The existing folders with skills and commands. Of equal names the first one counts: the workspace, the folders above
 * it up to the repository's, the user's. A folder of another user is left out, as for AGENTS.md.
 */
export const promptPlaces = (sources: PromptSources): readonly PromptPlace[] => {
  const { workspace, home, configFolder } = sources;
  const { folders } = repositoryFolders(workspace);
  const top = folders.at(-1) ?? workspace;
  const ofUser = KINDS.flatMap((kind): PromptPlace[] => {
    const [, ...elsewhere] = namesOf(sources, kind, '');
    const all = [path.join(configFolder, `${kind}s`), ...elsewhere.map((name) => path.join(home, name))];
    return all.map((folder) => ({ folder, owner: 'user', kind, within: null }));
  }).filter(({ folder }) => existsSync(folder));
  const own = ofUser.map(({ folder }) => realPathOf(folder)).filter((real) => real !== null);
  const ofProject = folders.flatMap((folder) =>
    KINDS.flatMap((kind) =>
      namesOf(sources, kind, '.pawl').map(
        (name): PromptPlace => ({
          folder: path.join(folder, name),
          owner: 'project',
          kind,
          within: [top, ...own],
        }),
      ),
    ),
  );
  return [...ofProject.filter(({ folder }) => existsSync(folder)), ...ofUser];
};
