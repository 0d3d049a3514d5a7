/** Lines as one piece of bytes. Most writes are one line, which is not copied. */
export const joinLines = (lines: readonly Buffer[]): Buffer => {
  const [first, ...others] = lines;
  return first !== undefined && others.length === 0 ? first : Buffer.concat(lines);
};
