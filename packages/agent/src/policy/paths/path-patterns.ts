/**
 * Path patterns of rules: `docs/**`, `*.pem`, `/etc/hosts`.
 *
 * 1. `*` and `?` match characters of one name, `**` any folders, `{a,b}` one of several.
 * 2. A pattern without `/` matches the name at any depth of the workspace. Other patterns start at the workspace, or at
 *    the root with a leading `/`. A pattern matches everything below a matching path too.
 * 3. The time is at most proportional to pattern length times path length.
 */

const PATTERNS_MAX = 64;

/** Expands `{a,b}`; null if there are too many combinations. */
const spread = (pattern: string): readonly string[] | null => {
  const open = [pattern];
  const done: string[] = [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const group = /^([^{]*)\{([^{}]*)\}(.*)$/s.exec(next);
    if (group === null) done.push(next);
    else for (const choice of (group[2] ?? '').split(',')) open.push(`${group[1]}${choice}${group[3]}`);
    if (open.length + done.length > PATTERNS_MAX) return null;
  }
  return done;
};

/** Whether a name matches a segment with `*` and `?`. Backtracks only to the last star. */
const fitsName = (pattern: string, name: string): boolean => {
  let [at, seen, star, mark] = [0, 0, -1, 0];
  while (seen < name.length) {
    if (pattern[at] === '*') {
      star = at++;
      mark = seen;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === name[seen])) {
      at++;
      seen++;
    } else if (star >= 0) {
      at = star + 1;
      seen = ++mark;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
};

/** Whether the pattern matches the path or a folder above it, by dynamic programming over prefixes. */
const fitsNames = (pattern: readonly string[], names: readonly string[]): boolean => {
  let reached = new Set([0]);
  for (const segment of pattern) {
    const next = new Set<number>();
    for (const count of reached) {
      if (segment === '**') for (let more = count; more <= names.length; more++) next.add(more);
      else if (count < names.length && fitsName(segment, names[count] ?? '')) next.add(count + 1);
    }
    reached = next;
  }
  return pattern.at(-1) === '**' ? reached.has(names.length) : reached.size > 0;
};

const segments = (path: string): readonly string[] =>
  path.split('/').filter((one) => one !== '' && one !== '.');

const fitsOne = (pattern: string, path: string, workspace: string): boolean => {
  if (pattern.startsWith('/')) return fitsNames(segments(pattern), segments(path));
  const base = workspace.endsWith('/') ? workspace : `${workspace}/`;
  if (!`${path}/`.startsWith(base)) return false;
  const inside = segments(path.slice(base.length));
  const parts = segments(pattern);
  return fitsNames(pattern.replace(/\/$/, '').includes('/') ? parts : ['**', ...parts], inside);
};

/** Whether a pattern matches a real absolute path. */
export const matchesPath = (pattern: string, path: string, workspace: string): boolean =>
  (spread(pattern) ?? [pattern]).some((one) => fitsOne(one, path, workspace));
/** The fault of a pattern; null for a valid one. */
export const patternFault = (pattern: string): string | null => {
  if (pattern.trim() === '') return 'is empty';
  if (segments(pattern).includes('..')) return "may not hold '..'";
  if (pattern.startsWith('!')) return "may not begin with '!': write a rule of the other kind";
  return spread(pattern) === null ? `stands for more than ${PATTERNS_MAX} patterns` : null;
};
