/**
 * Globs as people write them for files, as a test of paths relative to a folder.
 *
 * `*` and `?` stay within a name, `**` crosses folders, `[a-z]`, `[!a-z]` and `{a,b}` choose. A glob without a slash
 * means a file of that name in any folder.
 */

const special = /[.+^$()|\\{}[\]*?]/g;
const quote = (text: string): string => text.replace(special, '\\$&');

type Read = { readonly source: string; readonly next: number };

/** `[...]` from its bracket on; null if it is never closed. */
const readClass = (glob: string, from: number): Read | null => {
  const end = glob.indexOf(']', from + 2);
  if (end < 0) return null;
  const inside = glob
    .slice(from + 1, end)
    .replace(/\\/g, '\\\\')
    .replace(/\[/g, '\\[');
  const negated = inside.startsWith('!') || inside.startsWith('^');
  const source = negated ? `[^/${inside.slice(1)}]` : `(?!/)[${inside}]`;
  return { source, next: end + 1 };
};

/** `*`, `**` or `**` with the slash behind it. */
const readStars = (glob: string, from: number): Read => {
  if (glob[from + 1] !== '*') return { source: '[^/]*', next: from + 1 };
  const startsName = from === 0 || glob[from - 1] === '/';
  if (startsName && glob[from + 2] === '/') return { source: '(?:[^/]+/)*', next: from + 3 };
  return { source: '.*', next: from + 2 };
};

const sourceOf = (glob: string): string => {
  let source = '';
  let depth = 0;
  for (let at = 0; at < glob.length; ) {
    const sign = glob[at] ?? '';
    const read = sign === '*' ? readStars(glob, at) : sign === '[' ? readClass(glob, at) : null;
    if (read !== null) {
      source += read.source;
      at = read.next;
      continue;
    }
    if (sign === '?') source += '[^/]';
    else if (sign === '{' && glob.indexOf('}', at) > 0) {
      source += '(?:';
      depth += 1;
    } else if (sign === '}' && depth > 0) {
      source += ')';
      depth -= 1;
    } else if (sign === ',' && depth > 0) source += '|';
    else source += quote(sign);
    at += 1;
  }
  return source + ')'.repeat(depth);
};

/** Whether a path fits the glob; null if the glob can't be read. */
export const readGlob = (glob: string): ((path: string) => boolean) | null => {
  const anchored = glob.replace(/^\.?\//, '');
  const source = sourceOf(anchored);
  try {
    const expression = new RegExp(anchored.includes('/') ? `^${source}$` : `^(?:.*/)?${source}$`, 'su');
    return (path) => expression.test(path);
  } catch {
    return null; // e.g. a range that runs backwards: the caller says that it can't be read
  }
};
