import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JournalError, type JournalErrorKind, outOfRange } from '@pawl/agent/journal/journal-error';
import { toApiFault } from '../src/api-fault.js';

/** Errors of journals, and of a runtime on an engine, as the API says them. */

const engineError = (status: number): Error =>
  Object.assign(new Error('what the engine said'), { name: 'EngineError', status });

test('an error of a journal is the fault that its kind means, without files of the node', () => {
  const rows: readonly (readonly [JournalErrorKind, string | undefined])[] = [
    ['notFound', 'notFound'],
    ['otherMachine', 'notFound'],
    ['locked', 'conflict'],
    ['takenOver', 'conflict'],
    ['foreignChange', 'conflict'],
    ['damaged', 'unreadable'],
    ['newerVersion', 'unreadable'],
    ['cannotRead', 'unreadable'],
    ['cannotWrite', undefined],
  ];
  for (const [kind, code] of rows) {
    const fault = toApiFault(new JournalError(kind, '/state/s1', 'in /state/s1: it is empty'));
    assert.equal(fault?.code, code, kind);
    assert.doesNotMatch(fault?.message ?? '', /state|empty/);
    assert.match(fault?.message ?? '.', /\.$/);
  }
  const { code, message } = toApiFault(outOfRange('/state/s1', 9, 4)) ?? assert.fail();
  assert.equal(code, 'badRequest');
  assert.match(message, /^There is no entry 9 in the session: it holds entries 1 to 4\./);
});

test('an error of the engine is the fault that its status means, and never an internal one', () => {
  const faults = [400, 404, 409, 413, 429, 500, 503].map((status) => {
    const fault = toApiFault(engineError(status));
    return [status, fault?.code, fault?.status, fault?.retryAfter];
  });
  assert.deepEqual(faults, [
    [400, 'badRequest', 400, null],
    [404, 'notFound', 404, null],
    [409, 'conflict', 409, null],
    [413, 'tooLarge', 413, null],
    [429, 'unavailable', 503, 5],
    [500, 'unavailable', 503, 5],
    [503, 'unavailable', 503, 5],
  ]);
  const other = Object.assign(new Error('update this node'), { name: 'OtherMachineError' });
  assert.deepEqual(
    [toApiFault(other)?.code, toApiFault(other)?.message],
    ['unavailable', 'update this node, or ask another node.'],
  );
  assert.equal(toApiFault(new Error('a fault of the node')), null);
});
