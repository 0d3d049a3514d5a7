import '../own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildProgram } from '../../packages/pawl/src/commands/command-line.js';
import { fullHelp } from '../../packages/pawl/src/commands/help.js';

/** What the documents name is there: files, headings, commands, flags, exit codes. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = [
  ...['README.md', 'AGENTS.md', 'CHANGELOG.md', 'SECURITY.md', 'CONTRIBUTING.md'].filter((file) =>
    existsSync(path.join(root, file)),
  ),
  ...readdirSync(path.join(root, 'packages'))
    .map((name) => `packages/${name}/README.md`)
    .filter((file) => existsSync(path.join(root, file))),
  ...readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm;
const withoutCode = (text: string): string => text.replace(FENCE, '').replace(/`[^`\n]*`/g, '');

/** As a heading is named in a link. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');

const anchorsOf = (file: string): readonly string[] =>
  [
    ...read(file)
      .replace(FENCE, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(([, heading = '']) => anchorOf(heading));

/** What a relative link misses; null of one that leads somewhere. */
const linkFault = (document: string, target: string): string | null => {
  const [file = '', anchor] = target.split('#');
  const place = file === '' ? document : path.join(path.dirname(document), file);
  if (!existsSync(path.join(root, place))) return `${document}: the link ${target} leads nowhere`;
  if (anchor === undefined || anchorsOf(place).includes(anchor)) return null;
  return `${document}: ${place} has no heading #${anchor}`;
};

const linkFaults = (document: string, text: string): readonly string[] =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => linkFault(document, target))
    .filter((fault) => fault !== null);

/** Paths such as `packages/agent/src/machine/table.ts`, not those in blocks of code: they may be of somebody's project. Patterns with a star are left out. */
const pathFaults = (document: string, text: string): readonly string[] =>
  [
    ...text
      .replace(FENCE, '')
      .matchAll(/(?<![\w./-])(?:packages|test|scripts|bench|docs)\/[\w./-]*[\w/](?![\w*/-])/g),
  ]
    .map(([name]) => name)
    // where a record speaks of names that it explains, `NNNN` stands for a number
    .filter((name) => !name.includes('NNNN') && !existsSync(path.join(root, name)))
    .map((name) => `${document}: there is no ${name}`);

/** A package's README names files below its own `src/`. */
const packagePathFaults = (document: string, text: string): readonly string[] => {
  const folder = /^packages\/[^/]+/.exec(document)?.[0];
  return [...text.matchAll(/`(src\/[\w./-]+)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => folder !== undefined && !existsSync(path.join(root, folder, name)))
    .map((name) => `${document}: there is no ${name}`);
};

/** A merge that was not ended leaves its marks. */
const mergeFaults = (document: string, text: string): readonly string[] =>
  /^(?:<{7}|>{7})(?: |$)/m.test(text) ? [`${document}: a mark of a merge`] : [];

const flagsOf = (help: string): readonly string[] =>
  [...help.matchAll(/(?<![\w-])--?[a-zA-Z][\w-]*/g)].map(([flag]) => flag);

// What `--help` prints is checked where the program runs; a process for each command costs more than all else here.
const program = buildProgram(() => undefined);
const help = fullHelp(program);
const commandList = help.slice(help.indexOf('\nCommands:\n'));
const commands = [
  'help', // of the parser itself
  ...[...commandList.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name = '']) => name),
];
const rootFlags = flagsOf(help);
const flagsByCommand = new Map(
  program.commands.map((command) => [command.name(), flagsOf(command.helpInformation())]),
);

/** Command lines in code, fenced or not: up to a pipe, a redirection, a comment, `--`; quoted words are one. */
const commandLines = (text: string): readonly string[] => {
  const fenced = [...text.matchAll(FENCE)].filter(
    ([, language]) => language === 'sh' || language === '',
  );
  const inline = [...text.replace(FENCE, '').matchAll(/`([^`\n]*)`/g)].map(([, code = '']) => code);
  return [...fenced.flatMap(([, , code = '']) => code.split('\n')), ...inline]
    .map((line) => /(?:^|^\$ |\| |node bin\/)pawl(?:\.js)?((?: .*)?)$/.exec(line)?.[1])
    .filter((rest) => rest !== undefined)
    .map((rest) => rest.replace(/"[^"]*"/g, '"…"').replace(/\s[|>#].*|\s\d>.*|\s--\s.*/, ''))
    .filter((rest) => !rest.startsWith(': '));
};

const commandFaults = (document: string, text: string): readonly string[] =>
  commandLines(text).flatMap((line) => {
    const words = line.split(/[\s[\]|\\]+/).filter((word) => word !== '');
    const [first = ''] = words;
    const isCommand = /^[a-z]+$/.test(first);
    if (isCommand && !commands.includes(first))
      return [`${document}: there is no command 'pawl${line}'`];
    const known = isCommand ? (flagsByCommand.get(first) ?? []) : rootFlags;
    return words
      .filter((word) => /^--?[a-zA-Z]/.test(word) && !known.includes(word))
      .map((flag) => `${document}: 'pawl${line}' has no flag ${flag}`);
  });

/** Flags that stand alone in code, such as `--max-usd N`: some command has them. */
const allFlags = new Set([...rootFlags, ...[...flagsByCommand.values()].flat()]);
const FOREIGN_FLAGS = new Set(['--import', '--test', '--version', '--fast']);
const flagFaults = (document: string, text: string): readonly string[] =>
  [...text.replace(FENCE, '').matchAll(/`(--[a-z][\w-]*)[^`\n]*`/g)]
    .map(([, flag = '']) => flag)
    .filter((flag) => !allFlags.has(flag) && !FOREIGN_FLAGS.has(flag))
    .map((flag) => `${document}: no command has the flag ${flag}`);

describe('documents', () => {
  it('are found, and so are the commands that they may name', () => {
    assert.ok(documents.length > 5);
    assert.ok(commands.includes('replay') && rootFlags.includes('--json'), help);
  });

  for (const document of documents) {
    const text = read(document);
    it(`${document} links and names only files that are there`, () => {
      const faults = [linkFaults, pathFaults, packagePathFaults, mergeFaults].flatMap((check) =>
        check(document, text),
      );
      assert.deepEqual(faults, []);
    });
    it(`${document} names only commands and flags that pawl has`, () => {
      assert.deepEqual([...commandFaults(document, text), ...flagFaults(document, text)], []);
    });
  }
});

/** `a["words"] --> b & c["words"]` of a drawing: each arrow as a pair of names. */
const arrowsIn = (drawing: string): readonly (readonly [string, string])[] =>
  [...drawing.replace(/\["[^"]*"\]/g, '').matchAll(/^ *(\w+) --> (.+)$/gm)].flatMap(
    ([, from = '', to = '']) => to.split(' & ').map((name) => [from, name] as const),
  );

it('the drawing of the packages has an arrow, or a way, for each import that a package names', () => {
  const arrows = arrowsIn(read('docs/design/architecture.md'));
  const below = (name: string): readonly string[] =>
    arrows.filter(([from]) => from === name).flatMap(([, to]) => [to, ...below(to)]);
  for (const name of readdirSync(path.join(root, 'packages'))) {
    const { dependencies, devDependencies } = JSON.parse(read(`packages/${name}/package.json`));
    const imported = Object.keys({ ...dependencies, ...devDependencies })
      .filter((one) => one.startsWith('@pawl/'))
      .map((one) => one.slice('@pawl/'.length));
    assert.deepEqual(
      imported.filter((one) => !below(name).includes(one)),
      [],
      `${name}: no arrow leads there`,
    );
    const drawn = arrows.filter(([from]) => from === name).map(([, to]) => to);
    assert.deepEqual(
      drawn.filter((one) => !imported.includes(one)),
      [],
      `${name}: an arrow that is no import`,
    );
  }
});

describe('the check of documents', () => {
  const rows = [
    { text: 'See [it](nowhere.md).', fault: /nowhere\.md leads nowhere/ },
    { text: 'See [it](docs/design/journal.md#nothing).', fault: /no heading #nothing/ },
    { text: 'In `packages/agent/tabel.ts` it is.', fault: /no packages\/agent\/tabel\.ts/ },
    { text: '```sh\npawl sesions\n```\n', fault: /no command 'pawl sesions'/ },
    { text: '```sh\ngit diff | pawl -p - --pre plan\n```\n', fault: /no flag --pre$/ },
    { text: 'Say `pawl replay ID --request`.', fault: /no flag --request$/ },
    { text: `One.\n${'<'.repeat(7)} HEAD\nTwo.`, fault: /a mark of a merge/ },
    { text: 'Say `--max-money 3`.', fault: /no command has the flag --max-money/ },
  ];
  for (const { text, fault } of rows) {
    it(`finds the fault in ${JSON.stringify(text)}`, () => {
      const faults = [linkFaults, pathFaults, commandFaults, flagFaults, mergeFaults].flatMap(
        (check) => check('README.md', text),
      );
      assert.equal(faults.length, 1, faults.join('\n'));
      assert.match(faults[0] ?? '', fault);
    });
  }
});
