import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import * as z from 'zod';
import { openHere } from '../../../../test/kit/api/stage.js';
import {
  callTools,
  rawCall,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { defineTool, type StandardSchema } from '../../src/session/define-tool.js';

type Input = {
  readonly count: number;
  readonly note?: string | undefined;
  readonly sides?: readonly number[] | undefined;
};

const schemas: Readonly<Record<string, StandardSchema<unknown, Input>>> = {
  zod: z.object({
    count: z.number().int().min(1),
    note: z.string().optional(),
    sides: z.array(z.number()).optional(),
  }),
  valibot: v.object({
    count: v.pipe(v.number(), v.integer(), v.minValue(1)),
    note: v.optional(v.string()),
    sides: v.optional(v.array(v.number())),
  }),
  'valibot with its own JSON Schema': toStandardJsonSchema(
    v.object({
      count: v.pipe(v.number(), v.integer(), v.minValue(1)),
      note: v.optional(v.string()),
      sides: v.optional(v.array(v.number())),
    }),
  ),
  arktype: type({ count: 'number.integer >= 1', 'note?': 'string', 'sides?': 'number[]' }),
};

const diceOf = (input: StandardSchema<unknown, Input>) =>
  defineTool({
    name: 'dice',
    description: 'Rolls dice.',
    input,
    effect: 'reads',
    run: ({ count, note = 'none' }) => `rolled ${count * 6}, note: ${note}`,
  });

for (const [library, schema] of Object.entries(schemas)) {
  test(`${library}: the model reads the schema as JSON Schema`, () => {
    const { inputSchema } = diceOf(schema);
    assert.equal(inputSchema.type, 'object');
    assert.deepEqual(inputSchema.required, ['count']);
    assert.deepEqual(Object.keys(inputSchema.properties ?? {}), ['count', 'note', 'sides']);
    assert.match(JSON.stringify(inputSchema), /"minimum":1/);
    assert.equal('$schema' in inputSchema, false);
  });

  test(`${library}: a call runs with what the schema accepts, and comes back with the field's name where it does not`, async (context) => {
    const model = testModel(
      callTools(
        rawCall('1', 'dice', { count: 'two' }),
        rawCall('2', 'dice', { count: 2, sides: [6, 'x'] }),
      ),
      callTools(rawCall('3', 'dice', {}), rawCall('4', 'dice', { count: 2, note: 'mine' })),
      say('done'),
    );
    const { session } = await openHere(context, model, { tools: [diceOf(schema)] });
    const turn = await session.prompt('roll');
    assert.equal(turn.text, 'done');
    const results = {
      ...resultsOf(model.requests[1]?.messages ?? []),
      ...resultsOf(model.requests[2]?.messages ?? []),
    };
    assert.match(results['1'] ?? '', /\bcount\b/);
    assert.match(results['2'] ?? '', /sides\[1\]/);
    assert.match(results['3'] ?? '', /\bcount\b/);
    assert.equal(results['4'], 'rolled 12, note: mine');
  });
}

const minimal: StandardSchema<unknown, { readonly when: Date }> = {
  '~standard': {
    version: 1,
    vendor: 'homemade',
    validate: async (value) => {
      const when =
        typeof value === 'object' && value !== null && 'when' in value ? value.when : null;
      return typeof when === 'string'
        ? { value: { when: new Date(when) } }
        : { issues: [{ message: 'no date' }] };
    },
  },
};

test('a schema that can not say itself needs an inputSchema beside it, and may check and change what it likes', async (context) => {
  const parts = { name: 'at', description: 'When.', input: minimal, effect: 'reads' } as const;
  const run = ({ when }: { readonly when: Date }): string => `in ${when.getUTCFullYear()}`;
  assert.throws(
    () => defineTool({ ...parts, run }),
    /the tool at needs an inputSchema: homemade can't say/,
  );
  const tool = defineTool({ ...parts, run, inputSchema: { type: 'object', required: ['when'] } });
  const model = testModel(
    callTools(rawCall('1', 'at', { when: '2001-02-03' }), rawCall('2', 'at', { when: 5 })),
    say('done'),
  );
  const { session, journals } = await openHere(context, model, { tools: [tool] });
  await session.prompt('when?');
  const results = resultsOf(model.requests.at(-1)?.messages ?? []);
  assert.equal(results['1'], 'in 2001');
  assert.match(results['2'] ?? '', /input.*no date/);
  const inputs: unknown[] = [];
  for await (const { event } of journals.read(session.id)) {
    if (event.type === 'LlmCompleted') inputs.push(...event.calls.map(({ input }) => input));
  }
  assert.deepEqual(
    inputs,
    [{ when: '2001-02-03' }, { when: 5 }],
    'the journal holds what the model wrote',
  );
});

const noObject: readonly (readonly [string, StandardSchema])[] = [
  ['zod', z.string()],
  ['valibot', v.string()],
  ['arktype', type('string')],
];
for (const [library, input] of noObject) {
  test(`${library}: input that is no object is refused when the tool is defined`, () => {
    const define = () =>
      defineTool({ name: 'say', description: '', input, effect: 'reads', run: () => '' });
    assert.throws(define, /the input of the tool say must be an object/);
  });
}

test('a name that no provider takes is refused when the tool is defined', () => {
  for (const name of ['', 'with space', 'a.b', 'x'.repeat(65)]) {
    const define = () =>
      defineTool({ name, description: '', input: z.object({}), effect: 'reads', run: () => '' });
    assert.throws(define, /a tool's name has letters/);
  }
});

test('a tool’s effects decide: reading runs, changes and paths outside ask', async (context) => {
  const input = z.object({ path: z.string() });
  const parts = { description: '', input, run: () => 'ran' };
  const look = defineTool({ ...parts, name: 'look', effect: 'reads' });
  const change = defineTool({ ...parts, name: 'change', effect: 'changes' });
  const away = defineTool({
    ...parts,
    name: 'away',
    effect: 'reads',
    touches: ({ path }) => ({ paths: [path] }),
  });
  const model = testModel(
    callTools(
      rawCall('1', 'look', { path: 'x' }),
      rawCall('2', 'change', { path: 'x' }),
      rawCall('3', 'away', { path: '/etc/hosts' }),
    ),
    say('done'),
  );
  const asked: string[] = [];
  const { session } = await openHere(context, model, {
    tools: [look, change, away],
    preset: 'careful',
    onApproval: ({ tool }) => {
      asked.push(tool);
      return { deny: 'not today' };
    },
  });
  await session.prompt('go');
  const results = resultsOf(model.requests.at(-1)?.messages ?? []);
  assert.deepEqual(asked, ['change', 'away']);
  assert.equal(results['1'], 'ran');
  assert.match(results['2'] ?? '', /not today/);
  assert.match(results['3'] ?? '', /not today/);
});

test('a tool that throws is reported to the model as a fault of the tool, and the turn goes on', async (context) => {
  const broken = defineTool({
    name: 'broken',
    description: '',
    input: z.object({}),
    effect: 'changes',
    run: () => Promise.reject(new Error('out of paper')),
  });
  const model = testModel(callTools(rawCall('1', 'broken')), say('I see'));
  const { session } = await openHere(context, model, { tools: [broken] });
  const turn = await session.prompt('print');
  assert.deepEqual([turn.ok, turn.text], [true, 'I see']);
  assert.match(resultsOf(model.requests.at(-1)?.messages ?? [])['1'] ?? '', /out of paper/);
});

test('an outcome of its own goes to the model as it is', async (context) => {
  const picky = defineTool({
    name: 'picky',
    description: '',
    input: z.object({}),
    effect: 'reads',
    run: () => ({ status: 'failed', text: 'there is nothing to pick' }),
  });
  const model = testModel(callTools(rawCall('1', 'picky')), say('I see'));
  const { session } = await openHere(context, model, { tools: [picky] });
  await session.prompt('pick');
  assert.match(JSON.stringify(model.requests.at(-1)?.messages), /there is nothing to pick/);
});
