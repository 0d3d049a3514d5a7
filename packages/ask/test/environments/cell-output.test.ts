import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstCharacters } from '@pawl/agent/platform/text';
import fc from 'fast-check';
import { collectOutput, cutOutput, wellFormed } from '../../src/environments/cell-output.js';

const someText = fc.string({
  unit: fc.constantFrom('a', 'b', '\n', 'é', '\u{1f600}', '\ud83d'),
  maxLength: 80,
});

describe('output', () => {
  it('is what was added as long as it is within the limit', () => {
    fc.assert(
      fc.property(fc.array(someText, { maxLength: 5 }), (texts) => {
        const output = collectOutput(2_000);
        for (const text of texts) output.add(text);
        assert.equal(output.whole(), wellFormed(texts.join('')));
      }),
    );
  });

  it('keeps head and tail of what is longer, and counts what is missing', () => {
    const output = collectOutput(10);
    for (let digit = 0; digit < 100; digit += 1) output.add(String(digit % 10));
    const [, head = '', count = '', tail = ''] =
      /^(\d*)\n… (\d+) characters left out …\n(\d*)$/.exec(output.whole()) ?? [];
    assert.equal(head, '01234');
    assert.ok(
      '0123456789'.repeat(10).endsWith(tail) && tail.length >= 5 && tail.length <= 10,
      tail,
    );
    assert.equal(head.length + Number(count) + tail.length, 100);
  });

  it('is cut to head and tail between characters, with what is missing counted', () => {
    fc.assert(
      fc.property(someText.map(wellFormed), fc.integer({ min: 0, max: 40 }), (text, most) => {
        const shown = cutOutput(text, most, '; more there');
        if (text.length <= most) {
          assert.equal(shown, text);
          return;
        }
        const found = /^(.*)\n… ([\d,]+) characters left out; more there …\n(.*)$/s.exec(shown);
        const [, head = '', count = '', tail = ''] = found ?? assert.fail(shown);
        assert.ok(text.startsWith(head) && text.endsWith(tail));
        assert.equal(head.length + Number(count) + tail.length, text.length);
        const half = Math.floor(most / 2);
        assert.equal(head, firstCharacters(text, half));
        assert.ok(tail.length <= half && tail.length >= half - 1);
        assert.equal(wellFormed(shown), shown);
      }),
    );
  });

  it('has no half characters', () => {
    assert.equal(wellFormed('a\ud83db\udc00c\u{1f600}'), 'a\ufffdb\ufffdc\u{1f600}');
  });
});
