import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chooseEnvironment } from '../../src/create-asker.js';
import type { EnvironmentKind, EnvironmentName } from '../../src/ports.js';

type Row = {
  readonly title: string;
  readonly given: Partial<Record<EnvironmentName, string>>;
  readonly when: EnvironmentName | null;
  readonly then: {
    readonly chosen?: EnvironmentName;
    readonly note?: string | null;
    readonly why?: string;
  };
};

const rows: readonly Row[] = [
  {
    title: 'javascript where it works',
    given: {},
    when: null,
    then: { chosen: 'javascript', note: null },
  },
  {
    title: 'quickjs where javascript does not work, and it is said why',
    given: { javascript: 'bwrap is missing: install bubblewrap' },
    when: null,
    then: {
      chosen: 'quickjs',
      note: "code runs in QuickJS, which is slower: javascript can't be used here: bwrap is missing: install bubblewrap",
    },
  },
  {
    title: 'both reasons where neither works, and never python unasked',
    given: { javascript: 'no bwrap', quickjs: 'no threads' },
    when: null,
    then: {
      why: "javascript can't be used here: no bwrap; quickjs can't be used here: no threads",
    },
  },
  {
    title: 'quickjs by name, without a word about another',
    given: {},
    when: 'quickjs',
    then: { chosen: 'quickjs', note: null },
  },
  { title: 'python by name', given: {}, when: 'python', then: { chosen: 'python', note: null } },
  {
    title: 'nothing else where the wanted one does not work',
    given: { python: 'there is no python3: install it' },
    when: 'python',
    then: { why: "python can't be used here: there is no python3: install it" },
  },
  {
    title: 'nothing else where javascript is wanted by name and does not work',
    given: { javascript: 'no bwrap' },
    when: 'javascript',
    then: { why: "javascript can't be used here: no bwrap" },
  },
];

const kindsThat = (fail: Row['given']): Readonly<Record<EnvironmentName, EnvironmentKind>> => {
  const kind = (name: EnvironmentName): EnvironmentKind => ({
    name,
    language: name === 'python' ? 'python' : 'javascript',
    probe: () => Promise.resolve(fail[name] ?? null),
    start: () => assert.fail('choosing starts nothing'),
  });
  return { javascript: kind('javascript'), quickjs: kind('quickjs'), python: kind('python') };
};

describe('the choice of an environment', () => {
  for (const { title, given, when, then } of rows) {
    it(title, async () => {
      const choice = await chooseEnvironment(when, kindsThat(given));
      const seen =
        choice.status === 'chosen'
          ? { chosen: choice.kind.name, note: choice.note }
          : { why: choice.why };
      assert.deepEqual(seen, then);
    });
  }
});
