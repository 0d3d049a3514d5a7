/**
 * Words that the code of some files must not use, casts without a reason, and names of types. What
 * Biome finds by itself is in biome.json.
 */

import { childrenOf, type Fault, type Node, nameOf, type Source } from './source.js';

type WordRule = {
  readonly files: RegExp;
  readonly except?: ReadonlySet<string>;
  /** Matched against the code without its comments and strings. */
  readonly found: RegExp;
  readonly text: string;
};

/** The machines, the policy and the projections. */
const PURE =
  /^packages\/(machine\/src|agent\/src\/(machine|policy(?!\/shell))|ask\/src\/(run|tree)|verify\/src\/(exploration|projections))\//;
const PACKAGES = /^packages\/[^/]+\/src\//;
/** The machine's own retry is in the pure parts. */
const IMPURE = new RegExp(`^(?!${PURE.source.slice(1)})packages/[^/]+/src/`);
const TESTS = /^(test|packages\/[^/]+\/test)\//;

/** The parts of the machine kit that drive a machine. */
const DRIVERS = new Set([
  'packages/machine/src/builder/drive.ts',
  'packages/machine/src/builder/builder.ts',
]);

/** Find-program.ts judges programs; the others start what the sandbox for commands has prepared. */
const JUDGES = new Set([
  'packages/agent/src/platform/find-program.ts',
  'packages/agent/src/platform/start-program.ts',
  'packages/agent/src/extensions/mcp/stdio-server.ts',
  'packages/agent/src/extensions/hooks/session-hooks.ts',
  'packages/agent/src/command/command.ts',
  'packages/agent/src/command/fence-acts.ts',
  'packages/agent/src/tools/check-syntax.ts',
  'packages/agent/src/workspace/format-files.ts',
]);

/** The files that may ask for the time of day. None of them measures a wait or a deadline with it. */
const CLOCKS = new Set([
  'packages/agent/src/platform/clock.ts', // the clock of sessions, which is steady while a timer runs
  'packages/verify/src/simulation/simulate.ts', // replaces the clock of simulated processes

  // compare it with the times of files, which are times of day
  'packages/agent/src/command/sandbox/git-history.ts', // also dates the entries of a reflog
  'packages/agent/src/command/sandbox/protected-scan.ts',
  'packages/agent/src/command/earlier-processes.ts',
  'packages/agent/src/workspace/git.ts',
  'packages/agent/src/workspace/scratch-folder.ts',
  'packages/agent/src/workspace/repository-snapshot.ts',
  'packages/agent/src/workspace/checkpoints/batch.ts',
  'packages/agent/src/workspace/checkpoints/file-entries.ts',
  'packages/agent/src/workspace/checkpoints/first-scan.ts',
  'packages/agent/src/workspace/checkpoints/session-checkpoints.ts',
  'packages/agent/src/workspace/checkpoints/store.ts',
  'packages/agent/src/workspace/checkpoints/workspace-lister.ts',
  'packages/agent/src/workspace/formatters.ts',

  'packages/agent/src/journal/lock.ts', // when the lock was taken, and whether that was before the computer started
  'packages/agent/src/models/wire-model.ts', // a server may say until which time of day to wait
  'packages/agent/src/models/catalogue.ts', // prices have a date
  'packages/pawl/src/commands/doctor.ts', // shows whether the clock is right

  // note when something happened
  'packages/pawl/src/sessions/stored-sessions.ts',
  'packages/agent/src/extensions/trust.ts',
]);

/** What they cut is shown to nobody, or is ASCII. */
const CUT_OTHERWISE = new Set([
  'packages/agent/src/tools/edit/edit-refusal.ts',
  'packages/agent/src/tools/file-search.ts',
  'packages/pawl/src/editor/acp-agent.ts',
]);

const RULES: readonly WordRule[] = [
  {
    files: PACKAGES,
    found: /\bsysctl -w\b/,
    text: 'no advice switches a protection off for the whole machine',
  },
  { files: PURE, found: /\bMath\.random\b/, text: 'chance in the pure core' },
  {
    files: PURE,
    except: DRIVERS,
    found: /(?<!\.)\b(?:throw|await|async)\b/,
    text: 'the pure core does not wait and does not throw',
  },
  {
    files: PACKAGES,
    except: JUDGES,
    found: /\bas ProgramPath\b/,
    text: 'only packages/agent/src/platform/find-program.ts says that a program is safe to start',
  },
  {
    // `new Date(time)`, `Date.parse`, `Date.UTC`, `instanceof Date` and a type ask no clock.
    files: PACKAGES,
    except: CLOCKS,
    found:
      /(?:\bnew Date\(\)|(?<!\bnew |\binstanceof |[:|] |(?<!globalThis)\.)\bDate\b(?!\.(?:parse|UTC)\b|:)|[:|] Date\.now\b|\bTemporal\b)/,
    text: 'asks for the time of day, which may jump: use performance.now(), or the clock you are given',
  },
  {
    files: PACKAGES,
    except: CUT_OTHERWISE,
    found:
      /\.(?:slice|substring)\(0, \w*(?:CHARACTERS|DESCRIPTION|MESSAGE|QUESTION|QUOTED|SENTENCE|TITLE|TEXT)_MAX\b/,
    text: 'cuts a text in the middle of a character: use cut or firstCharacters of platform/text',
  },
  {
    // A tool gives its title, summary and preview itself, so that nobody else reads its input.
    files: /^packages\/(?!agent\/src\/tools\/)[^/]+\/src\//,
    found:
      /\binput\??\.(?:path|edits|content|oldText|newText|glob|pattern|url|items|command|timeoutMs|background|jobAction|jobId)\b/,
    text: 'a field of a tool: ask the tool for a title, a summary, a preview or a fact',
  },
  {
    // The edges to the world, where trying again would be easy.
    files:
      /^packages\/agent\/src\/(?:models|tools|journal|session\/prompt|command\/sandbox|workspace)\//,
    found: /\b(?!\w*retryAfter)\w*retr(?:y|ies)\w*\??\.?\(/i,
    text: 'nobody retries but the machine',
  },
  {
    files: IMPURE,
    found: /\bmax_?retries: (?!0\b)/i,
    text: 'nobody retries but the machine: maxRetries is 0',
  },
  {
    files: TESTS,
    found: /\b(?:test|it|describe|suite)\.todo\b|(?:\{|^) +(?:skip|todo|only): (?!false\b)/,
    text: 'nothing is skipped: repair the test or remove it',
  },
];

/** Words that stand where they must not. For all sources. */
export const wordFaults = ({ file, code }: Source): readonly Fault[] => {
  const rules = RULES.filter(({ files, except }) => files.test(file) && !except?.has(file));
  if (rules.length === 0) return [];
  return code
    .split('\n')
    .flatMap((line, index) =>
      rules
        .filter(({ found }) => found.test(line))
        .map(({ text }) => ({ file, line: index + 1, text })),
    );
};

const COLUMNS_MAX = 100;

/** Comments, which the formatter does not break. For sources that are read, not for tests. */
export const commentFaults = ({ file, text, comments, lineOf }: Source): readonly Fault[] => {
  const lines = text.split('\n');
  return comments.flatMap(({ value, start }) => {
    const first = lineOf(start);
    const word = /\b(TODO|FIXME|XXX|HACK)\b/.exec(value)?.[0];
    const postponed = word === undefined ? [] : [`${word}: do it, or file an issue`];
    const own = lines[first - 1]?.slice(0, COLUMNS_MAX).trimStart() ?? '';
    const isLong =
      /^\/[/*]/.test(own) && !TESTS.test(file) && /^(packages|restate\/src)/.test(file);
    const width = isLong ? Math.max(...value.split('\n').map((line) => [...line].length)) : 0;
    const long =
      width > COLUMNS_MAX ? [`a comment of ${width} columns, at most ${COLUMNS_MAX}`] : [];
    return [...postponed, ...long].map((problem) => ({ file, line: first, text: problem }));
  });
};

const isConst = (annotation: Node | undefined): boolean =>
  annotation?.type === 'TSTypeReference' && nameOf(annotation.typeName) === 'const';

/**
 * `as` says more than the compiler knows: a comment in its statement or right above it says why
 * that is safe. For the sources of packages.
 */
export const castFaults = (source: Source): readonly Fault[] => {
  const { file, lineOf, comments } = source;
  const explained = new Set(comments.map(({ start, value }) => lineOf(start + value.length)));
  const faults: Fault[] = [];
  const visit = (node: Node, statementLine: number): void => {
    const line = lineOf(node.start);
    const first = /(Statement|Declaration|Definition)$/.test(node.type) ? line : statementLine;
    if (node.type === 'TSAsExpression' && !isConst(childrenOf(node).at(-1))) {
      const near = Array.from({ length: lineOf(node.end) - first + 2 }, (_, at) => first - 1 + at);
      if (!near.some((one) => explained.has(one)))
        faults.push({ file, line, text: "'as' without a comment that says why it is safe" });
    }
    for (const child of childrenOf(node)) visit(child, first);
  };
  visit(source.program, 1);
  return faults;
};

const EXPORTED_TYPE = /^export (?:declare |abstract )*(?:type|interface|class) (\w+)/;

/**
 * Each exported type has a name of its own, so that a reader who sees the name knows which is
 * meant. For the sources of packages.
 */
export const typeNameFaults = (sources: readonly Source[]): readonly Fault[] => {
  const firstFiles = new Map<string, string>();
  return sources.flatMap(({ file, code }) =>
    code.split('\n').flatMap((line, index) => {
      const name = EXPORTED_TYPE.exec(line)?.[1];
      const first = name === undefined ? undefined : firstFiles.get(name);
      if (name !== undefined && first === undefined) firstFiles.set(name, file);
      return first === undefined
        ? []
        : [{ file, line: index + 1, text: `'${name}' is also a type of ${first}` }];
    }),
  );
};

/** Participles and pictures that stand where a noun belongs, or make prose of a comment. */
const VAGUE = /\b(given|kept|wanted|told|made|said|begun|life|order|own|found|left)\b/g;
/** `textOf` says how a value is made of another, not what it is. */
const OF_FUNCTION = /\b(?:function [a-z]\w*Of\b|const [a-z]\w*Of = (?:async )?(?:<|\(|\w+ =>))/g;

/** Ceilings that are only ever lowered. */
const VAGUE_PER_1000_LINES_MAX = 12;
/** So many say nothing about the style of a tree. */
const VAGUE_FREE = 20;
const OF_NAMES_MAX = 20;

/** How often the sources say a thing by a vague word, or name a function after what it takes. */
export const vagueWordFaults = (sources: readonly Source[]): readonly Fault[] => {
  const text = sources.map((source) => source.text).join('');
  const count = (word: RegExp): number => text.match(word)?.length ?? 0;
  const vague = (1000 * count(VAGUE)) / text.split('\n').length;
  const problems = [
    ...(count(VAGUE) > VAGUE_FREE && vague > VAGUE_PER_1000_LINES_MAX
      ? [`${vague.toFixed(1)} of the words of ${VAGUE.source} in 1,000 lines`]
      : []),
    ...(count(OF_FUNCTION) > OF_NAMES_MAX
      ? [`${count(OF_FUNCTION)} functions named xOf, at most ${OF_NAMES_MAX}`]
      : []),
  ];
  return problems.map((problem) => ({ file: 'packages', line: 1, text: problem }));
};
