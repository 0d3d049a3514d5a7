import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { AppendList } from '../src/kernel/append-list.js';

/** A log is a value: whatever is appended to whichever view, all views stay what they were. */

type View = {
  readonly log: AppendList<number>;
  readonly items: readonly number[];
  readonly parents: readonly number[];
};

/** Grows a tree of views: each number says which view is appended to. */
const grow = (first: readonly number[], choices: readonly number[]): readonly View[] => {
  const views: View[] = [{ log: AppendList.from(first), items: first, parents: [0] }];
  choices.forEach((choice, index) => {
    const at = choice % views.length;
    const view = views[at] ?? assert.fail('a choice names a view');
    const log = view.log.append(index);
    views.push({ log, items: [...view.items, index], parents: [...view.parents, views.length] });
  });
  return views;
};

/** Choices that mostly extend the newest view, now and then an older one, so that segments of all lengths arise. */
const someChoices = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(50) }),
  {
    maxLength: 60,
  },
);
const someTree = fc
  .tuple(fc.array(fc.integer(), { maxLength: 5 }), someChoices)
  .map(([first, choices]) =>
    grow(
      first,
      choices.map((choice, index) => (choice < 0 ? index : choice)),
    ),
  );

test('every view holds its own items, in order, whatever was appended elsewhere', () => {
  fc.assert(
    fc.property(someTree, (views) => {
      for (const { log, items } of views) {
        assert.deepEqual(log.toArray(), items);
        assert.equal(log.length, items.length);
        assert.deepEqual(JSON.parse(JSON.stringify(log)), items);
      }
    }),
  );
});

test('at gives the item at an index, and nothing outside', () => {
  fc.assert(
    fc.property(someTree, fc.integer({ min: -3, max: 70 }), (views, index) => {
      for (const { log, items } of views)
        assert.equal(log.at(index), index < 0 ? undefined : items[index]);
    }),
  );
});

test('toArray from a start gives the items from there on', () => {
  fc.assert(
    fc.property(someTree, fc.nat(70), (views, start) => {
      for (const { log, items } of views) assert.deepEqual(log.toArray(start), items.slice(start));
    }),
  );
});

test('a view continues exactly the views that it was made of', () => {
  fc.assert(
    fc.property(someTree, (views) => {
      for (const view of views) {
        views.forEach((other, index) => {
          assert.equal(view.log.continues(other.log), view.parents.includes(index) || index === 0);
        });
      }
    }),
  );
});

test('equal items in another log are not a beginning: identity counts', () => {
  assert.equal(AppendList.from([1, 2, 3]).continues(AppendList.from([1, 2])), false);
});

test('values going in and out are copies: nobody can change a log', () => {
  const source = [1, 2];
  const log = AppendList.from(source);
  source.push(3);
  log.toArray().push(4);
  log.toJSON()[0] = 5;
  assert.deepEqual(log.toArray(), [1, 2]);
  assert.deepEqual(AppendList.empty<number>().append(1).toArray(), [1]);
});

/** How many elements arrays copy or receive while `work` runs: counted where it happens, so no clock is needed. */
const countMoves = (work: () => void): number => {
  const { push, slice, concat, [Symbol.iterator]: iterate } = Array.prototype;
  let moved = 0;
  Array.prototype.push = function (this: unknown[], ...items: unknown[]): number {
    moved += items.length;
    return push.apply(this, items);
  };
  Array.prototype.slice = function (this: unknown[], ...range: [number?, number?]): unknown[] {
    moved += this.length;
    return slice.apply(this, range);
  };
  Array.prototype.concat = function (this: unknown[], ...others: unknown[]): unknown[] {
    moved += this.length;
    return concat.apply(this, others);
  };
  // Spreading an array goes through here, too.
  Array.prototype[Symbol.iterator] = function (this: unknown[]) {
    moved += this.length;
    return iterate.call(this);
  };
  try {
    work();
  } finally {
    Object.assign(Array.prototype, { push, slice, concat, [Symbol.iterator]: iterate });
  }
  return moved;
};

/** An item that begins a segment of its own is not moved: what is counted says how many joined one that was there. */
test('appending moves one element however long the log is, and shares all the others', () => {
  let log = AppendList.empty<number>();
  const grown = countMoves(() => {
    for (let item = 0; item < 10_000; item++) log = log.append(item);
  });
  assert.equal(grown, 10_000);
});

test('a fork moves nothing however long the log is, and what is appended to it joins it', () => {
  const old = AppendList.from(Array.from({ length: 10_000 }, (_, item) => item));
  old.append(1);
  const forked = countMoves(() => {
    for (let item = 0; item < 100; item++) old.append(item);
  });
  assert.equal(forked, 0);
  let fork = old.append(2);
  const grown = countMoves(() => {
    for (let item = 0; item < 100; item++) fork = fork.append(item);
  });
  assert.equal(grown, 100);
});
