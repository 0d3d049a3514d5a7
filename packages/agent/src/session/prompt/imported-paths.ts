/** Imports in an instructions file: `@docs/rules.md`, as Claude Code writes them. */

/** Documents. Anything else, such as a configuration with passwords, is not sent to a model because a file names it. */
const DOCUMENT = /\.(?:md|mdx|markdown|txt|rst|adoc)$/i;
/** Names of files that hold secrets in spite of their extension. */
const SECRET_NAME =
  /(?:^|[._ -])(?:secrets?|credentials?|passwords?|passwd|tokens?|private[._ -]?keys?)(?:[._ -]|$)/i;
/** Hidden folders that hold documents for agents and readers; others, such as `.git`, are no place for imports. */
const HIDDEN_FOLDERS: ReadonlySet<string> = new Set(['.agents', '.claude', '.github']);

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** The text without code blocks and code spans. */
const withoutCode = (text: string): string => {
  const lines: string[] = [];
  let fence: string | null = null;
  for (const line of text.split(/\r?\n/)) {
    const mark = FENCE.exec(line)?.[1];
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence === null) lines.push(line);
    else if (mark?.startsWith(fence) && line.trim() === mark) fence = null;
  }
  return lines.join('\n').replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, ' ');
};

/** The paths that a text imports, as they are written, each once. Words such as `@user` are among them. */
export const importedPaths = (text: string): readonly string[] => [
  ...new Set(
    [...withoutCode(text).matchAll(/(?<=^|\s|\()@([^\s@]+)/gm)].flatMap(
      ([, path = '']) => path.replace(/[.,;:!?)\]}'"*_]+$/, '') || [],
    ),
  ),
];

/** Why a path below the repository's root may not be imported; null if it may. */
export const importFault = (path: string): string | null => {
  const folders = path.split('/');
  const name = folders.pop() ?? '';
  if (!DOCUMENT.test(name) || name.startsWith('.'))
    return 'only documents are imported (.md, .mdx, .txt, .rst, .adoc)';
  if (folders.some((folder) => folder.startsWith('.') && !HIDDEN_FOLDERS.has(folder)))
    return 'it lies in a hidden folder';
  return path.split('/').some((part) => SECRET_NAME.test(part)) ? 'its name is one of secrets' : null;
};
