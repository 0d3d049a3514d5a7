import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expandArguments } from '../../src/extensions/skills/read-skill.js';

const rows: readonly (readonly [body: string, given: string, then: string])[] = [
  ['Fix $ARGUMENTS now', 'a b', 'Fix a b now'],
  ['$1 before $2, not $3.', '"two words" b', 'two words before b, not .'],
  ['$1 and $1', 'x', 'x and x'],
  ['costs $10 or $100', '', 'costs $10 or $100'],
  ['$ARGUMENTSX $0 $A', '', '$ARGUMENTSX $0 $A'],
  ['Review', 'src/a.ts', 'Review\n\nArguments: src/a.ts'],
  ['Review', '', 'Review'],
  // An argument is never read again, and nothing is run.
  ['$1 $ARGUMENTS', '$2 $& $ARGUMENTS', '$2 $2 $& $ARGUMENTS'],
  ['!`touch /tmp/pawl-was-here` $1', 'x', '!`touch /tmp/pawl-was-here` x'],
];

for (const [body, given, then] of rows)
  test(`${JSON.stringify(body)} with ${JSON.stringify(given)}`, () => {
    assert.equal(expandArguments(body, given), then);
  });
