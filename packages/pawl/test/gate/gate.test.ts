import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gateCases, gatePresets } from './gate-cases.js';
import { decisionsOf, expectedOf, faces, makeStage } from './gate-faces.js';

/** Whatever asks for an effect passes the same policy: one table of calls, through every face. */

for (const face of faces) {
  describe(`the calls of the gate's table, by ${face.name}`, () => {
    for (const preset of face.presets ?? gatePresets) {
      test(`preset ${preset}`, async (t) => {
        const stage = makeStage(t);
        await face.run(stage, preset);
        assert.deepEqual(await decisionsOf(stage), expectedOf(face, preset, gateCases));
      });
    }
  });
}
