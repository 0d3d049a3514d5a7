import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, commandLine, searchFirst } from '../../src/commands/bisect.js';

const search = async (total: number, fails: (count: number) => boolean) => {
  const asked: number[] = [];
  const first = await searchFirst({ start: 0, total }, async (count): Promise<Answer> => {
    assert.ok(count > 0 && count < total, `both ends are known, and ${count} was asked`);
    assert.ok(!asked.includes(count), `${count} was asked twice`);
    asked.push(count);
    return fails(count) ? 'fails' : 'passes';
  });
  return { first, asked };
};

test('halving finds the first failing checkpoint of any, and asks no more than halving does', async () => {
  for (let total = 1; total <= 40; total += 1)
    for (let first = 1; first <= total; first += 1) {
      const found = await search(total, (count) => count >= first);
      assert.equal(found.first, first, `${first} of ${total}`);
      assert.ok(found.asked.length <= Math.ceil(Math.log2(total)), `${found.asked.length}`);
    }
});

test('one word is a command line, several are a program with its arguments', () => {
  assert.equal(commandLine(['npm test && ls']), 'npm test && ls');
  assert.equal(commandLine(['grep', '-q', "it's", 'a b']), `grep -q 'it'\\''s' 'a b'`);
});
