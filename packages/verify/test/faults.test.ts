import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { caught } from '../../../scripts/plant/catch.js';
import { type Catcher, type Fault, walks, wordsOf } from '../../../scripts/plant/fault.js';
import { faults } from '../../../scripts/plant/faults.js';
import { openMachineCopies, planted } from '../../../scripts/plant/machine-copies.js';
import { isDeep } from '../../../test/tier.js';

// Whether what looks at the machine sees when it is wrong: each fault is planted in a copy, and has
// to be found.

const copies = await openMachineCopies();
after(copies.close);

/** Every catcher that is used, once. */
const catchers: readonly Catcher[] = [
  ...new Map(faults.map(({ caughtBy }) => [wordsOf(caughtBy), caughtBy])).values(),
];

describe('the list', () => {
  test('has at least 30 faults, each with a name of its own', () => {
    assert.ok(faults.length >= 30, `${faults.length} faults`);
    assert.equal(new Set(faults.map(({ name }) => name)).size, faults.length);
  });

  // What is wrong with these is what they follow from: no state that they lead to is wrong by
  // itself.
  for (const name of [
    'an old timer starts the next attempt',
    'a second outcome overwrites the first',
  ]) {
    test(`has '${name}'`, () => assert.ok(faults.some((fault) => fault.name === name)));
  }

  for (const kind of ['walks', 'explorer', 'case']) {
    test(`uses ${kind} as a catcher`, () =>
      assert.ok(catchers.some((catcher) => catcher.kind === kind)));
  }

  test('is counted in docs/proof/exploration.md', () => {
    const count = (kind: Catcher['kind']): number =>
      faults.filter(({ caughtBy }) => caughtBy.kind === kind).length;
    const page = readFileSync(
      new URL('../../../docs/proof/exploration.md', import.meta.url),
      'utf8',
    ).replaceAll('\n', ' ');
    const counts = `${faults.length} faults, ${count('walks')} by random walks, ${count('explorer')} by the explorer, ${count('case')} by a case with a name`;
    assert.ok(page.includes(counts), `the page does not say: ${counts}`);
  });

  const fault: Fault = {
    name: 'two for one',
    file: 'one.ts',
    edits: [{ from: 'one', to: 'two' }],
    why: 'nothing',
    caughtBy: walks,
  };
  test('is applied to exact texts', () =>
    assert.equal(planted('one $& more', fault), 'two $& more'));
  for (const text of ['one and one', 'three']) {
    test(`refuses a fault that does not fit '${text}'`, () =>
      assert.throws(
        () => planted(text, fault),
        /'two for one' does not fit one\.ts: its text stands there [02] times/,
      ));
  }
});

describe('the machine as it is', async () => {
  const healthy = await copies.build(null);
  for (const catcher of catchers) {
    test(`is not complained of by ${wordsOf(catcher)}`, async () =>
      assert.equal(await caught(catcher, healthy), null));
  }
  test('is not searched for what does not exist', async () => {
    const nowhere: Catcher = { kind: 'case', file: 'cases-tools', title: 'no such case' };
    await assert.rejects(
      caught(nowhere, healthy),
      /0 cases of cases-tools have the title 'no such case'/,
    );
    const noFile: Catcher = { kind: 'case', file: 'cases-none', title: '' };
    await assert.rejects(caught(noFile, healthy), /there is no file of cases 'cases-none'/);
    const none: Catcher = { kind: 'explorer', configuration: 'none', statesMax: 1 };
    await assert.rejects(caught(none, healthy), /there is no configuration 'none'/);
  });
});

/**
 * `npm test` plants every second fault, the deep tier all of them. That each fits its file is checked
 * for all.
 */
const plantedHere = isDeep ? faults : faults.filter((_fault, index) => index % 2 === 0);

test('every fault fits the file that it is planted in', () => {
  for (const fault of faults) {
    const text = readFileSync(new URL(`../../../${fault.file}`, import.meta.url), 'utf8');
    assert.notEqual(planted(text, fault), text, fault.name);
  }
});

describe('found:', () => {
  for (const fault of plantedHere) {
    test(fault.name, async () => {
      const said = await caught(fault.caughtBy, await copies.build(fault));
      assert.notEqual(said, null, `${wordsOf(fault.caughtBy)} found nothing; ${fault.why}`);
    });
  }
});
