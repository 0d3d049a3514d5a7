import '../own-process.js';
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { askAbout } from '../../bench/shapes/measure.js';
import { taskNames, writeTask } from '../../bench/shapes/tasks.js';
import { temporaryFolder } from '../temporary-folder.js';

for (const task of taskNames) {
  test(`${task}: the answer is right, and ten times the input sends no more to models`, async (context) => {
    const folder = temporaryFolder(context, 'shapes-test');
    const sent: number[] = [];
    for (const characters of [8_000, 80_000]) {
      const file = path.join(folder, `${characters}.txt`);
      const { question, answer } = writeTask(task, characters, file);
      const asked = await askAbout(file, question, 'javascript');
      assert.equal(asked.answer, answer);
      sent.push(asked.sent.characters);
    }
    const [small = 0, large = 0] = sent;
    assert.ok(
      small > 0 && Math.abs(large - small) < small / 50,
      `${small} characters, then ${large}`,
    );
  });
}
