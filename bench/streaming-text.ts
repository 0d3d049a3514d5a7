/**
 * The text that streaming-face.ts streams.
 */

const CODE = `\`\`\`ts
export const add = (one: number, other: number): number => {
  // both are finite
  const sum = one + other;
  return Number.isFinite(sum) ? sum : 0;
};
\`\`\``;

const TABLE = `| name | waits for | what it means |
|---|---|---|
| Ready | the user | nothing runs |
| CallingLlm | the model | a request is on its way |`;

const section = (index: number): string =>
  [
    `## Section ${index}`,
    `This is paragraph ${index}: it has **bold** words, \`code\`, and a [link](https://example.com/${index}). `.repeat(
      2,
    ),
    '- first item of the list\n- second item, a little longer than the first one\n  - nested',
    index % 2 === 0 ? CODE : TABLE,
  ].join('\n\n');

/** Markdown of about 5,000 tokens: headings, paragraphs, lists, code, tables. */
export const sections = (): string => {
  const parts: string[] = [];
  for (let length = 0, index = 1; length < 20_000; index++) {
    parts.push(section(index));
    length += parts.at(-1)?.length ?? 0;
  }
  return parts.join('\n\n');
};
