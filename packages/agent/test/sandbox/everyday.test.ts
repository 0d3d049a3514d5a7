import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { shareHostView } from '../../../../test/kit/sandbox/share-host-view.js';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { countCases } from '../../../../test/tier.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import { runCommand } from './commands-run.js';
import { type EverydayCommand, everydayCommands } from './everyday/commands.js';
import { filesOf, withoutNoise } from './everyday/compare.js';
import { makeProject, type ProjectKind } from './everyday/projects.js';

/**
 * Everyday commands in small real repositories do the same inside the sandbox as outside. Every tenth one runs, or
 * PAWL_COUNT of them, evenly spread.
 */

/** Of all commands; each of the others says why and names the way out. */
const SAME_SHARE_MIN = 0.98;
const AT_ONCE = 2;

const ALL = everydayCommands.length;
const COUNT = Math.min(ALL, countCases(Math.ceil(ALL / 10)));
const numberUpTo = (index: number): number => Math.floor((index * COUNT) / ALL);
const chosen = everydayCommands.filter((_, index) => numberUpTo(index + 1) > numberUpTo(index));

type Seen = { readonly output: string; readonly files: readonly string[] };
type Difference = { readonly command: string; readonly inside: Seen; readonly outside: Seen };

/** Lines of output and of files that only one of both has. */
const onlyIn = (one: Seen, other: Seen): readonly string[] => {
  const linesOf = ({ output, files }: Seen): readonly string[] =>
    [output, ...files].join('\n').split('\n');
  const others = new Set(linesOf(other));
  return linesOf(one).filter((line) => !others.has(line));
};

const kinds: readonly ProjectKind[] = ['node', 'python', 'c'];

describe('everyday commands', () => {
  let folder = '';
  const viewHost = shareHostView();
  before(() => {
    folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'pawl-everyday-')));
    mkdirSync(path.join(folder, 'home'));
    for (const kind of kinds) makeProject(kind, path.join(folder, 'made', kind));
  });
  after(() => removeFolderSync(folder));

  const runIn = async (
    index: number,
    { kind, command }: EverydayCommand,
    level: CommandLevel,
  ): Promise<Seen> => {
    const workspace = path.join(folder, level, String(index), 'app');
    mkdirSync(path.dirname(workspace), { recursive: true });
    cpSync(path.join(folder, 'made', kind), workspace, { recursive: true, verbatimSymlinks: true });
    const environment = {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: path.join(folder, 'home'),
      LANG: 'C.UTF-8',
    };
    const { text } = await runCommand({ workspace, command, level, environment, viewHost });
    const seen = {
      output: withoutNoise(text, [workspace, path.dirname(workspace)]),
      files: filesOf(workspace),
    };
    removeFolderSync(path.dirname(workspace));
    return seen;
  };

  const compare = async (index: number, everyday: EverydayCommand): Promise<Difference | null> => {
    const inside = await runIn(index, everyday, 'workspace');
    const outside = await runIn(index, everyday, 'off');
    const isSame =
      inside.output === outside.output && inside.files.join('\n') === outside.files.join('\n');
    return isSame ? null : { command: everyday.command, inside, outside };
  };

  it(`${COUNT} commands: nearly all behave the same, the others say why`, async () => {
    const differences: Difference[] = [];
    const waiting = [...chosen.entries()];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const found = await compare(...next);
        if (found !== null) differences.push(found);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const shown = differences.map(({ command, inside, outside }) =>
      [
        command,
        '--- inside',
        ...onlyIn(inside, outside),
        '--- outside',
        ...onlyIn(outside, inside),
      ].join('\n'),
    );
    const unexplained = differences.filter(({ inside }) => !/\[.*sandbox/.test(inside.output));
    assert.deepEqual(
      unexplained.map(({ command }) => command),
      [],
      shown.join('\n\n'),
    );
    const same = chosen.length - differences.length;
    assert.ok(
      same / chosen.length >= SAME_SHARE_MIN,
      `${same} of ${chosen.length} behave the same\n${shown.join('\n\n')}`,
    );
  });

  it('notices a difference', async () => {
    const found = await compare(-1, { kind: 'node', command: 'grep -c ^ /proc/self/mountinfo' });
    assert.notEqual(found, null);
  });
});
