/** Calls `take` with each whole line of the text that comes in pieces. */
export const splitLines = (take: (line: string) => void): ((piece: string) => void) => {
  let rest = '';
  return (piece) => {
    const lines = `${rest}${piece}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
  };
};
