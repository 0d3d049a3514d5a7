import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import {
  describeCatcher,
  type Fault,
  findFault,
  replaceSource,
} from '../../../scripts/plant/fault.js';
import { chooseRows, isDeep, testDeep } from '../../../test/tier.js';
import { plantedFaults } from './planted-faults.js';

// Whether what looks at the machine sees when it is wrong: each fault is planted in a copy, and has
// to be found.

const root = new URL('../../../', import.meta.url);
const ofKind = (kind: Fault['catcher']['kind']): readonly Fault[] =>
  plantedFaults.filter(({ catcher }) => catcher.kind === kind);

test('every fault fits the file that it is planted in, and has a name of its own', () => {
  for (const { file, edits, harm } of plantedFaults) {
    const text = readFileSync(new URL(file, root), 'utf8');
    assert.notEqual(replaceSource(text, edits, file), text, harm);
  }
  assert.equal(new Set(plantedFaults.map(({ harm }) => harm)).size, plantedFaults.length);
});

test('an edit fits one place of a text, whatever its lines are', () => {
  assert.equal(replaceSource('a(one,\n  $&,\n)', [['a(one, $&)', 'two $&']], 'a.ts'), 'two $&');
  for (const text of ['one and one', 'three'])
    assert.throws(() => replaceSource(text, [['one', 'two']], 'a.ts'), /does not fit a\.ts: [02]/);
});

test('the list is counted in docs/proof/exploration.md', () => {
  const page = readFileSync(new URL('docs/proof/exploration.md', root), 'utf8').replaceAll(
    '\n',
    ' ',
  );
  const counts = `${plantedFaults.length} faults, ${ofKind('walks').length} by random walks, ${ofKind('explorer').length} by the explorer, ${ofKind('simulator').length} by the simulator`;
  assert.ok(page.includes(counts), `the page does not say: ${counts}`);
});

/** Sessions in which the simulator finds those that `npm test` may choose. */
const SESSIONS = 300;
/** These are found within SESSIONS sessions; the deep tier plants all but the rare ones. */
const SOON = [
  'a command that was running when the process was killed runs again',
  'a session with a damaged header is left out of the list',
];
/** 8,000 sessions do not show these: only scripts/plant.ts plants them, for longer. */
const RARE = [
  'a spending call with nothing left has no limit',
  'the name of a journal that a killed process has made is not made durable',
  'an automatic commit does not look for the one that was prepared',
  'a commit that was prepared is not journaled',
];
const candidates = isDeep
  ? plantedFaults.filter(({ harm }) => !RARE.includes(harm))
  : plantedFaults.filter(
      ({ catcher, harm }) => catcher.kind !== 'simulator' || SOON.includes(harm),
    );
const chosen = chooseRows(candidates, ({ catcher }) => catcher.kind);

describe('found:', () => {
  for (const fault of chosen)
    test(fault.harm, async () => {
      const sessions = isDeep ? undefined : SESSIONS;
      const finding = await findFault(fault.catcher, fault, sessions);
      assert.notEqual(finding, null, `${describeCatcher(fault.catcher)} found nothing`);
    });
});

// Each day packages/pawl/test/simulation, exploration/promises and the walks say the same.
describe('nothing is found in the sources as they are:', () => {
  const catchers = new Map(
    chosen.map(({ catcher }) => [describeCatcher(catcher), catcher] as const),
  );
  for (const [words, catcher] of catchers)
    testDeep(words, async () => assert.equal(await findFault(catcher, null, SESSIONS), null));
});
