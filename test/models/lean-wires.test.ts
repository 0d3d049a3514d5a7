/**
 * The golden conversation over every wire, with the packages on the streams that they have in the bundle
 * (scripts/lean-streams.ts): the globals are replaced before any package is loaded.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  LeanReadable,
  LeanTextDecoder,
  LeanTransform,
} from '../../packages/agent/src/platform/web-streams.js';

const made = { transforms: 0, decoders: 0, readables: 0 };

class CountedTransform extends LeanTransform<unknown, unknown> {
  constructor(...parts: ConstructorParameters<typeof LeanTransform>) {
    super(...parts);
    made.transforms++;
  }
}
class CountedDecoder extends LeanTextDecoder {
  constructor() {
    super();
    made.decoders++;
  }
}
class CountedReadable extends LeanReadable<unknown> {
  constructor(...parts: ConstructorParameters<typeof LeanReadable>) {
    super(...parts);
    made.readables++;
  }
}

Object.assign(globalThis, {
  TransformStream: CountedTransform,
  TextDecoderStream: CountedDecoder,
  ReadableStream: CountedReadable,
});
await import('./golden.test.js');

test('the packages were on those streams', () => {
  for (const [kind, count] of Object.entries(made)) assert.ok(count > 4, `${kind}: ${count}`);
});
