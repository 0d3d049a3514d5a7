import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installStandIn, makeFormatting } from './formatting.js';
import { type Deed, makeRepository } from './place.js';

// What a turn wrote that was cancelled is formatted with the next batch.

const GOOD = 'export const a = { b: 1 };\n';
const ROUGH = 'export const a = {b:2}\n';
const SMOOTH = 'export const a = { b: 2 };\n';
const next: Deed = { edit: 'b.ts', text: ROUGH };

const rows: readonly {
  readonly title: string;
  readonly when: readonly Deed[];
  readonly then: Readonly<Record<string, string>>;
}[] = [
  {
    title: 'a file that a call named, as it was before that turn',
    when: [
      { edit: 'a.ts', text: 'const x=1\n', cancelled: true },
      { edit: 'a.ts', text: ROUGH },
      next,
    ],
    then: { 'a.ts': SMOOTH, 'b.ts': SMOOTH },
  },
  {
    title: 'files that a command wrote',
    when: [{ command: `printf '${ROUGH.trim()}\\n' | tee a.ts > new.ts`, cancelled: true }, next],
    then: { 'a.ts': SMOOTH, 'new.ts': SMOOTH, 'b.ts': SMOOTH },
  },
];
for (const { title, when, then } of rows) {
  test(`formatters: after a cancelled turn: ${title}`, async (t) => {
    const place = await makeRepository(t);
    installStandIn(place);
    await place.write('.gitignore', 'node_modules\n');
    await place.write('.prettierrc', '{}\n');
    for (const name of ['a.ts', 'b.ts']) await place.write(name, GOOD);
    await place.shell('git add .; git commit -qm more');
    await makeFormatting(place).batch(...when);
    for (const [name, text] of Object.entries(then))
      assert.equal(await place.read(name), text, name);
  });
}
