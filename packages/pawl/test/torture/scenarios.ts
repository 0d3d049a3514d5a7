import type { PlannedCall } from './repeating-model.js';

/** What is interrupted: one row a scenario. */

/**
 * The life that is interrupted. `first`: a new session. `next`: a later turn of a session. `torn`: the same, whose
 * journal has half a line at its end. `recovery`: the one after a kill in the middle of a command. `fork`: a fork.
 */
export type Life = 'first' | 'next' | 'torn' | 'recovery' | 'fork';

export type Scenario = {
  readonly name: string;
  readonly where: 'headless' | 'terminal' | 'ask';
  readonly life: Life;
  readonly rounds: readonly (readonly PlannedCall[])[];
  readonly flags: readonly string[];
  /** For bash, in the workspace, before anything begins. */
  readonly prepare: string;
  /** What files contain at the end. */
  readonly files: Readonly<Record<string, string>>;
  /** The agent commits: each of `files` is in exactly one commit. */
  readonly commits: boolean;
  readonly model: {
    readonly thinks?: true;
    readonly usage?: number;
    /** The plan of tasks. */
    readonly task?: readonly (readonly PlannedCall[])[];
  };
  /** The MCP server of `stage.ts` is configured. */
  readonly hasServer: boolean;
  /** Hooks of the user note each call. */
  readonly hasHooks: boolean;
};

type Work = Pick<Scenario, 'rounds'> &
  Partial<Omit<Scenario, 'name' | 'where' | 'life' | 'rounds'>>;

/** It notes its beginning and its end in the ledger, with the id of its call. */
const bash = (
  command: string,
  effect: string | null,
  proof: string,
  more: object = {},
): PlannedCall => ({
  tool: 'bash',
  input: {
    command: `echo begin CALL >> ledger; (${command}); code=$?; echo end CALL >> ledger; exit $code`,
    ...more,
  },
  effect,
  proof,
});
/** A task's commands can write nothing, so it is in no ledger. */
const READ_ONLY: PlannedCall = {
  tool: 'bash',
  input: { command: 'sleep 0.2; printf "%s-%s\\n" did b' },
  proof: 'did-b',
  effect: null,
};
/** Leaves a line in `effects`, and says so only afterwards. */
const effect = (name: string, between = ':', more: object = {}): PlannedCall =>
  bash(
    `echo ${name} >> effects; ${between}; printf '%s-%s\\n' did ${name}`,
    name,
    `did-${name}`,
    more,
  );
const use = (tool: string, input: object): PlannedCall => ({
  tool,
  input,
  proof: null,
  effect: null,
});
const write = (path: string, content: string): PlannedCall => use('write', { path, content });
const edit = (path: string, oldText: string, newText: string): PlannedCall =>
  use('edit', { path, edits: [{ oldText, newText }] });

/** The session of the task ends with the answer of `repeatingModel`. */
const TASK: PlannedCall = {
  tool: 'task',
  input: { purpose: 'look', prompt: 'Look at old.' },
  proof: 'Done.',
  effect: null,
};

const REPOSITORY =
  'git init -q -b main && git config user.name Ada && git config user.email a@b.c && printf "one\\ntwo\\n" > kept && git add . && git commit -qm first && echo ledger >> .git/info/exclude';
/** A call of the MCP server, which notes it in the ledger. */
const served = (name: string): PlannedCall => ({
  tool: 'mcp__ledger__act',
  input: { call: 'CALL', name },
  effect: name,
  proof: `did-${name}`,
});

const COMMITS = { flags: ['--auto-commit'], prepare: REPOSITORY, commits: true } as const;
const todo = use('todo', { items: [{ text: 'all of it', status: 'inProgress' }] });
const numbers = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `n${at}`);

const works: Readonly<Record<string, Work>> = {
  'an answer': { rounds: [] },
  'an answer with thoughts': { rounds: [], model: { thinks: true } },
  'a command': { rounds: [[effect('a')]] },
  'a command of 0.3 s': { rounds: [[effect('a', 'sleep 0.3')]] },
  'a command of 2 s': { rounds: [[effect('a', 'sleep 2')]] },
  'a command without sandbox': {
    rounds: [[effect('a', 'sleep 0.1')]],
    flags: ['--sandbox', 'off'],
  },
  'a command with a time limit': { rounds: [[effect('a', ':', { timeoutMs: 20_000 })]] },
  'a command that fails': {
    rounds: [[bash('echo a >> effects; printf "%s-%s\\n" did a; exit 3', 'a', 'did-a')]],
  },
  'a command with much output': { rounds: [[effect('a', 'seq 60000')]] },
  'two commands at once': { rounds: [[effect('a', 'sleep 0.1'), effect('b')]] },
  'two commands in turn': { rounds: [[effect('a')], [effect('b')]] },
  'six commands in turn': { rounds: numbers(6).map((name) => [effect(name)]) },
  'commands with thoughts': { rounds: [[effect('a')], [effect('b')]], model: { thinks: true } },
  'a new file': { rounds: [[write('made', 'x\n')]], files: { made: 'x\n' } },
  'a new file in new folders': {
    rounds: [[write('a/b/made', 'x\n')]],
    files: { 'a/b/made': 'x\n' },
  },
  'a file that is replaced': {
    rounds: [[use('read', { path: 'old' })], [write('old', 'new\n')]],
    prepare: 'echo old > old',
    files: { old: 'new\n' },
  },
  'an edit': {
    rounds: [[use('read', { path: 'old' })], [edit('old', 'two', '2')]],
    prepare: 'printf "one\\ntwo\\n" > old',
    files: { old: 'one\n2\n' },
  },
  'two edits in turn': {
    rounds: [[use('read', { path: 'old' })], [edit('old', 'one', '1')], [edit('old', 'two', '2')]],
    prepare: 'printf "one\\ntwo\\n" > old',
    files: { old: '1\n2\n' },
  },
  'a file and a command': { rounds: [[write('made', 'x\n'), effect('a')]], files: { made: 'x\n' } },
  'reads only': {
    rounds: [
      [use('read', { path: 'old' }), use('list', { path: '.' }), use('find', { glob: '*' })],
    ],
    prepare: 'seq 3000 > old',
  },
  'a task': {
    rounds: [[TASK], [effect('a')]],
    prepare: 'seq 3000 > old',
    flags: ['--tasks'],
    model: {
      task: [[use('read', { path: 'old' })], [READ_ONLY]],
    },
  },
  'a list of tasks and a command': { rounds: [[todo], [effect('a')]] },
  'a summary between commands': {
    rounds: [[effect('a')], [effect('b')], [effect('c')]],
    model: { usage: 930_000 },
  },
  'a call of a server': { rounds: [[served('a')]], hasServer: true },
  'two calls of a server and a command': {
    rounds: [[served('a'), effect('b')], [served('c')]],
    hasServer: true,
  },
  'commands with hooks': {
    rounds: [[effect('a', 'sleep 0.1'), effect('b')], [effect('c')]],
    hasHooks: true,
  },
  'a server with hooks': {
    rounds: [[served('a')], [effect('b')]],
    hasServer: true,
    hasHooks: true,
  },
  'a commit of a new file': {
    ...COMMITS,
    rounds: [[write('made', 'x\n')]],
    files: { made: 'x\n' },
  },
  "a commit of a command's file": {
    ...COMMITS,
    rounds: [[effect('a')]],
    files: { effects: 'a\n' },
  },
  'two commits': {
    ...COMMITS,
    rounds: [[write('made', 'x\n')], [write('more', 'y\n')]],
    files: { made: 'x\n', more: 'y\n' },
  },
  'a commit beside changes of the user': {
    ...COMMITS,
    prepare: `${REPOSITORY} && echo mine >> kept && echo mine > untracked && git add untracked`,
    rounds: [[write('made', 'x\n')]],
    files: { made: 'x\n' },
  },
  'a commit without a branch': {
    ...COMMITS,
    prepare: `${REPOSITORY} && git checkout -q --detach`,
    rounds: [[write('made', 'x\n')]],
    files: { made: 'x\n' },
  },
  'a commit with packed references': {
    ...COMMITS,
    prepare: `${REPOSITORY} && git pack-refs --all && git gc -q`,
    rounds: [[write('made', 'x\n')]],
    files: { made: 'x\n' },
  },
  'a commit by a command': {
    prepare: REPOSITORY,
    rounds: [
      [
        bash(
          'echo a >> effects; git add effects && git commit -qm a; printf "%s-%s\\n" did a',
          'a',
          'did-a',
        ),
      ],
    ],
  },
};

const scenario = (name: string, where: Scenario['where'], life: Life): Scenario => {
  const work = works[name];
  if (work === undefined) throw new Error(`there is no work ${name}`);
  const defaults = {
    ...{ flags: [], prepare: ':', files: {}, commits: false, model: {} },
    ...{ hasServer: false, hasHooks: false },
  };
  const title = `${where === 'headless' ? '' : `${where}: `}${name}${life === 'first' ? '' : `, ${life}`}`;
  return { ...defaults, ...work, name: title, where, life };
};

const again = [
  'an answer',
  'a command',
  'a new file',
  'an edit',
  'a commit of a new file',
] as const;
const inTerminal = [
  'an answer',
  'a command of 0.3 s',
  'a new file',
  'a commit of a new file',
] as const;

const asks = ['quickjs', 'python'].map(
  (environment): Scenario => ({
    name: `ask: a question, ${environment}`,
    where: 'ask',
    life: 'first',
    rounds: [],
    commits: false,
    flags: ['--environment', environment],
    prepare: ':',
    files: {},
    model: {},
    hasServer: false,
    hasHooks: false,
  }),
);

export const scenarios: readonly Scenario[] = [
  ...Object.keys(works).map((name) => scenario(name, 'headless', 'first')),
  ...again.flatMap((name) =>
    (['next', 'torn', 'fork'] as const).map((life) => scenario(name, 'headless', life)),
  ),
  ...[
    'a command of 0.3 s',
    'a command of 2 s',
    'two commands at once',
    "a commit of a command's file",
  ].map((name) => scenario(name, 'headless', 'recovery')),
  ...inTerminal.map((name) => scenario(name, 'terminal', 'first')),
  ...asks,
];
