import assert from 'node:assert/strict';
import { fstatSync, writeSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { makeFolder } from '../../../../test/kit/journal/story.js';
import {
  type FileTarget,
  fileTarget,
  GroupWriter,
  type WriterEnvironment,
} from '../../src/journal/writer.js';

/** The file belongs to the writer, whatever happens. */
const OWNED: WriterEnvironment = {
  before: async () => undefined,
  after: () => undefined,
  explain: async (error) => error,
  freeSpace: () => false,
};

/** A real file whose operations are counted, and may be made to fail. */
const openCounted = async (context: TestContext, environment = OWNED) => {
  const path = join(await makeFolder(context), 'file');
  const handle = await open(path, 'w+');
  const calls: string[] = [];
  const failing = new Set<string>();
  const note = (name: string): void => {
    calls.push(name);
    if (failing.has(name))
      throw Object.assign(new Error(`EIO: i/o error, ${name}`), { code: 'EIO' });
  };
  const target: FileTarget = {
    // At most 4 bytes at once.
    write: (bytes, offset, length, position) => {
      note('write');
      return writeSync(handle.fd, bytes, offset, Math.min(4, length), position);
    },
    datasync: async () => {
      note('datasync');
      await handle.datasync();
    },
    truncate: async (size) => {
      note('truncate');
      await handle.truncate(size);
    },
    close: () => handle.close(),
  };
  const count = (name: string): number => calls.filter((call) => call === name).length;
  return { path, failing, count, writer: new GroupWriter(target, environment, path, 0) };
};

test('what comes while a group is on its way goes together: few syncs for many writes', async (context) => {
  const { writer, path, count } = await openCounted(context);
  const first = writer.write(Buffer.from('first '));
  await Promise.resolve();
  await Promise.resolve();
  await Promise.all([
    first,
    ...Array.from({ length: 50 }, (_, index) => writer.write(Buffer.from(`${index} `))),
  ]);
  assert.equal(count('datasync'), 2);
  assert.equal(
    await readFile(path, 'utf8'),
    `first ${Array.from({ length: 50 }, (_, index) => `${index} `).join('')}`,
  );
  assert.equal(writer.size, (await readFile(path)).length);
  await writer.close();
});

for (const fault of ['write', 'datasync']) {
  test(`when ${fault} fails, all of the group and what waits is refused, and nothing of it stays`, async (context) => {
    const { writer, path, failing, count } = await openCounted(context);
    await writer.write(Buffer.from('durable\n'));
    failing.add(fault);
    const writes = [writer.write(Buffer.from('one\n')), writer.write(Buffer.from('two\n'))];
    await Promise.resolve();
    await Promise.resolve();
    writes.push(writer.write(Buffer.from('three\n')));
    for (const { status, ...rest } of await Promise.allSettled(writes)) {
      assert.equal(status, 'rejected');
      assert.ok('reason' in rest);
      assert.equal(rest.reason.kind, 'cannotWrite');
      assert.match(rest.reason.message, /EIO.*system's log.*open the session again/);
    }
    assert.equal(await readFile(path, 'utf8'), 'durable\n');
    failing.clear();
    const syncs = count('datasync');
    await assert.rejects(writer.write(Buffer.from('later\n')), { kind: 'cannotWrite' });
    assert.equal(count('datasync'), syncs);
    assert.equal(await readFile(path, 'utf8'), 'durable\n');
    await writer.close();
  });
}

test('a write is refused while a failure is being explained', async (context) => {
  const late: Promise<void>[] = [];
  const { writer, failing } = await openCounted(context, {
    ...OWNED,
    explain: async (error) => {
      late.push(writer.write(Buffer.from('two\n')));
      return error;
    },
  });
  failing.add('write');
  await assert.rejects(writer.write(Buffer.from('one\n')), { kind: 'cannotWrite' });
  assert.equal(late.length, 1);
  await assert.rejects(Promise.race([...late, setImmediate(0)]), { kind: 'cannotWrite' });
  await writer.close();
});

test('when not even cutting back works, the first failure is the one that is told', async (context) => {
  const { writer, failing } = await openCounted(context);
  failing.add('datasync').add('truncate');
  await assert.rejects(writer.write(Buffer.from('one\n')), {
    kind: 'cannotWrite',
    message: /datasync/,
  });
  await writer.close();
});

test('a part of a group is cut off before another program can append to it', async (context) => {
  const handle = await open(join(await makeFolder(context), 'file'), 'w+');
  writeSync(handle.fd, 'a line\nhalf a');
  const cutting = fileTarget(handle).truncate(7);
  assert.equal(fstatSync(handle.fd).size, 7);
  await cutting;
  await handle.close();
});
