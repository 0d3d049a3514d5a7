/** `1 line`, `2 lines`; `2 entries` with a plural of its own. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;
