import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { askedActions } from '../../packages/agent/src/machine/asked-actions.js';
import { agent } from '../../packages/agent/src/machine/machine.js';
import { markdownTable, mermaid } from '../../packages/machine/src/kernel/diagrams.js';
import { ASKED_ACTIONS, askedActionsText } from '../../scripts/asked-actions.js';
import {
  answersTable,
  cutOut,
  DRIVE_EXAMPLE,
  emptyMachineDocument,
  exampleOf,
  fenced,
  splice,
} from '../../scripts/diagram.js';

const DOCUMENT = 'before\n<!-- diagram:begin -->\nold\n<!-- diagram:end -->\nafter\n';

const textOf = (file: string): string =>
  readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

describe('documents show what the table says', () => {
  it('puts a diagram between its markers and leaves the rest alone', () => {
    const spliced = splice(DOCUMENT, 'diagram', 'new\n');
    assert.equal(spliced, DOCUMENT.replace('old', 'new'));
    assert.equal(splice(spliced, 'diagram', 'new'), spliced);
    assert.equal(cutOut(spliced, 'diagram'), 'new');
  });

  it('refuses a document without a place for it', () => {
    assert.throws(
      () => splice('text', 'diagram', 'new'),
      /add <!-- diagram:begin --> and <!-- diagram:end -->/,
    );
    assert.throws(() => splice(DOCUMENT, 'table', 'new'), /no place for the table/);
    assert.equal(cutOut('text', 'diagram'), null);
  });

  it('starts docs/design/machine.md with a place for both', () => {
    assert.equal(cutOut(emptyMachineDocument, 'diagram'), '');
    assert.equal(cutOut(emptyMachineDocument, 'table'), '');
  });

  it('docs/design/machine.md shows the diagram of the table (if not: npm run update)', () => {
    assert.equal(cutOut(textOf('docs/design/machine.md'), 'diagram'), fenced(mermaid(agent)));
  });

  it('docs/design/machine.md shows the answers to actions and the example (if not: npm run update)', () => {
    assert.equal(cutOut(textOf('docs/design/machine.md'), 'answers'), answersTable());
    assert.equal(
      cutOut(textOf('docs/design/machine.md'), 'example'),
      exampleOf(textOf(DRIVE_EXAMPLE)),
    );
  });

  it('the actions of each arrow are those of the traces (if not: npm run update)', () => {
    assert.equal(textOf(ASKED_ACTIONS), askedActionsText());
  });

  it('docs/design/machine.md shows the table (if not: npm run update)', () => {
    assert.equal(
      cutOut(textOf('docs/design/machine.md'), 'table'),
      markdownTable(agent, askedActions).trim(),
    );
  });
});
