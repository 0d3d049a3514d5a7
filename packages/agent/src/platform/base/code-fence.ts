/** A Markdown code block whose fence is longer than any run of backticks in the text. */
export const codeFence = (text: string, language = ''): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
};
