/**
 * The tool `list`: a folder as a tree, nearest folders first, until depth or size is used up.
 * Omitted entries are counted.
 */

import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import * as v from 'valibot';
import type { HeldFolder } from '../platform/files.js';
import { plural } from '../platform/text.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import {
  defineTool,
  FOLDER_NAMES,
  type ForeignFields,
  filledText,
  wholeNumber,
} from './define-tool.js';
import { failed, stopped } from './file-change.js';
import { listFiles, withFolder } from './file-search.js';
import { findAllowed, judgePath } from './files.js';
import { noFolder } from './similar-names.js';

const DEPTH_DEFAULT = 3;
const DEPTH_MAX = 10;
const ENTRIES_DEFAULT = 300;
const ENTRIES_MAX = 1_000;
/** Entries shown per folder, so that a large folder leaves room for its neighbours. */
const PER_FOLDER_MAX = 100;
/** Below the listed folder, more files than these with one extension are shown by a few of them. */
const ALIKE_MAX = 20;
const ALIKE_SHOWN = 5;
/** After so many files counting stops. */
const COUNTED_MAX = 200_000;

const schema = v.strictObject({
  path: v.exactOptional(filledText('Folder; default: the workspace.')),
  depth: v.exactOptional(wholeNumber(1, DEPTH_MAX, `Default ${DEPTH_DEFAULT}.`)),
  limit: v.exactOptional(wholeNumber(1, ENTRIES_MAX, `Default ${ENTRIES_DEFAULT}.`)),
});
type Input = v.InferOutput<typeof schema>;

const FOREIGN: ForeignFields = {
  ignore: { same: 'any' },
  ignore_globs: { same: 'any' },
  file_filtering_options: { same: 'any' },
  respect_git_ignore: { same: 'any' },
  show_hidden: { same: 'any' },
  all: { same: 'any' },
  recursive: { same: 'any' },
  offset: { same: [0, 1], instead: 'list a folder below, or raise limit' },
};

/**
 * By path relative to the listed folder: for a folder the number of files in it and below that git
 * does not ignore, for such a file 1. `areAll`: no folder was left out, and counting has ended.
 */
type FileCounts = { readonly files: ReadonlyMap<string, number>; readonly areAll: boolean };

const countFiles = async (folder: HeldFolder, signal: AbortSignal): Promise<FileCounts> => {
  const counts = new Map<string, number>();
  let files = 0;
  const take = (file: string): 'more' | 'enough' => {
    // the file itself, and each folder that it is in
    for (let place = file; place !== '.'; place = path.dirname(place))
      counts.set(place, (counts.get(place) ?? 0) + 1);
    files += 1;
    return files < COUNTED_MAX ? 'more' : 'enough';
  };
  const { more, isPartial } = await listFiles({ folder, signal, take });
  return { files: counts, areAll: !more && !isPartial };
};

/** An entry of the tree. */
type Node = {
  readonly name: string;
  readonly kind: 'folder' | 'file' | 'link' | 'other';
  /** Path relative to the listed folder. */
  readonly place: string;
  children: Node[];
  /** Number of entries that are not among the children. */
  omitted: number;
  /** Why a folder is shown without its entries; `no`: they are shown. */
  closed: 'no' | 'depth' | 'uncounted' | 'unreadable';
};

const entryKind = (entry: Dirent): Node['kind'] => {
  if (entry.isDirectory()) return 'folder';
  if (entry.isSymbolicLink()) return 'link';
  return entry.isFile() ? 'file' : 'other';
};

/** Folders first, then by name. */
const compareNodes = (a: Node, b: Node): number =>
  Number(b.kind === 'folder') - Number(a.kind === 'folder') || (a.name < b.name ? -1 : 1);

/** The entries of a folder; null if it can't be read. */
const readNodes = async (top: string, node: Node): Promise<readonly Node[] | null> => {
  const entries = await withFolder(path.join(top, node.place), (folder) =>
    readdir(folder.reach, { withFileTypes: true }).catch(() => null),
  );
  if (entries === null) return null; // the caller marks the folder as unreadable
  return entries
    .filter(({ name }) => name !== '.git')
    .map((entry): Node => {
      const place = path.join(node.place, entry.name);
      return {
        name: entry.name,
        kind: entryKind(entry),
        place,
        children: [],
        omitted: 0,
        closed: 'no',
      };
    })
    .sort(compareNodes);
};

/** Whether a folder without counted files can't be read. Where all were counted, none is closed. */
const isClosed = async (top: string, node: Node, { areAll }: FileCounts): Promise<boolean> =>
  !areAll && (await readNodes(top, node)) === null;

/** The nodes, with a few of many files that have the same extension. */
const foldAlike = (nodes: readonly Node[]): readonly Node[] => {
  const places = new Map<string, number>();
  const placed = nodes.map((node) => {
    const extension = node.kind === 'file' ? path.extname(node.name) : node.place;
    const place = (places.get(extension) ?? 0) + 1;
    places.set(extension, place);
    return { node, extension, place };
  });
  return placed
    .filter(
      ({ extension, place }) => place <= ALIKE_SHOWN || (places.get(extension) ?? 0) <= ALIKE_MAX,
    )
    .map(({ node }) => node);
};

/**
 * Fills the tree, one level after another, and resolves with the number of its entries. A limit
 * above the default is for the listed folder itself.
 */
const grow = async (
  top: string,
  root: Node,
  counts: FileCounts,
  { depth, limit }: Required<Omit<Input, 'path'>>,
): Promise<number> => {
  let room = limit;
  let level: Node[] = [root];
  for (let at = 1; at <= depth && level.length > 0; at++) {
    const next: Node[] = [];
    for (const folder of level) {
      const nodes = await readNodes(top, folder);
      if (nodes === null) folder.closed = 'unreadable';
      else {
        const listed = at === 1 ? nodes : foldAlike(nodes);
        const shownMax = at === 1 && limit > ENTRIES_DEFAULT ? limit : PER_FOLDER_MAX;
        folder.children = listed.slice(0, Math.min(shownMax, room));
        folder.omitted = nodes.length - folder.children.length;
        room -= folder.children.length;
        for (const node of folder.children) {
          if (node.kind !== 'folder') continue;
          // no file below it was counted
          if (!counts.files.has(node.place))
            node.closed = (await isClosed(top, node, counts)) ? 'unreadable' : 'uncounted';
          else if (at === depth) node.closed = 'depth';
          else next.push(node);
        }
      }
    }
    level = next;
  }
  return limit - room;
};

const renderLabel = (node: Node, { files, areAll }: FileCounts): string => {
  if (node.kind === 'folder') {
    const count = `${files.get(node.place) ?? 0}${areAll ? '' : ' or more'}`;
    if (node.closed === 'uncounted')
      return `${node.name}/ [${areAll ? 'empty or ignored' : 'not counted'}]`;
    if (node.closed === 'unreadable') return `${node.name}/ [can't be read]`;
    return node.closed === 'depth' ? `${node.name}/ [${count} files]` : `${node.name}/`;
  }
  if (node.kind === 'link') return `${node.name} [link]`;
  if (node.kind === 'other') return `${node.name} [no regular file]`;
  return files.has(node.place) || !areAll ? node.name : `${node.name} [ignored]`;
};

const renderLines = (node: Node, counts: FileCounts, indent: string): readonly string[] => [
  ...node.children.flatMap((child) => [
    `${indent}${renderLabel(child, counts)}`,
    ...renderLines(child, counts, `${indent}  `),
  ]),
  ...(node.omitted > 0 ? [`${indent}[${node.omitted} more]`] : []),
];

const list = async (input: Input, context: ToolContext): Promise<ToolOutcome> => {
  const allowed = await findAllowed(input.path ?? '.', context);
  if (allowed.kind === 'elsewhere') return failed(allowed.why);
  const { real, shown } = allowed;
  const counts = await withFolder(real, (folder) => countFiles(folder, context.signal));
  if (counts === null)
    return failed(await noFolder(real, shown, 'Read it, or list the folder that it is in.'));
  if (context.signal.aborted)
    return stopped(context.signal, 'stopped before the files were counted');
  const root: Node = {
    name: shown,
    kind: 'folder',
    place: '',
    children: [],
    omitted: 0,
    closed: 'no',
  };
  const { depth = DEPTH_DEFAULT, limit = ENTRIES_DEFAULT } = input;
  const entries = await grow(real, root, counts, { depth, limit });
  if (root.closed === 'unreadable') return failed(`${shown} can't be read.`);
  const lines = renderLines(root, counts, '');
  return {
    status: 'ok',
    text: [`${shown}/`, ...(lines.length === 0 ? ['[empty]'] : lines)].join('\n'),
    summary: entries === 0 ? 'empty' : plural(entries, 'entry', 'entries'),
  };
};

export const listTool: Tool = defineTool({
  name: 'list',
  description: 'Shows a folder as a tree; what .gitignore names is marked and not entered.',
  schema,
  aliases: {
    ...FOLDER_NAMES,
    path: [...(FOLDER_NAMES.path ?? []), 'relative_workspace_path'],
    depth: ['max_depth', 'maxDepth'],
  },
  foreign: FOREIGN,
  traits: { effect: 'pure', parallelSafe: true, mutating: false, deadlineMs: 30_000 },
  judge: (input, workspace) => judgePath(input.path ?? '.', workspace),
  title: (_, [folder = '.']) => folder,
  run: async (input, context) => {
    try {
      return await list(input, context);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    }
  },
});
