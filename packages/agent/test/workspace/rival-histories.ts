import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pick, type Random, randomFrom } from '../../../../test/kit/agent/mutations.js';
import type { ChangeSummary } from '../../src/machine/event.js';
import { hashBytes } from '../../src/platform/files.js';
import type { Checkpoints, Restored, RestorePlan } from '../../src/ports/checkpoints.js';
import { type Manifest, statesIn } from '../../src/workspace/checkpoints/manifest.js';
import { CheckpointStore, storeFolder } from '../../src/workspace/checkpoints/store.js';
import { type Folder, makeFolder, type WatchedSession } from './whose-changes.js';

/** One history of sessions and a rival in a folder, and what was wrong in it. */

export type Played = {
  readonly faults: readonly string[];
  readonly log: readonly string[];
  readonly counts: { rival: number; calls: number; rewinds: number; owed: number };
};

const NAMES = ['a', 'b', 'c', 'd/x', 'd/y', 'd/deep/z', 'e/w', 'new', 'd/new', 'f/g/h'] as const;
const FILES = { a: 'a 0\n', b: 'b 0\n', 'd/x': 'x 0\n', 'd/y': 'y 0\n', 'e/w': 'w 0\n' };

/** Who changed a path while a batch was under way. `during`: the rival, while a command ran. */
type Cause = 'tool' | 'command' | 'during' | 'else';

type Actor = 'rival' | 'one' | 'two';

/** Texts by path; a link as the place that it leads to. */
type Tree = ReadonlyMap<string, string>;

class History {
  readonly faults: string[] = [];
  readonly log: string[] = [];
  readonly counts = { rival: 0, calls: 0, rewinds: 0, owed: 0 };
  readonly #random: Random;
  readonly #folder: Folder;
  readonly #sessions: ReadonlyMap<'one' | 'two', WatchedSession>;
  readonly #causes = new Map<string, Map<string, Set<Cause>>>();
  /** Causes of each checkpoint by path. */
  readonly #ofTaken = new Map<string, ReadonlyMap<string, ReadonlySet<Cause>>>();
  /** The rival's texts that a session replaced, with the path. */
  readonly #owed: { readonly name: string; readonly text: string; readonly by: string }[] = [];
  readonly #bornAt = new Map<string, number>();
  /** Whose tool wrote last what is there. */
  readonly #toolAt = new Map<string, Actor>();
  /** Sessions of which a command runs. */
  readonly #running = new Set<string>();
  #number = 0;
  /** Counts moments: a text is known to a call if it was there before it. */
  #moment = 0;

  constructor(
    random: Random,
    folder: Folder,
    sessions: ReadonlyMap<'one' | 'two', WatchedSession>,
  ) {
    this.#random = random;
    this.#folder = folder;
    this.#sessions = sessions;
    for (const id of sessions.keys()) this.#causes.set(id, new Map());
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  tree(): Tree {
    const texts = new Map<string, string>();
    const walk = (below: string): void => {
      for (const one of readdirSync(this.#place(below), { withFileTypes: true })) {
        const name = path.join(below, one.name);
        if (name === '.git') continue;
        if (one.isDirectory()) walk(name);
        else if (one.isSymbolicLink()) texts.set(name, `-> ${readlinkSync(this.#place(name))}`);
        else texts.set(name, readFileSync(this.#place(name), 'utf8'));
      }
    };
    walk('');
    return texts;
  }

  #place(name: string): string {
    return path.join(this.#folder.workspace, name);
  }

  #textAt(name: string): string | null {
    const status = lstatSync(this.#place(name), { throwIfNoEntry: false });
    if (status === undefined || status.isDirectory()) return null;
    return status.isSymbolicLink()
      ? `-> ${readlinkSync(this.#place(name))}`
      : readFileSync(this.#place(name), 'utf8');
  }

  /** Until what follows has another time for the file system: its clock goes in steps. */
  turnClock(): void {
    const probe = path.join(this.#folder.stateFolder, '..', 'probe');
    const start = Date.now();
    do writeFileSync(probe, '');
    while (statSync(probe).ctimeMs <= start + 1);
  }

  #causedBy(actor: Actor, isTool: boolean, name: string): void {
    if (isTool) this.#toolAt.set(name, actor);
    else this.#toolAt.delete(name);
    for (const [id, causes] of this.#causes) {
      const mine: Cause = isTool ? 'tool' : 'command';
      const others: Cause = this.#running.has(id) ? 'during' : 'else';
      const known = causes.get(name) ?? new Set();
      causes.set(name, known.add(id === actor ? mine : others));
    }
  }

  /** A session replaces what is there. */
  #replaces(by: string, name: string, beforeMoment: number): void {
    const text = this.#textAt(name);
    if (text === null || by === 'rival' || !text.startsWith('rival ')) return;
    if ((this.#bornAt.get(text) ?? 0) < beforeMoment) this.#owed.push({ name, text, by });
  }

  #fresh(actor: Actor, isTool: boolean): string {
    const text = `${actor}${isTool ? '-tool' : ''} ${++this.#number}\n`;
    this.#bornAt.set(text, this.#moment);
    return text;
  }

  #isFree(name: string): boolean {
    try {
      const isFolder = statSync(this.#place(name), { throwIfNoEntry: false })?.isDirectory();
      const parents = name.split('/').slice(0, -1);
      return (
        isFolder !== true &&
        parents.every((_, index) => {
          const place = this.#place(parents.slice(0, index + 1).join('/'));
          return lstatSync(place, { throwIfNoEntry: false })?.isDirectory() !== false;
        })
      );
    } catch {
      return false;
    }
  }

  /** Changes something as a person, a program or a command does. */
  change(actor: Actor, since = this.#moment): void {
    const { tree } = { tree: this.tree() };
    const name = pick(this.#random, [...NAMES, ...tree.keys()]);
    const kinds = ['save', 'save', 'save', 'replace', 'remove', 'rename', 'chmod', 'link'] as const;
    const kind = pick(this.#random, kinds);
    const isThere = tree.has(name);
    const say = (text: string): void => void this.log.push(`  ${actor}: ${text}`);
    if (!this.#isFree(name)) return;
    if (actor === 'rival') this.counts.rival += 1;
    mkdirSync(path.dirname(this.#place(name)), { recursive: true });
    if (kind === 'save' || !isThere) {
      this.#replaces(actor, name, since);
      const text = this.#fresh(actor, false);
      if (this.#textAt(name)?.startsWith('-> ')) rmSync(this.#place(name));
      writeFileSync(this.#place(name), text);
      say(`save ${name} = ${text.trim()}`);
    } else if (kind === 'replace') {
      this.#replaces(actor, name, since);
      const text = this.#fresh(actor, false);
      const draft = path.join(this.#folder.stateFolder, '..', 'draft');
      writeFileSync(draft, text);
      renameSync(draft, this.#place(name));
      say(`replace ${name} = ${text.trim()}`);
    } else if (kind === 'remove') {
      this.#replaces(actor, name, since);
      rmSync(this.#place(name));
      say(`remove ${name}`);
    } else if (kind === 'rename') {
      const to = pick(this.#random, NAMES);
      if (to === name || !this.#isFree(to)) return;
      this.#replaces(actor, to, since);
      mkdirSync(path.dirname(this.#place(to)), { recursive: true });
      renameSync(this.#place(name), this.#place(to));
      this.#causedBy(actor, false, to);
      say(`rename ${name} ${to}`);
    } else if (kind === 'chmod') {
      if (tree.get(name)?.startsWith('-> ')) return;
      const mode = statSync(this.#place(name)).mode & 0o777;
      chmodSync(this.#place(name), mode ^ 0o111);
      say(`chmod ${name}`);
    } else {
      this.#replaces(actor, name, since);
      rmSync(this.#place(name));
      symlinkSync(`to-${++this.#number}`, this.#place(name));
      say(`link ${name}`);
    }
    this.#causedBy(actor, false, name);
  }

  async #edit(id: 'one' | 'two', session: WatchedSession): Promise<void> {
    const isText = (name: string): boolean => this.#textAt(name)?.startsWith('-> ') !== true;
    const names = NAMES.filter((name) => this.#isFree(name) && isText(name));
    if (names.length === 0) return this.#command(id, session);
    const name = pick(this.#random, names);
    this.#replaces(id, name, ++this.#moment);
    const text = this.#fresh(id, true);
    await session.edit(name, text);
    this.#causedBy(id, true, name);
    this.log.push(` ${id}: edit ${name} = ${text.trim()}`);
  }

  async #command(id: 'one' | 'two', session: WatchedSession): Promise<void> {
    this.log.push(` ${id}: command`);
    const since = ++this.#moment;
    await session.bash(`command ${since}`, async () => {
      this.turnClock();
      this.#running.add(id);
      for (let more = Math.floor(this.#random() * 4); more > 0; more--) {
        if (this.#chance(0.4)) this.change('rival');
        else if (this.#sessions.size > 1 && this.#chance(0.2) && this.#running.size < 2)
          await this.#batch(id === 'one' ? 'two' : 'one', 1);
        else this.change(id, since);
      }
      this.turnClock();
      this.#running.delete(id);
    });
    this.turnClock();
  }

  async #batch(id: 'one' | 'two', calls: number): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    this.log.push(`${id}: batch`);
    this.#causes.get(id)?.clear();
    const start = this.tree();
    for (let call = 0; call < calls; call++) {
      this.counts.calls += 1;
      if (this.#chance(0.4)) await this.#edit(id, session);
      else await this.#command(id, session);
      if (call < calls - 1 && this.#chance(0.3)) {
        this.turnClock();
        this.change('rival');
        this.turnClock();
      }
    }
    const present = this.tree();
    const ended = session.end();
    this.turnClock();
    // before anything of the look has happened
    while (this.#chance(0.3)) this.change('rival');
    const taken = await ended;
    this.turnClock();
    const causes = new Map(
      [...(this.#causes.get(id) ?? [])].map(([name, set]) => [name, new Set(set)]),
    );
    const listed = new Set(taken?.changes.files.map((file) => file.path));
    const alone = [...causes].filter(([, set]) => !set.has('else') && !set.has('during'));
    if (alone.length === causes.size)
      for (const [name] of alone)
        if (start.get(name) !== present.get(name) && !listed.has(name))
          this.#fault(`${id} changed ${name}, which is not listed`);
    if (taken === null) return;
    this.#ofTaken.set(taken.checkpoint, causes);
    this.log.push(` ${id}: taken ${JSON.stringify(taken.changes.files)}`);
    this.#checkCounts(id, taken.changes);
    for (const { path: name, duringCommands } of taken.changes.files) {
      const known = causes.get(name) ?? new Set();
      const isTrue =
        duringCommands === 'yes' ? known.has('command') || known.has('during') : known.has('tool');
      if (!isTrue)
        this.#fault(`${id} lists ${name} (${duringCommands ?? 'tool'}): ${[...known].join()}`);
    }
  }

  #fault(text: string): void {
    this.faults.push(text);
    this.log.push(`!! ${text}`);
  }

  #checkCounts(
    what: string,
    { created, changed, deleted, files, duringCommands = 0 }: ChangeSummary,
  ): void {
    const during = files.filter((file) => file.duringCommands === 'yes').length;
    if (created + changed + deleted !== files.length || during !== duringCommands)
      this.#fault(`${what}: the counts are not those of the list`);
  }

  /** Takes checkpoints of a session back. */
  async #goBack(id: 'one' | 'two', ids: readonly string[]): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined || ids.length === 0) return;
    this.counts.rewinds += 1;
    const { checkpoints, taken } = session;
    const [force, editsOnly] = [this.#chance(0.3), this.#chance(0.3)];
    this.log.push(
      `${id}: rewind ${ids.length}${force ? ' force' : ''}${editsOnly ? ' edits' : ''}`,
    );
    const takeBack = ids.map((one) => ({ id: one, isForeign: false }));
    const planned = await checkpoints.plan({ takeBack, force, editsOnly });
    this.#checkCounts('plan', planned.changes);
    if (planned.plan === null) return;
    const isBeside = this.#chance(0.4);
    if (isBeside && this.#chance(0.5)) this.change('rival');
    const before = this.tree();
    const since = ++this.#moment;
    this.#number += 1;
    const touched = new Set<string>();
    const restoring = checkpoints.restore(planned.plan);
    if (isBeside)
      for (let more = 2; more > 0; more--) {
        await nextTurn();
        const was = this.tree();
        this.change('rival');
        for (const name of NAMES) if (was.get(name) !== this.#textAt(name)) touched.add(name);
      }
    const restored = await restoring;
    this.turnClock();
    if (restored.checkpoint !== null) taken.push(restored.checkpoint);
    this.log.push(` ${id}: rewound ${JSON.stringify([restored.changes.files, restored.left])}`);
    this.#checkCounts('rewind', restored.changes);
    this.#checkRewind({ id, ids, since, before, touched, planned, restored, isBeside });
  }

  #checkRewind(done: {
    readonly id: 'one' | 'two';
    readonly ids: readonly string[];
    readonly since: number;
    readonly before: Tree;
    readonly touched: ReadonlySet<string>;
    readonly planned: RestorePlan;
    readonly restored: Restored;
    readonly isBeside: boolean;
  }): void {
    const { id, ids, since, before, touched, planned, restored, isBeside } = done;
    const after = this.tree();
    const named = new Set(restored.changes.files.map((file) => file.path));
    const causes = new Map<string, Set<Cause>>();
    for (const one of ids)
      for (const [name, set] of this.#ofTaken.get(one) ?? [])
        causes.set(name, new Set([...(causes.get(name) ?? []), ...set]));
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const [was, is] = [before.get(name), after.get(name)];
      if (was === is || touched.has(name)) continue;
      if (!named.has(name)) this.#fault(`a rewind changed ${name} and does not name it`);
      const known = causes.get(name) ?? new Set();
      if (!known.has('tool') && !known.has('command') && !known.has('during'))
        this.#fault(`a rewind of ${id} changed ${name}, which its calls did not: ${[...known]}`);
      const owner = this.#toolAt.get(name);
      if (owner !== undefined && owner !== id)
        this.#fault(`a rewind of ${id} replaced what a tool of ${owner} wrote in ${name}`);
      if (was?.startsWith('rival ') && (this.#bornAt.get(was ?? '') ?? 0) <= since)
        this.#owed.push({ name, text: was ?? '', by: `a rewind of ${id}` });
    }
    const words = ({ files }: ChangeSummary): string =>
      JSON.stringify(files.map((file) => [file.path, file.change]));
    if (!isBeside && words(planned.changes) !== words(restored.changes))
      this.#fault(`planned ${words(planned.changes)}, done ${words(restored.changes)}`);
    if (!isBeside && JSON.stringify(planned.left) !== JSON.stringify(restored.left))
      this.#fault(
        `planned to leave ${JSON.stringify(planned.left)}, left ${JSON.stringify(restored.left)}`,
      );
    for (const name of named) this.#toolAt.delete(name);
    this.#ofTaken.set(
      restored.checkpoint ?? '',
      new Map([...named].map((name) => [name, new Set(['tool'])])),
    );
  }

  async play(): Promise<void> {
    const ids = [...this.#sessions.keys()];
    for (let step = 0; step < 9; step++) {
      const id = pick(this.#random, ids);
      const taken = this.#sessions.get(id)?.taken ?? [];
      const roll = this.#random();
      if (step < 2 || roll < 0.6) await this.#batch(id, 1 + Math.floor(this.#random() * 3));
      else if (roll < 0.85)
        await this.#goBack(id, taken.slice(Math.floor(this.#random() * taken.length)));
      else await this.#goBack(id, taken.slice(-1)); // of a rewind: forward again
      this.turnClock();
      while (this.#chance(0.5)) this.change('rival');
      this.turnClock();
    }
    for (const id of ids) await this.#goBack(id, [...(this.#sessions.get(id)?.taken ?? [])]);
    await this.#checkOwed();
  }

  /** Adds the contents that `--restore` brings back from a checkpoint. */
  async #addKept(
    stored: Set<string>,
    checkpoints: Checkpoints,
    id: string,
    manifest: Manifest | null,
  ): Promise<void> {
    for (const name of new Set(manifest?.changes.map((change) => change.path)))
      for (const [at, state] of statesIn(manifest, name).entries()) {
        if (state.kind !== 'file') continue;
        const { plan, left } = await checkpoints.planFile({
          ...{ checkpoint: { id, isForeign: false }, path: name, at },
        });
        if (plan !== null || left.length === 0) stored.add(state.sha256);
      }
  }

  /** Each text of the rival that a session replaced is there, or comes back. */
  async #checkOwed(): Promise<void> {
    this.counts.owed = this.#owed.length;
    const { workspace, stateFolder } = this.#folder;
    const store = new CheckpointStore(storeFolder(stateFolder, workspace));
    const stored = new Set<string>();
    for (const [id, { checkpoints }] of this.#sessions)
      for (const sha256 of await store.listed(id))
        await this.#addKept(stored, checkpoints, sha256, await store.manifest(sha256));
    const present = new Set(this.tree().values());
    for (const { name, text, by } of this.#owed)
      if (!present.has(text) && !stored.has(hashBytes(Buffer.from(text))))
        this.#fault(`${by} lost ${text.trim()} in ${name}`);
  }
}

export const playHistory = async (test: TestContext, seed: number): Promise<Played> => {
  const random = randomFrom(seed);
  const folder = makeFolder(test, FILES, { isRepository: random() < 0.5 });
  folder.write('c', 'c 0\n'); // not committed
  const ids = random() < 0.4 ? (['one', 'two'] as const) : (['one'] as const);
  const sessions = new Map(ids.map((id) => [id, folder.session(id)] as const));
  const history = new History(random, folder, sessions);
  history.turnClock();
  await history.play();
  const { faults, log, counts } = history;
  return { faults, log, counts };
};
