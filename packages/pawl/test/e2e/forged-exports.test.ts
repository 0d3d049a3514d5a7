import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { type CarriedFiles, exportSession } from '@pawl/agent/journal/transfer';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { hashBytes } from '@pawl/agent/platform/files';
import { openSession } from '@pawl/agent/session/create-agent';
import { chooseRows } from '../../../../test/tier.js';
import { type Forgery, plant } from './forged-journal.js';
import { runInProcess } from './in-process.js';
import { type Ended, makePlace, type Place } from './pawl.js';

/**
 * Exports with checkpoints that somebody has forged, with right sums: what they write, and where,
 * through every command that takes back, copies or tries. Each has also a file that is as it should
 * be, `ok.txt`, which comes where the session may be taken back.
 */

const EVIL = Buffer.from('#!/bin/sh\nid > PWNED\n');
const FINE = Buffer.from('fine\n');
const OLD = Buffer.from('of the user\n');

const absent = { kind: 'absent' } as const;
const fileOf = (bytes: Buffer, mode = 0o644) =>
  ({ kind: 'file', sha256: hashBytes(bytes), bytes: bytes.length, mode }) as const;
const link = (target: string) => ({ kind: 'link', target }) as const;

type Change = { readonly path: string; readonly before: object; readonly after: object };

/** A rewind makes it. */
const made = (name: string, before: object = fileOf(EVIL)): Change => ({
  path: Buffer.from(name).toString('latin1'),
  before,
  after: absent,
});

type Summary = {
  readonly created: number;
  readonly changed: number;
  readonly deleted: number;
  readonly files: readonly object[];
};

/** What the journal says of them: the truth. */
const truth = (changes: readonly Change[]): Summary => {
  const files = [...changes]
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .map(({ path: name, after }) => ({
      path: Buffer.from(name, 'latin1').toString('utf8'),
      change: after === absent ? 'deleted' : 'changed',
    }));
  const deleted = files.filter(({ change }) => change === 'deleted').length;
  return { created: 0, changed: files.length - deleted, deleted, files: files.slice(0, 20) };
};

const LIE: Summary = {
  created: 1,
  changed: 0,
  deleted: 0,
  files: [{ path: 'a.js', change: 'created', added: 1, removed: 0 }],
};

/** `refused`: by the import; `elsewhere`: every command refuses the folder; `left`: they stay. */
type Outcome =
  | { readonly kind: 'refused'; readonly why: RegExp }
  | { readonly kind: 'elsewhere'; readonly why: RegExp }
  | { readonly kind: 'left' };

type Row = {
  readonly name: string;
  readonly changes: readonly Change[];
  readonly outcome: Outcome;
  /** The folder that the journal names. Default: where the user stands. */
  readonly workspace?: (place: Place) => string;
  /** Default: where the session was. */
  readonly stands?: (place: Place) => string;
  /** What the journal says of the changes. */
  readonly says?: Summary;
  readonly by?: string;
  readonly refs?: readonly object[];
  /** The manifest comes among the contents, where the import checks none. */
  readonly hidden?: true;
  /** Events instead of the usual one, with the id of the checkpoint. */
  readonly events?: (checkpoint: string, changes: Summary) => readonly object[];
  readonly id?: string;
  /** So many checkpoints more, each with nearly as many paths as one may have. */
  readonly moreCheckpoints?: number;
  /** So many parts more, of no bytes. */
  readonly moreParts?: number;
};

const HOME: Outcome = {
  kind: 'elsewhere',
  why: /is your home, or holds files that your programs obey/,
};
const NOT_HERE: Outcome = { kind: 'elsewhere', why: /only in the folder where you stand/ };
const LEFT: Outcome = { kind: 'left' };
const refused = (why: RegExp): Outcome => ({ kind: 'refused', why });
const NO_PLACE = refused(/names a place that none may name/);
const OTHER_FILES = refused(/names other files than one of its checkpoints changes/);

const home = (place: Place): string => place.home;
const inHome =
  (name: string) =>
  (place: Place): string =>
    path.join(place.home, name);

const taken = (checkpoint: string, changes: Summary, more: object = {}): object => ({
  type: 'CheckpointTaken',
  checkpoint,
  by: 'agent',
  batchId: null,
  changes,
  leftOut: [],
  ...more,
});

const homes: readonly Row[] = [
  {
    name: 'a home, from another folder',
    changes: [made('.profile')],
    workspace: home,
    stands: (place) => place.workspace,
    outcome: HOME,
  },
  {
    name: 'a home, where the user stands',
    changes: [made('.bash_profile')],
    workspace: home,
    outcome: HOME,
  },
  {
    name: 'a file of the home without a dot',
    changes: [made('bin/git', fileOf(EVIL, 0o755))],
    workspace: home,
    outcome: HOME,
  },
  {
    name: 'the folder above the home',
    changes: [made('home/notes.txt')],
    workspace: (place) => place.folder,
    outcome: HOME,
  },
  {
    name: '~/.config',
    changes: [made('nvim/init.lua')],
    workspace: inHome('.config'),
    outcome: HOME,
  },
  {
    name: '~/.local/bin',
    changes: [made('git', fileOf(EVIL, 0o755))],
    workspace: inHome('.local/bin'),
    outcome: HOME,
  },
  {
    name: 'the folder that holds the state of Pawl',
    changes: [made('pawl/trust.json')],
    workspace: (place) => place.state,
    outcome: HOME,
  },
  {
    name: 'another project',
    changes: [made('src/a.ts')],
    workspace: inHome('other'),
    stands: (place) => place.workspace,
    outcome: NOT_HERE,
  },
];

const protectedNames: readonly string[] = [
  '.envrc',
  '.vscode/tasks.json',
  '.husky/pre-commit',
  '.github/workflows/ci.yml',
  '.mcp.json',
  '.pawl/config.toml',
  'AGENTS.md',
  '.bashrc',
  '.ssh/authorized_keys',
  '.gitconfig',
  '.npmrc',
  'deep/in/.ENVRC',
  '.en\u200dvrc',
  '.envrc. ',
  'packages/a/.cargo/config.toml',
];

/** Each change alone would be refused: one export has them all. */
const places: readonly Row[] = [
  {
    name: 'protected paths, one of them a file of the user',
    changes: [
      ...protectedNames.map((name) => made(name)),
      { path: 'CLAUDE.md', before: fileOf(EVIL), after: fileOf(OLD) },
    ],
    outcome: LEFT,
  },
  {
    name: 'links to absolute, outer and protected places, and one where a protected path begins',
    changes: [
      made('absolute', link('/etc/passwd')),
      made('above', link('../home/.bashrc')),
      made('through', link('src/../../home')),
      made('protected', link('.git/config')),
      made('.github', link('src')),
    ],
    outcome: LEFT,
  },
];

const lies: readonly Row[] = [
  { name: 'a summary of another file', changes: [made('b.js')], says: LIE, outcome: OTHER_FILES },
  {
    name: 'an empty summary',
    changes: [made('b.js')],
    says: { created: 0, changed: 0, deleted: 0, files: [] },
    outcome: OTHER_FILES,
  },
  {
    name: 'a change of the agent that the journal calls one of the user',
    changes: [made('b.js')],
    outcome: OTHER_FILES,
    events: (checkpoint, changes) => [taken(checkpoint, changes, { by: 'user' })],
  },
  {
    name: 'a manifest among the contents',
    changes: [made('.envrc')],
    says: LIE,
    hidden: true,
    outcome: LEFT,
  },
  {
    name: 'a checkpoint whose turn a forged rewind takes from the list',
    changes: [made('.envrc')],
    outcome: LEFT,
    events: (checkpoint, changes) => [
      taken(checkpoint, changes),
      {
        type: 'RewindRequested',
        rewindId: 'rewind-9',
        to: 0,
        direction: 'back',
        conversation: { kept: 0, messages: [], contextTokens: 0 },
      },
    ],
  },
];

const forms: readonly Row[] = [
  {
    name: 'a git folder with an invisible character',
    changes: [made('.g\u200dit/config')],
    outcome: NO_PLACE,
  },
  {
    name: 'a git folder in letters of two bytes',
    changes: [{ ...made('x'), path: '\u012egit/config' }],
    outcome: NO_PLACE,
  },
  { name: 'a place above', changes: [made('../home/.profile')], outcome: NO_PLACE },
  { name: 'a place above with a blank', changes: [made('.. /x')], outcome: NO_PLACE },
  {
    name: 'an id that is a device',
    changes: [made('b.js')],
    id: 'con',
    outcome: refused(/no valid id/),
  },
  {
    name: 'an id that names a lock',
    changes: [made('b.js')],
    id: 'ok.lock',
    outcome: refused(/no valid id/),
  },
  {
    name: 'an id that names the scan of another session',
    changes: [made('b.js')],
    id: 'own.scan',
    outcome: refused(/no valid id/),
  },
  {
    name: 'a manifest of more than 20,000 paths',
    changes: Array.from({ length: 20_001 }, (_, index) => made(`f/${index}`)),
    outcome: refused(/a checkpoint names 2\d+ paths, and an import takes at most 20000/),
  },
  {
    name: 'more than 100,000 paths in all its checkpoints',
    changes: [made('b.js')],
    outcome: refused(/its checkpoints name 1\d+ paths, and an import takes at most 100000/),
    moreCheckpoints: 6,
  },
  {
    name: 'more than 250,000 parts',
    changes: [made('b.js')],
    outcome: refused(/parts, and an import takes at most 250000/),
    moreParts: 250_000,
  },
  {
    name: 'branches, HEAD and index',
    changes: [made('.envrc')],
    outcome: LEFT,
    refs: [{ path: 'HEAD', before: { kind: 'ref', value: 'ref: refs/heads/evil' }, after: absent }],
  },
];

const rows = [...homes, ...places, ...lies, ...forms];

/** A forged export on disk, and its id. */
const forge = async (
  place: Place,
  row: Row,
  workspace: string,
): Promise<{ readonly file: string; readonly id: string }> => {
  const changes = [...row.changes, made('ok.txt', fileOf(FINE))];
  const manifest = Buffer.from(
    JSON.stringify({
      version: 1,
      by: row.by ?? 'agent',
      changes,
      ...(row.refs === undefined ? {} : { refs: row.refs }),
    }),
  );
  const checkpoint = hashBytes(manifest);
  const says = row.says ?? truth(changes);
  const forgery: Forgery = {
    sessionId: row.id ?? '20991231-000000-forged00',
    until: 'rest',
    more: () => row.events?.(checkpoint, says) ?? [taken(checkpoint, says)],
  };
  const scratch = path.join(place.folder, 'forger');
  const { sessionId } = await plant(scratch, workspace, forgery);
  const usual: CarriedFiles =
    row.hidden === true
      ? {
          checkpoints: [Buffer.from(JSON.stringify({ version: 1, by: 'agent', changes: [] }))],
          contents: [EVIL, FINE, manifest],
        }
      : { checkpoints: [manifest], contents: [EVIL, FINE] };
  const file = path.join(place.folder, 'forged.pawl');
  const large = Array.from({ length: row.moreCheckpoints ?? 0 }, (_, number) => {
    const many = Array.from({ length: 19_999 }, (__, index) => made(`${number}/${index}`));
    return Buffer.from(JSON.stringify({ version: 1, by: 'agent', changes: many }));
  });
  const checkpoints = [...usual.checkpoints, ...large];
  await exportSession(scratch, sessionId, file, { ...usual, checkpoints });
  if (row.moreParts !== undefined) {
    const bytes = readFileSync(file);
    const end = bytes.indexOf('\n');
    const head = JSON.parse(bytes.toString('utf8', 0, end));
    const none = { bytes: 0, sha256: hashBytes(Buffer.alloc(0)) };
    const more = Array.from({ length: row.moreParts }, () => none);
    const longer = JSON.stringify({ ...head, contents: [...head.contents, ...more] });
    writeFileSync(file, Buffer.concat([Buffer.from(longer), bytes.subarray(end)]));
  }
  return { file, id: sessionId };
};

/** Files, links and folders below, with their contents. The state of Pawl is left out. */
const listTree = (folder: string, skip: readonly string[]): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !skip.includes(path.join(folder, entry.name)))
    .flatMap((entry) => {
      const place = path.join(folder, entry.name);
      if (entry.isDirectory())
        return [`${place}/ ${lstatSync(place).mode}`, ...listTree(place, skip)];
      return [
        `${place} ${entry.isSymbolicLink() ? readlinkSync(place) : readFileSync(place, 'utf8')}`,
      ];
    })
    .sort();

type Stage = {
  readonly place: Place;
  readonly workspace: string;
  readonly id: string;
  readonly imported: Ended;
  run(...words: readonly string[]): Promise<Ended>;
  /** What is new outside of Pawl's own folders. */
  written(): readonly string[];
};

const openStage = async (context: TestContext, row: Row): Promise<Stage> => {
  const base = makePlace(context);
  // the state lies beside, unless the row is about the folder that holds it
  const place: Place = {
    ...base,
    environment: { ...base.environment, XDG_CONFIG_HOME: path.join(base.home, '.config') },
  };
  const workspace = (row.workspace ?? ((one: Place) => one.workspace))(place);
  for (const folder of [
    workspace,
    path.join(place.home, '.config'),
    path.join(place.workspace, 'src'),
  ])
    mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(place.workspace, 'CLAUDE.md'), OLD);
  const { file, id } = await forge(place, row, workspace);
  const stands = row.stands?.(place) ?? workspace;
  const run = (...words: readonly string[]): Promise<Ended> =>
    runInProcess({ ...place, workspace: stands }, words);
  const skip = [
    path.join(place.state, 'pawl'),
    path.join(place.folder, 'forger'),
    path.join(place.folder, 'trees'),
  ];
  const before = listTree(place.folder, skip);
  const imported = await run('import', file);
  const written = (): readonly string[] => {
    const known = new Set(before);
    return listTree(place.folder, skip)
      .filter((line) => !known.has(line))
      .map((line) => path.relative(workspace, line));
  };
  return { place, workspace, id, imported, run, written };
};

const text = ({ stdout, stderr }: Ended): string => stdout + stderr;

const names = (row: Row): readonly string[] =>
  row.changes.map((change) => Buffer.from(change.path, 'latin1').toString('utf8'));

/** The list names each file by the manifest, whatever the journal says. */
const expectNamed = (row: Row, ended: Ended, where: string): void => {
  // makeSafe shows characters that can't be seen by their numbers
  const shown = text(ended).replaceAll('⟨U+200D⟩', '\u200d');
  for (const name of names(row))
    assert.ok(
      shown.includes(name.replace(/\s+/g, ' ').trim()),
      `${where} does not name ${name}:\n${text(ended)}`,
    );
};

const OK_FILE = 'ok.txt fine\n';

/** Rows that one check stops. All others are the only ones of their kind. */
const KINDS: readonly RegExp[] = [
  /^a home|^a file of the home|^the folder above|^~/,
  /^another project|holds the state/,
  /^an id /,
  /^a git folder/,
  /^a place above/,
];
const kindOf = ({ name }: Row): string => KINDS.find((kind) => kind.test(name))?.source ?? name;

for (const row of chooseRows(rows, kindOf))
  test(`a forged export with ${row.name} writes nothing of its own`, async (context) => {
    const { place, workspace, id, imported, run, written } = await openStage(context, row);
    const { outcome } = row;
    if (outcome.kind === 'refused') {
      assert.notEqual(imported.code, 0);
      assert.match(text(imported), outcome.why);
      assert.deepEqual(written(), []);
      return;
    }
    assert.equal(imported.code, 0, text(imported));
    expectNamed(row, await run('rewind', id), 'the list');
    const dry = await run('rewind', id, '--at', '0', '--dry-run');
    expectNamed(row, dry, 'the dry run');
    if (outcome.kind === 'elsewhere')
      assert.deepEqual([dry.code, outcome.why.test(dry.stdout)], [2, true]);
    assert.deepEqual(written(), []);
    for (const words of [
      ['rewind', id, '--at', '0', '--files', '--force', '--refs'],
      ['fork', id, '--at', '3', '--worktree', path.join(place.folder, 'trees')],
      ['bisect', id, '--', 'false'],
    ]) {
      const ended = await run(...words);
      assert.doesNotMatch(text(ended), /internal fault/);
      if (outcome.kind === 'elsewhere') assert.match(text(ended), outcome.why);
    }
    assert.deepEqual(written(), outcome.kind === 'left' ? [OK_FILE] : []);
    if (outcome.kind === 'elsewhere') return;
    await run('redo', id);
    assert.deepEqual(written(), [], 'redo takes the fine file away again');
    assert.deepEqual(
      listTree(path.join(place.folder, 'trees'), []).filter((line) => line.includes('PWNED')),
      [],
    );
    if (chooseRows(['commands', 'session'], () => row.name).includes('session'))
      await expectLive(place, workspace, id, written);
  });

/** The same in an open session, as terminal and editors have it, also once a prompt made it the user's. */
const expectLive = async (
  place: Place,
  workspace: string,
  id: string,
  written: Stage['written'],
): Promise<void> => {
  const folder = path.join(place.state, 'pawl');
  const before = { ...process.env };
  Object.assign(process.env, place.environment);
  try {
    const session = await openSession({
      model: scriptedModel({ replies: [{ text: 'Fine.' }] }),
      journals: fileJournals({ folder }),
      workspace,
      resume: id,
      preset: 'careful',
    });
    await session.prompt('go on');
    await session.rewind({ at: 0, force: true, refs: true });
    await session.close();
  } finally {
    for (const name of Object.keys(place.environment))
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
  }
  assert.deepEqual(written(), [OK_FILE]);
  const again = await runInProcess({ ...place, workspace }, [
    'rewind',
    id,
    '--at',
    '0',
    '--files',
    '--force',
  ]);
  assert.doesNotMatch(text(again), /internal fault/);
  assert.deepEqual(written(), [OK_FILE], 'an own session by now, with checkpoints from elsewhere');
};

test('a fork keeps foreign what came from elsewhere, also once a prompt made the session own', async (context) => {
  const row: Row = { name: 'forked', changes: [made('.envrc')], outcome: LEFT };
  const { place, workspace, id, run, written } = await openStage(context, row);
  const before = (await run('fork', id, '--at', '4')).stdout.trim();
  await run('rewind', before, '--at', '0', '--files', '--force');
  assert.deepEqual(written(), [OK_FILE]);
  await run('redo', before);
  await expectLive(place, workspace, id, written);
  const after = (await run('fork', id, '--at', '5')).stdout.trim();
  const { isForeign } = JSON.parse(
    (await run('sessions', '--json')).stdout.split('\n').find((line) => line.includes(after)) ??
      '{}',
  );
  assert.equal(isForeign, undefined, 'the fork of an own session is own');
  await run('rewind', after, '--at', '0', '--files', '--force');
  assert.deepEqual(written(), [OK_FILE]);
  expectNamed(row, await run('rewind', after), 'the list of the fork');
});

test('an honest export is imported and rewound where the user stands', async (context) => {
  const row: Row = {
    name: 'honest',
    changes: [made('src/a.ts', fileOf(FINE)), made('src/link', link('a.ts'))],
    outcome: LEFT,
  };
  const { id, imported, run, written } = await openStage(context, row);
  assert.equal(imported.code, 0, text(imported));
  const dry = await run('rewind', id, '--at', '0', '--dry-run');
  assert.equal(dry.code, 0, text(dry));
  const back = await run('rewind', id, '--at', '0', '--files');
  assert.equal(back.code, 0, text(back));
  assert.deepEqual(written(), [OK_FILE, 'src/a.ts fine\n', 'src/link a.ts']);
  assert.equal((await run('redo', id)).code, 0);
  assert.deepEqual(written(), []);
});

test('the dry run of a session from here names each file, too', async (context) => {
  const place = makePlace(context);
  const script = path.join(place.home, 'script.json');
  const call = { tool: 'write', input: { path: 'new.txt', content: 'x' } };
  writeFileSync(script, JSON.stringify({ replies: [{ calls: [call] }, { text: 'Done.' }] }));
  const model = ['--model', `scripted/${script}`, '--preset', 'auto', '--sandbox', 'off'];
  await runInProcess(place, ['-p', 'go', ...model]);
  const dry = await runInProcess(place, ['rewind', '', '--at', '0', '--dry-run']);
  assert.match(dry.stdout, /^ {2}new\.txt deleted$/m, text(dry));
});
