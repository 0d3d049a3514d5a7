import assert from 'node:assert/strict';
import { test } from 'node:test';
import type * as needs from '../../src/needs-recursive.js';
import type * as recursive from '../../src/recursive/cell.js';

/** What an environment reports is what the machine takes: two types on two floors, and the same. */

type Same<A, B> = [A, B] extends [B, A] ? true : false;

test('the environment’s report is the machine’s', () => {
  const report: Same<needs.CellReport, recursive.CellReport> = true;
  const kind: Same<needs.Subcall['kind'], recursive.SubcallKind> = true;
  assert.ok(report && kind);
});
