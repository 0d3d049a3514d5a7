/** Extensions of the user: tools, commands and models from files beside config.toml. */

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { expectCode, makePlace, type Place, readRecords, runPawl } from './pawl.js';
import { openReady } from './window.js';

const folderOf = (place: Place): string => path.join(place.home, '.config', 'pawl', 'extensions');

const extend = (place: Place, name: string, text: string, folder = folderOf(place)): void => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, name), text);
};

const WEATHER = `
export default ({ defineTool, jsonSchema }) => ({
  tools: [
    defineTool({
      name: 'weather',
      description: 'The weather of a town.',
      input: jsonSchema({ type: 'object', properties: { town: { type: 'string' } }, required: ['town'] }),
      effect: 'reads',
      run: ({ town }) => 'It rains in ' + town + '.',
    }),
  ],
  commands: [
    { name: 'umbrella', description: 'Asks whether to take one.', run: (words) => 'Do I need it in ' + words + '?' },
  ],
});
`;

/** Repeats the last text of the user. */
const ECHO = `
const facts = {
  windowTokens: 10000, outputTokensMax: 1000, thinking: 'no', tools: 'yes', source: 'the extension',
  prices: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
};
export default () => ({
  providers: [
    {
      name: 'lab',
      connect: (model) => {
        if (model !== 'echo') throw new Error('the lab has only echo');
        return {
          id: 'lab/echo', facts, canAbort: 'yes',
          async *stream({ messages }) {
            const text = messages.at(-1).parts.map((part) => part.text ?? '').join('');
            const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
            yield { type: 'completed', parts: [{ type: 'text', text }], stopReason: 'end', usage };
          },
        };
      },
    },
  ],
});
`;

const withScript = (place: Place, replies: readonly object[]): readonly string[] => {
  writeFileSync(path.join(place.workspace, 'script.json'), JSON.stringify({ replies }));
  return ['--model', 'scripted/script.json'];
};

test('an extension gives sessions a tool, a command and a model', async (context) => {
  const place = makePlace(context);
  extend(place, 'weather.mjs', WEATHER);
  extend(place, 'echo.js', ECHO);
  const model = withScript(place, [
    { calls: [{ tool: 'weather', input: { town: 3 } }] },
    { calls: [{ tool: 'weather', input: { town: 'Bern' } }] },
    { text: 'Done.' },
  ]);
  const turn = await runPawl(place, ['-p', 'The weather?', '--json', ...model]);
  expectCode(turn, 0);
  assert.equal(turn.stderr, '');
  const results = readRecords(turn.stdout).flatMap((record) =>
    record.type === 'toolResult' ? [`${record.status}: ${record.text}`] : [],
  );
  assert.match(results[0] ?? '', /^invalid: .*must be string/);
  assert.equal(results[1], 'ok: It rains in Bern.');

  const echoed = await runPawl(place, ['-p', '/umbrella Bern', '-m', 'lab/echo']);
  expectCode(echoed, 0);
  assert.equal(echoed.stdout, '/umbrella Bern\n\nDo I need it in Bern?\n');
  const again = await runPawl(place, ['-p', 'again', '--continue', '-m', 'lab/echo']);
  assert.equal(again.stdout, 'again\n');
  const missing = await runPawl(place, ['-p', 'x', '-m', 'lab/other']);
  expectCode(missing, 78);
  assert.match(missing.stderr, /lab\/other can't be used: the lab has only echo/);
  assert.match(
    (await runPawl(place, ['doctor'])).stdout,
    /extensions of yours run .*echo\.js, .*weather\.mjs/,
  );
});

test('a command of an extension that replaces another one is told', async (context) => {
  const place = makePlace(context);
  extend(place, 'weather.mjs', WEATHER);
  extend(place, 'echo.js', ECHO);
  extend(place, 'umbrella.md', 'Take one.', path.join(place.home, '.config/pawl/commands'));
  const ended = await runPawl(place, ['-p', '/umbrella Bern', '-m', 'lab/echo']);
  assert.match(ended.stderr, /umbrella of an extension replaces the skill or command of that name/);
  assert.match(ended.stdout, /Do I need it in Bern/);
});

test('while a command of an extension runs the session is not left, and texts keep their order', async (context) => {
  const place = makePlace(context);
  const go = path.join(place.workspace, 'go');
  extend(
    place,
    'slow.mjs',
    `import { existsSync } from 'node:fs'; import { setTimeout } from 'node:timers/promises';
const run = async () => { while (!existsSync(${JSON.stringify(go)})) await setTimeout(20); return 'slow words'; };
export default () => ({ commands: [{ name: 'slow', description: '', run }] });`,
  );
  extend(place, 'echo.js', ECHO);
  const window = await openReady(context, place, { words: ['-m', 'lab/echo'] });
  window.press('/slow one\r');
  await window.sees(/^> \/slow one/m);
  window.press('two\r/clear\r');
  await window.sees('Your command still runs');
  writeFileSync(go, '');
  await window.sees(/slow words[\s\S]*two/);
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

/** Each with the name of its file, its text, and what the user reads. */
const FAULTS: readonly (readonly [file: string, text: string, fault: RegExp])[] = [
  ['throws.mjs', 'throw new Error("no luck")', /throws\.mjs is not used: no luck\./],
  ['broken.mjs', 'export default (', /broken\.mjs is not used: /],
  [
    'none.mjs',
    'export const x = 1;',
    /none\.mjs is not used: its default export is not a function/,
  ],
  [
    'empty.mjs',
    'export default () => undefined;',
    /empty\.mjs is not used: its function gives no object/,
  ],
  [
    'list.mjs',
    'export default () => ({ tools: {} });',
    /list\.mjs is not used: its tools are not a list/,
  ],
  [
    'odd.mjs',
    'export default () => ({ tool: [] });',
    /odd\.mjs is not used: it gives tool; known are/,
  ],
  [
    'bash.mjs',
    WEATHER.replace("'weather'", "'bash'"),
    /The tool bash of .*bash\.mjs is not used: Pawl has one of that name/,
  ],
  [
    'parts.mjs',
    'export default () => ({ tools: [null], commands: [{ name: "help", run() {} }, { name: "x" }] });',
    /The command help of an extension is not used: Pawl has one/,
  ],
  [
    'asks.mjs',
    WEATHER.replace("'weather'", "'ask_user'").replace("'umbrella'", "'ask-user'"),
    /The tool ask_user of .*asks\.mjs is not used: Pawl has one of that name/,
  ],
  [
    'bedrock.mjs',
    'export default () => ({ providers: [{ name: "bedrock", connect() {} }] });',
    /The provider bedrock of .* is not used: Pawl has one of that name/,
  ],
  [
    'anthropic.mjs',
    'export default () => ({ providers: [{ name: "anthropic", connect() {} }] });',
    /The provider anthropic of .* is not used: Pawl has one of that name/,
  ],
];

test("what can't be used of extensions is said, and the session goes on with the others", async (context) => {
  const place = makePlace(context);
  for (const [file, text] of FAULTS) extend(place, file, text);
  extend(place, 'weather.mjs', WEATHER);
  const model = withScript(place, [
    { calls: [{ tool: 'weather', input: { town: 'Bern' } }] },
    { text: 'Done.' },
  ]);
  const turn = await runPawl(place, ['-p', 'The weather?', ...model]);
  expectCode(turn, 0);
  for (const [, , fault] of FAULTS) assert.match(turn.stderr, fault);
});

test('only files that nobody else can change, in the folder of the user, are extensions', async (context) => {
  const place = makePlace(context);
  const mark = path.join(place.home, 'ran');
  const text = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, '');
export default () => ({});`;
  extend(place, 'shared.mjs', text);
  chmodSync(path.join(folderOf(place), 'shared.mjs'), 0o666);
  // a project's
  for (const folder of ['.pawl/extensions', '.config/pawl/extensions', 'extensions'])
    extend(place, 'project.mjs', text, path.join(place.workspace, folder));
  // a link into a folder that others can change
  const elsewhere = path.join(place.home, 'elsewhere');
  extend(place, 'linked.mjs', text, elsewhere);
  chmodSync(elsewhere, 0o777);
  symlinkSync(path.join(elsewhere, 'linked.mjs'), path.join(folderOf(place), 'linked.mjs'));
  const model = withScript(place, [{ text: 'Done.' }]);
  const turn = await runPawl(place, ['-p', 'x', ...model]);
  expectCode(turn, 0);
  assert.match(turn.stderr, /shared\.mjs is not used: others can change .*chmod go-w/);
  assert.match(turn.stderr, /linked\.mjs is not used: others can change .*elsewhere/);
  assert.doesNotMatch(turn.stderr, /project\.mjs/);
  assert.ok(!existsSync(mark), 'code of others ran');
  // others can put a link there, to a file that is root's
  chmodSync(path.join(folderOf(place), 'shared.mjs'), 0o600);
  const rooted = path.join(place.home, 'rooted');
  extend(place, 'own.mjs', text, rooted);
  symlinkSync(path.join(rooted, 'own.mjs'), path.join(folderOf(place), 'own.mjs'));
  chmodSync(folderOf(place), 0o777);
  const open = await runPawl(place, ['-p', 'x', ...model]);
  assert.match(open.stderr, /own\.mjs is not used: others can change .*extensions: chmod go-w/);
  assert.ok(!existsSync(mark), 'code that others chose ran');
  // the control
  chmodSync(folderOf(place), 0o755);
  await runPawl(place, ['-p', 'x', ...model]);
  assert.ok(existsSync(mark));
});
