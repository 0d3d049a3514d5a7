/** The kind of line ending in a text: all the same, or mixed. */

export type LineEnding = '\n' | '\r\n';

/** `none` for a text without a line break. */
export const endingsOf = (text: string): LineEnding | 'mixed' | 'none' => {
  let windows = 0;
  let all = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    all += 1;
    if (text[at - 1] === '\r') windows += 1;
  }
  if (all === 0) return 'none';
  if (windows === 0) return '\n';
  return windows === all ? '\r\n' : 'mixed';
};

export const withEnding = (text: string, ending: LineEnding): string => text.replace(/\r?\n/g, ending);
