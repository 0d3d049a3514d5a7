/**
 * Finds uncommitted text of the user that a command has replaced or removed, so that the model can
 * tell the user how to get it back. Each text is reported once. A moved file counts as removed: its
 * old name is what the user knows. The last look: when the workspace was last scanned (looks.ts).
 */

import { hashBytes } from '../../platform/files.js';
import { repositoryFolders } from '../../platform/trusted-folders.js';
import { quoteWord } from '../../policy/approval-question.js';
import { readState } from './file-entries.js';
import type { KnownFiles } from './known-files.js';
import { isSameState, showName } from './manifest.js';
import type { CheckpointStore } from './store.js';
import type { WorkspaceLister } from './workspace-lister.js';

type TextSources = {
  readonly workspace: string;
  readonly known: KnownFiles;
  readonly store: CheckpointStore;
  readonly lister: WorkspaceLister;
};

export class LostText {
  readonly #sources: TextSources;
  /** Texts that were reported, by name and hash. */
  readonly #reported = new Set<string>();

  constructor(sources: TextSources) {
    this.#sources = sources;
  }

  /** Which of these files held uncommitted text at the last look that is gone now. */
  async find(names: readonly string[]): Promise<readonly string[]> {
    const { workspace, known, lister } = this.#sources;
    if (repositoryFolders(workspace).top === null) return [];
    const ofUser = names.filter((name) => known.get(name)?.isUsers === true);
    const gone = new Map<string, readonly string[]>();
    for (const name of known.differences(ofUser).keys()) {
      const lines = await this.#goneLines(name);
      if (lines.length > 0) gone.set(name, lines);
    }
    if (gone.size === 0) return [];
    const committed = await lister.readCommitted([...gone.keys()]);
    if (committed === null) return []; // there is no commit to compare with
    const lost: string[] = [];
    for (const [name, lines] of gone) {
      const inCommit = new Set(committed.get(name)?.toString('latin1').split('\n'));
      if (lines.every((line) => inCommit.has(line))) continue;
      this.#reported.add(this.#key(name));
      lost.push(name);
    }
    return lost;
  }

  #key(name: string): string {
    const state = this.#sources.known.state(name);
    return `${name} ${state.kind === 'file' ? state.sha256 : ''}`;
  }

  /** Lines that the file held at the last look and that are gone. */
  async #goneLines(name: string): Promise<readonly string[]> {
    const { workspace, known, store } = this.#sources;
    const before = known.state(name);
    if (before.kind !== 'file' || this.#reported.has(this.#key(name))) return [];
    let now = '';
    const state = await readState(workspace, name, (bytes) => {
      now = bytes.toString('latin1'); // the text may have any encoding
      return hashBytes(bytes);
    });
    if (isSameState(state, before) || state.kind === 'notKept') return [];
    const text = (await store.get(before.sha256))?.toString('latin1') ?? '';
    const present = new Set(now.split('\n'));
    return text.split('\n').filter((line) => line.trim() !== '' && !present.has(line));
  }
}

/** What the model is told. `title`: of the command. */
export const describeLost = (
  names: readonly string[],
  title: string,
  sessionId: string,
): string => {
  const [first = '', ...others] = names;
  const back =
    others.length === 0
      ? 'brings it back'
      : 'brings back the first; the same with its name brings back each of the others';
  const shown = names.slice(0, 5).map(showName).join(', ');
  return (
    `Uncommitted text of the user in ${shown}${names.length > 5 ? ', …' : ''} was replaced or ` +
    `removed while \`${title}\` ran. It is stored: pawl checkpoints ` +
    `${sessionId} --restore ${quoteWord(showName(first))} ${back}`
  );
};
