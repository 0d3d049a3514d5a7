import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { until } from '../../../../test/until.js';
import { type Environment, prepareAsk, program, startAsk, submit, TRIED } from './asking.js';
import { expectCode, makePlace, readRecords } from './pawl.js';

/** Programs that would do harm: each hurts nothing, the model is told of it, and the run goes on to its answer. */

const SECRET = 'nobody-is-to-read-this';

type Harms = Readonly<Record<'endless' | 'greedy' | 'file' | 'socket' | 'exit', string>>;

const javascript = (file: string, port: number): Harms => ({
  endless: 'for (;;) {}',
  greedy: 'hoard = []; for (;;) hoard.push("x".repeat(1000) + hoard.length);',
  file: `print(require("node:fs").readFileSync(${JSON.stringify(file)}, "utf8"));`,
  socket: `await new Promise((resolve, reject) => require("node:net").connect(${port}, "127.0.0.1", resolve).on("error", reject));`,
  exit: 'process.exit(0);',
});

const harmsOf: Readonly<Record<Environment, (file: string, port: number) => Harms>> = {
  javascript,
  quickjs: javascript,
  python: (file, port) => ({
    endless: 'while True: pass',
    greedy: 'hoard = []\nwhile True: hoard.append("x" * 1000 + str(len(hoard)))',
    file: `print(open(${JSON.stringify(file)}).read())`,
    socket: `import socket\nsocket.create_connection(("127.0.0.1", ${port}), 5)`,
    exit: 'import os\nos._exit(0)',
  }),
};

/** What the model must read after each; variables outlive what is only stopped. */
const scriptOf = (environment: Environment, harms: Harms): Script => {
  const told = (matches: string) => ({ expect: { last: { matches, lacks: SECRET } } });
  const keep = program(environment === 'python' ? 'kept = 42' : 'kept = 42;');
  const show = program('print("kept is", kept)');
  return {
    replies: [
      { text: keep },
      { text: program(harms.endless) },
      { ...told('stopped before its end'), text: show },
      { ...told('kept is 42'), text: program(harms.file) },
      { ...told('Errors:'), text: program(harms.socket) },
      { ...told('Errors:'), text: show },
      { ...told('kept is 42'), text: program(harms.exit) },
      { ...told('Errors:'), text: program('print("still here")') },
      { ...told('still here'), text: program(harms.greedy) },
      // on a slow machine its time is up before its memory is
      {
        ...told('Errors:|stopped before its end'),
        text: program('print("here again", context)'),
      },
      { ...told('here again abc'), text: submit(environment, '"unharmed"') },
    ],
  };
};

for (const environment of TRIED) {
  test(`${environment}: programs that loop, hoard, read files, connect or exit hurt nothing and are reported`, async (context) => {
    const place = makePlace(context, { PAWL_CELL_MS: '1500' });
    const secret = join(place.workspace, 'secret.txt');
    writeFileSync(secret, SECRET);
    let connections = 0;
    const server = createServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    context.after(() => server.close());
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    const script = scriptOf(environment, harmsOf[environment](secret, address.port));
    const running = startAsk(
      place,
      prepareAsk(place, script),
      '--environment',
      environment,
      '--json',
    );
    const ended = await running.ended;
    expectCode(ended, 0);
    const result = readRecords(ended.stdout).at(-1);
    assert.ok(result?.type === 'result');
    assert.equal(result.text, 'unharmed');
    assert.equal(connections, 0);
    assert.ok(!ended.stdout.includes(SECRET));
    await until('the end of all processes', () => processesWith(place.workspace).length === 0);
  });
}
