import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { countCases } from '../../../../test/tier.js';
import { parseConfig } from '../../src/settings/configuration.js';
import { findLines } from '../../src/settings/toml-keys.js';

type Table = Readonly<Record<string, unknown>>;
type Parse = (text: string) => Table;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const holds = (table: unknown, keys: readonly string[]): boolean => {
  const [first, ...rest] = keys;
  if (first === undefined) return true;
  return isTable(table) && Object.hasOwn(table, first) && holds(table[first], rest);
};

/** The first line that the text can't end before without losing the key: found by parsing every beginning of it. */
const lineByBeginnings = (keys: readonly string[], text: string, read: Parse): number => {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  let whole = 0;
  for (let count = 1; count <= lines.length; count++) {
    let table: Table;
    try {
      table = read(lines.slice(0, count).join('\n'));
    } catch {
      continue; // the middle of a value
    }
    if (holds(table, keys)) return whole + 1;
    whole = count;
  }
  return lines.length;
};

const pathsOf = (table: Table, above: readonly string[] = []): readonly (readonly string[])[] =>
  Object.entries(table).flatMap(([name, value]) => {
    const path = [...above, name];
    return isTable(value) ? [path, ...pathsOf(value, path)] : [path];
  });

// ---- Texts ----

const name = fc.constantFrom(
  'a',
  'b',
  'max_usd',
  'x-1',
  '"q"',
  '"a.b"',
  "'l]='",
  '"\\"["',
  '"# no"',
  '1',
  '"__proto__"',
);
const key = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('.'));
const value = fc.constantFrom(
  '1',
  'true',
  '"text # [ = "',
  "'[literal'",
  '"""\nmany\n] "" lines = 1\n"""',
  '"""a\\"""b""""',
  "'''\n'' [x]\n'''''",
  '[1, 2]',
  '[\n  1, # one ]\n\n  [2,\n 3],\n]',
  '{ p = 1, "q" = { r = [\n1] } }',
  '2020-01-01T00:00:00Z',
  '""',
);
const line = fc.oneof(
  fc.tuple(key, value).map(([left, right]) => `${left} = ${right}`),
  fc
    .tuple(key, value, fc.constantFrom('', ' # [c] = "', '\t'))
    .map((parts) => `  ${parts[0]}=${parts[1]}${parts[2]}`),
  key.map((path) => `[${path}]`),
  key.map((path) => `[ ${path} ] # "`),
  name.map((path) => `[[${path}]]`),
  fc.constantFrom('', '# comment = "', '   '),
);
const ending = fc.constantFrom('\n', '\r\n');

const parsed = (text: string): Table | null => {
  try {
    return parse(text);
  } catch {
    return null; // e.g. the same key twice: it is left out of the text
  }
};

const TEXTS = countCases(300);

test('every key is found on the line on which it stands first', () => {
  let compared = 0;
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), ending, (lines, end) => {
      const text = lines.reduce((kept, next) => {
        const longer = `${kept}${next}${end}`;
        return parsed(longer) === null ? kept : longer;
      }, '');
      const lineOf = findLines(text, parse);
      for (const path of pathsOf(parse(text))) {
        assert.equal(
          lineOf(path),
          lineByBeginnings(path, text, parse),
          `${path.join(' > ')} in\n${text}`,
        );
        compared += 1;
      }
    }),
    { numRuns: TEXTS },
  );
  assert.ok(compared > TEXTS, `${compared} keys`);
});

/** How much a parser was given to read. */
const counting = () => {
  const work = { calls: 0, characters: 0 };
  const read: Parse = (text) => {
    work.calls += 1;
    work.characters += text.length;
    return parse(text);
  };
  return { work, read };
};

const many = (count: number, lineAt: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => lineAt(index)).join('\n');

const hostile: Readonly<Record<string, string>> = {
  'a thousand unknown keys': many(1_000, (index) => `k${index}=1`),
  'quoted keys': many(1_000, (index) => `"k ${index}"=1`),
  'a value of a thousand lines': `model = [\n${many(1_000, () => '1,')}\n]`,
  'a key of many parts': `[${many(2_000, () => 'a').replaceAll('\n', '.')}]\n${many(1_000, (index) => `k${index}=1`)}`,
  'one long name': `${'k'.repeat(15_000)} = 1`,
  'texts of quotes': many(1_000, (index) => `k${index}="""\\""""`),
};

for (const [title, text] of Object.entries(hostile)) {
  test(`the work that a file costs grows with its size: ${title}`, () => {
    const { work, read } = counting();
    const { faults } = parseConfig(text, read);
    assert.ok(
      work.characters <= 3 * text.length + 1_000,
      `${work.characters} of ${text.length} characters`,
    );
    assert.ok(faults.length <= 11, `${faults.length} faults`);
    for (const { text: told } of faults) assert.ok(told.length < 500, told);
  });
}

test('control: lines found by parsing every beginning cost the square of the size for each key', () => {
  const { work, read } = counting();
  const text = hostile['a thousand unknown keys'] ?? '';
  lineByBeginnings(['k999'], text, read);
  assert.ok(work.characters > 400 * text.length, `${work.characters} of ${text.length} characters`);
});

test('a file with many faults lists the first ten and counts the rest', () => {
  const { faults } = parseConfig(
    many(1_000, (index) => `k${index}=1`),
    parse,
  );
  assert.equal(faults.length, 11);
  assert.deepEqual(faults[0], { line: 1, text: 'there is no setting k0. pawl config lists them.' });
  assert.deepEqual(faults[10], { line: 11, text: '990 more faults from here on.' });
});
