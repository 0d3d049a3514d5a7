import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { defaultSettings } from '@pawl/agent/machine/settings';
import fc from 'fast-check';
import { completed, createStage, stream } from '../../../test/kit/terminal/stage.js';
import { atEnd, type TestScope, temporaryFolder } from '../../../test/temporary-folder.js';
import { countCases, SEED } from '../../../test/tier.js';
import { until } from '../../../test/until.js';
import { loadMarkdown } from '../src/markdown.js';

/** What a user copies from a real tmux is what the model wrote: code, commands and addresses. */

before(loadMarkdown);

/** A part of an answer, and what of it is copied: several lines of code, or a piece of one line. */
type Part = {
  readonly markdown: string;
  readonly code?: readonly string[];
  readonly pieces?: readonly string[];
};

const anyOf = <Value>(...values: readonly Value[]) => fc.constantFrom(...values);

const anyToken = anyOf(
  ...[
    'const a = 1;',
    'return',
    '日本語',
    '🎉',
    'é',
    '\t',
    ' ',
    '   ',
    'x'.repeat(70),
    "'s' ",
    '# c',
  ],
  ...[
    '- i ',
    '1. ',
    '> ',
    '| a | b |',
    '`',
    '$ pnpm',
    '\\',
    '**',
    '_',
    '~~',
    '<a>',
    '&amp;',
    '](b)',
  ],
  ...['[1]: ', '---', '===', 'https://a.example/b?c=d', '{', '"', '//', '/*'],
);
const anyCodeLine = fc
  .array(anyToken, { maxLength: 12 })
  // an empty line has no blanks: Markdown may drop them
  .map((tokens) => (/^\s*$/.test(tokens.join('')) ? '' : tokens.join('')));
/** The first and the last line are not empty, so that its beginning and its end are known. */
const anyCode = fc
  .array(anyCodeLine, { maxLength: 6 })
  .map((lines) => ['begin();', ...lines, 'end();']);

const indent = (lines: readonly string[], by: string): string =>
  lines.map((line) => (line === '' ? '' : by + line)).join('\n');

const fenced = (code: readonly string[], fence = '````'): readonly string[] => [
  `${fence}sh`,
  ...code,
  fence,
];

const anyAddress = fc
  .array(anyOf('path/', 'a-b.c/', '?q=1&r=2', '#part', '%20', 'ü', '日', 'x'.repeat(40)), {
    minLength: 1,
    maxLength: 8,
  })
  .map((pieces) => `https://example.com/${pieces.join('')}`);
const anyCommand = fc
  .array(anyOf('npm', 'run', '--filter', '"a b"', '&&', './x.sh', 'y'.repeat(30)), {
    minLength: 1,
    maxLength: 9,
  })
  .map((words) => `pawl ${words.join(' ')}`);

const codeParts: Readonly<Record<string, (code: readonly string[]) => string>> = {
  fence: (code) => fenced(code).join('\n'),
  tildes: (code) => fenced(code, '~~~~').join('\n'),
  indented: (code) => indent(code, '    '),
  'in a list': (code) => `- one\n\n${indent(fenced(code), '  ')}\n- two`,
  'in a numbered list': (code) => `1. one\n${indent(fenced(code), '   ')}\n2. two`,
  'in a list of a list': (code) => `- one\n  - two\n\n${indent(fenced(code), '    ')}`,
  'in a quote': (code) =>
    fenced(code)
      .map((line) => `> ${line}`)
      .join('\n'),
};
const anyCodePart = fc
  .tuple(anyOf(...Object.values(codeParts)), anyCode)
  .map(([write, code]): Part => ({ markdown: write(code), code }));

const pieceParts: readonly ((address: string, command: string) => string)[] = [
  (address, command) => `Words before ${address} and a command \`${command}\` after them.`,
  (address, command) => `- an item: \`${command}\`\n  - [a link](${address}) with words`,
  (address, command) => `> a quote ${address}\n> \`${command}\``,
  (address, command) => `| a | b |\n|---|--:|\n| ${address} | 1 |\n| \`${command}\` | 12.50 |`,
  (address, command) => `## \`${command}\` ${address}`,
];
const anyPieces = fc.tuple(anyOf(...pieceParts), anyAddress, anyCommand).map(
  ([write, address, command]): Part => ({
    markdown: write(address, command),
    pieces: [address, command],
  }),
);

const anyProse = anyOf<Part>(
  { markdown: 'A paragraph of some words that is wrapped between its words, 日本語の文章も。' },
  { markdown: '- one\n- two' },
  { markdown: '---' },
);
const anyAnswer = fc.array(fc.oneof(anyCodePart, anyPieces, anyProse), {
  minLength: 1,
  maxLength: 5,
});

/** What the answers write to a terminal of so many columns, and a last line. */
const END = 'the end of all answers';
const writeAnswers = (answers: readonly (readonly Part[])[], columns: number): string => {
  const limits = { ...defaultSettings.limits, usd: 'unlimited' } as const;
  const stage = createStage({ columns, rows: ROWS, look: { colour: 'yes' }, settings: { limits } });
  for (const [index, parts] of [...answers, [{ markdown: END }]].entries()) {
    const requestId = `req-${index + 1}`;
    // Words between them: what is indented would belong to a list before it.
    const text = parts.map(({ markdown }) => markdown).join('\n\nThen:\n\n');
    stage.happens({ type: 'UserInput', text: 'go', mode: 'steer' });
    stream(stage, requestId, text, 60);
    stage.happens(completed(requestId, text));
    stage.pass(50);
  }
  return stage.screen.written();
};

const ROWS = 30;
const WIDTHS = [41, 80, 133];

/** A server of tmux with a window for each text; gives what can be copied from each. */
const openWindows = (scope: TestScope, texts: readonly string[]) => {
  const folder = temporaryFolder(scope, 'tmux');
  const socket = path.join(folder, 'socket');
  const tmux = (...words: readonly string[]): string =>
    execFileSync('tmux', ['-u', '-S', socket, '-f', '/dev/null', ...words], {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
  const windows = texts.flatMap((text, index) => {
    const file = path.join(folder, `${index}.txt`);
    writeFileSync(file, text);
    const size = ['-x', String(WIDTHS[index]), '-y', String(ROWS)];
    return [';', 'new-session', '-d', '-s', `w${index}`, ...size, `cat ${file}; exec sleep 600`];
  });
  atEnd(scope, () => tmux('kill-server'));
  tmux('start-server', ';', 'set', '-g', 'history-limit', '1000000', ...windows);
  return {
    screen: (index: number): string => tmux('capture-pane', '-t', `w${index}`, '-p'),
    copy: (index: number): string => tmux('capture-pane', '-t', `w${index}`, '-p', '-J', '-S', '-'),
    resize: (index: number, columns: number): string =>
      tmux('resize-window', '-t', `w${index}`, '-x', String(columns)),
  };
};

/** Blanks at the end of a line are no part of what a terminal knows; a tab is four blanks there. */
const asCopied = (lines: readonly string[]): string =>
  lines.map((line) => line.replaceAll('\t', '    ').trimEnd()).join('\n');

test('code, commands and addresses are copied from tmux as they were written', async (context) => {
  const answers = fc.sample(anyAnswer, { numRuns: countCases(50), seed: SEED });
  const windows = openWindows(
    context,
    WIDTHS.map((columns) => writeAnswers(answers, columns)),
  );
  for (const [index, columns] of WIDTHS.entries()) {
    await until(END, () => windows.screen(index).includes(END));
    const check = (): void => {
      const copied = `\n${asCopied(windows.copy(index).split('\n'))}\n`;
      let at = 0;
      for (const { markdown, code, pieces = [] } of answers.flat()) {
        const texts = code === undefined ? pieces : [`\n${asCopied(code)}\n`];
        for (const text of texts) {
          const start = copied.indexOf(text, at);
          const shown = copied.slice(at, at + 2_000);
          assert.ok(
            start >= 0,
            `${columns} columns: ${JSON.stringify(text)} of\n${markdown}\n--- in ---\n${shown}`,
          );
          if (code !== undefined) at = start;
        }
      }
    };
    check();
    windows.resize(index, columns + 26);
    check();
  }
});
