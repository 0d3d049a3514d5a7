import type { JudgedCall } from '../call.js';

/** Characters of a title in the journal: more than a row of any screen has. */
const TITLE_CHARACTERS_MAX = 300;

/** A title as it is journaled: shortened, without half a surrogate pair at its end. */
export const shortTitle = (title: string): string =>
  title.length <= TITLE_CHARACTERS_MAX
    ? title
    : `${title.slice(0, TITLE_CHARACTERS_MAX - 1).replace(/[\ud800-\udbff]$/, '')}…`;

const relativePath = (path: string, workspace: string): string => {
  if (path === workspace) return '';
  return path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;
};

/** For a tool that gives no title, and for calls of older journals: the command, or the first text of the input and the paths. */
const guessTitle = ({ facts, input, traits }: JudgedCall, workspace: string): string => {
  if (facts.argv.length > 0) return facts.argv.join(' ');
  const paths = facts.paths.map((path) => relativePath(path, workspace)).filter((path) => path !== '');
  const texts = Object.values(input).filter((value) => typeof value === 'string');
  const others = texts.filter((text) => !paths.includes(text) && !facts.paths.includes(text));
  const words = traits.mutating && paths.length > 0 ? paths : [...others.slice(0, 1), ...paths];
  return words.length > 0 ? words.join(' ') : facts.shape;
};

/** What a call is about, in one line: the title that its tool gave it, or a guess. */
export const titleOf = (call: JudgedCall, workspace: string): string =>
  call.title ?? guessTitle(call, workspace);
