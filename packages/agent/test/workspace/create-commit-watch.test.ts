import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { chooseRows } from '../../../../test/tier.js';
import { type Deed, makeRepository, makeSession } from './place.js';

type Row = {
  readonly title: string;
  /** Before the session begins. */
  readonly given?: string;
  readonly when: readonly Deed[];
  /** Subjects with statistics, newest first. */
  readonly commits?: readonly string[];
  /** In the note, in this order; hashes stand as HASH. None: there is no note. */
  readonly note?: readonly string[];
  readonly changed?: readonly string[];
  readonly dirty?: boolean;
  readonly warning?: RegExp;
};

const commit = (subject: string, file = 'a'): string =>
  `echo ${subject} >> ${file} && git commit -qam '${subject}'`;
const CLEAN = 'The working tree is clean.';
const onward = 'main went on from HASH to HASH.';

const rows: readonly Row[] = [
  { title: 'a command that changes nothing leaves no note', when: [{ command: 'true' }] },
  {
    title: 'a file that is edited is changed and makes the tree dirty',
    when: [{ edit: 'a', text: 'two' }],
    changed: ['a'],
    dirty: true,
  },
  {
    title: "a file that was dirty before is no change of the agent's",
    given: 'echo user >> b',
    when: [{ command: 'echo x >> a' }],
    changed: ['a'],
    dirty: true,
  },
  {
    title: 'a dirty file that a command changes further is changed',
    given: 'echo user >> b',
    when: [{ command: 'echo x >> b' }],
    changed: ['b'],
    dirty: true,
  },
  {
    title: 'a dirty file that a command puts back is changed',
    given: 'echo user >> b',
    when: [{ command: 'git checkout -q b' }],
    changed: ['b'],
  },
  {
    title: 'new, deleted and executable files are changed',
    when: [{ command: 'echo x > new; rm a; chmod +x b' }],
    changed: ['a', 'b', 'new'],
    dirty: true,
  },
  {
    title: 'an ignored file is none',
    given: 'echo out > .git/info/exclude',
    when: [{ command: 'echo x > out' }],
  },
  {
    title: 'a new commit is told with its statistics, and its files are changed',
    when: [{ command: commit('feat: more') }],
    commits: ['feat: more (1 file, +1 -0)'],
    note: [onward, '1 new commit on main:', '  HASH feat: more (1 file, +1 -0)', CLEAN],
    changed: ['a'],
  },
  {
    title: "a file of the user's that is committed along is not changed",
    given: 'echo user >> b',
    when: [{ command: 'echo x >> a; git commit -qam all' }],
    commits: ['all (2 files, +2 -0)'],
    note: [onward, '1 new commit on main:', '  HASH all (2 files, +2 -0)', CLEAN],
    changed: ['a'],
  },
  {
    title: 'two commits in two calls are told newest first, and what is left uncommitted',
    when: [{ command: commit('one') }, { command: `${commit('two', 'b')}; echo x > new` }],
    commits: ['two (1 file, +1 -0)', 'one (1 file, +1 -0)'],
    note: [
      onward,
      '2 new commits on main:',
      '  HASH two (1 file, +1 -0)',
      '  HASH one (1 file, +1 -0)',
      '1 file with uncommitted changes.',
    ],
    changed: ['a', 'b', 'new'],
    dirty: true,
  },
  {
    title: 'of many commits 20 are listed and the rest is counted',
    when: [{ command: 'for i in $(seq 25); do git commit -q --allow-empty -m n$i; done' }],
    commits: Array.from({ length: 20 }, (_, index) => `n${25 - index} (0 files, +0 -0)`),
    note: [
      onward,
      '25 new commits on main:',
      ...Array.from({ length: 20 }, (_, index) => `  HASH n${25 - index} (0 files, +0 -0)`),
      '  and 5 more',
      CLEAN,
    ],
    warning: /^25 new commits, of which the newest 20 are shown\.$/,
  },
  {
    title: 'a commit of a call that failed is told too, with the next one that did not',
    when: [{ command: commit('one'), unasked: true }, { command: 'true' }],
    commits: ['one (1 file, +1 -0)'],
    note: [onward, '1 new commit on main:', '  HASH one (1 file, +1 -0)', CLEAN],
    changed: ['a'],
  },
  {
    title: 'an amended commit is told as one that was replaced',
    when: [{ command: 'git commit -q --amend -m better' }],
    commits: ['better (2 files, +2 -0)'],
    note: [
      'The last commit of main, HASH, was replaced by HASH.',
      '1 new commit on main:',
      '  HASH better (2 files, +2 -0)',
      CLEAN,
    ],
  },
  {
    title: 'a rebase is told as a history that was rewritten',
    given: `git checkout -qb side && ${commit('s1')} && ${commit('s2')} && git checkout -q main && ${commit('m1', 'b')} && git checkout -q side`,
    when: [{ command: 'git rebase -q main' }],
    commits: ['s2 (1 file, +1 -0)', 's1 (1 file, +1 -0)'],
    note: [
      'The history of side was rewritten, from HASH to HASH: 2 commits gone from it, 3 new in their place.',
      '2 new commits on side:',
      '  HASH s2 (1 file, +1 -0)',
      '  HASH s1 (1 file, +1 -0)',
      CLEAN,
    ],
    warning: /^The history of side was rewritten/,
  },
  {
    title: 'a reset is told as a branch that went back',
    given: `${commit('one')} && ${commit('two')}`,
    when: [{ command: 'git reset -q --hard HEAD~2' }],
    note: ['main went back by 2 commits, from HASH to HASH.', CLEAN],
    warning: /^main went back by 2 commits/,
  },
  {
    title: 'a commit that is taken back leaves its file uncommitted, and not changed',
    given: commit('one'),
    when: [{ command: 'git reset -q --soft HEAD~1' }],
    note: ['main went back by 1 commit, from HASH to HASH.', '1 file with uncommitted changes.'],
    dirty: true,
    warning: /^main went back by 1 commit/,
  },
  {
    title: 'a switch to a branch with commits of its own tells of none that is new',
    given: `git checkout -qb side && ${commit('s1')} && git checkout -q main`,
    when: [{ command: 'git checkout -q side' }],
    note: ['HEAD went from main to side at HASH.', CLEAN],
  },
  {
    title: 'a new branch with a commit is told as both',
    when: [{ command: `git checkout -qb side && ${commit('s1')}` }],
    commits: ['s1 (1 file, +1 -0)'],
    note: [
      'HEAD went from main to side at HASH.',
      '1 new commit on side:',
      '  HASH s1 (1 file, +1 -0)',
      CLEAN,
    ],
    changed: ['a'],
  },
  {
    title: 'a HEAD that is detached, and a commit on it',
    when: [{ command: `git checkout -q --detach && ${commit('d1')}` }],
    commits: ['d1 (1 file, +1 -0)'],
    note: [
      'HEAD went from main to a detached HEAD at HASH.',
      '1 new commit on a detached HEAD:',
      '  HASH d1 (1 file, +1 -0)',
      CLEAN,
    ],
    changed: ['a'],
  },
  {
    title: 'a branch without commits',
    when: [{ command: 'git checkout -q --orphan bare && git rm -rqf .' }],
    note: ['HEAD went from main to bare, which has no commits yet.', CLEAN],
  },
  {
    title: 'the first commit of a branch without commits',
    given: 'git checkout -q --orphan fresh',
    when: [{ command: 'git commit -qm root' }],
    commits: ['root (2 files, +2 -0)'],
    note: [
      'fresh has its first commits, up to HASH.',
      '1 new commit on fresh:',
      '  HASH root (2 files, +2 -0)',
      CLEAN,
    ],
  },
  {
    title: 'another history under the same name',
    given: commit('second'),
    when: [
      { command: 'git checkout -q --orphan x && git commit -qm other && git branch -M x main' },
    ],
    commits: ['other (2 files, +3 -0)'],
    note: [
      'main went from HASH to HASH, which has no history in common with it.',
      '1 new commit on main:',
      '  HASH other (2 files, +3 -0)',
      CLEAN,
    ],
    warning: /no history in common/,
  },
  {
    title: 'of a merge only the merge is new, and its files are not the changes of the batch',
    given: `git checkout -qb side && ${commit('s1')} && git checkout -q main && ${commit('m1', 'b')}`,
    when: [{ command: 'git merge -q --no-edit side' }],
    commits: ["Merge branch 'side' (1 file, +1 -0)"],
    note: [onward, '1 new commit on main:', "  HASH Merge branch 'side' (1 file, +1 -0)", CLEAN],
  },
  {
    title: 'a fast-forward to a branch that was there has no new commit',
    given: `git checkout -qb side && ${commit('s1')} && git checkout -q main`,
    when: [{ command: 'git merge -q --ff-only side' }],
    note: [onward, CLEAN],
  },
  {
    title: 'commits that are fetched are new, and their files are not the changes of the batch',
    given: `git clone -q . ../other && (cd ../other && ${commit('theirs')}) && git remote add origin ../other && git fetch -q && git branch -q -u origin/main && git update-ref -d refs/remotes/origin/main`,
    when: [{ command: 'git pull -q --ff-only origin main:refs/remotes/origin/main' }],
    commits: ['theirs (1 file, +1 -0)'],
    note: [onward, '1 new commit on main:', '  HASH theirs (1 file, +1 -0)', CLEAN],
  },
  {
    title: 'a subject with control characters is one line without them',
    when: [{ command: "git commit -q --allow-empty -m $'a\\e[31mb\\tc\u202ed'" }],
    commits: ['a [31mb cd (0 files, +0 -0)'],
    note: [onward, '1 new commit on main:', '  HASH a [31mb cd (0 files, +0 -0)', CLEAN],
  },
  {
    title: 'a repository that a command makes',
    given: 'rm -rf .git',
    when: [{ command: 'git init -q -b main && git add . && git commit -qm first' }],
    commits: ['first (2 files, +2 -0)'],
    note: [
      'main has its first commits, up to HASH.',
      '1 new commit on main:',
      '  HASH first (2 files, +2 -0)',
      CLEAN,
    ],
  },
];

/** Rows whose note begins alike stand for each other. */
const kindOf = ({ note = ['none'] }: Row): string => note.join(' ').split(' ', 3).join(' ');

for (const row of chooseRows(rows, kindOf)) {
  test(`new commits: ${row.title}`, async (t) => {
    const place = await makeRepository(t);
    if (row.given !== undefined) await place.shell(row.given);
    const session = makeSession(place);
    const report = await session.check(session.context(await session.batch(row.when)));
    const note = report.note.replace(/^\[git\] /, '').replace(/\b[0-9a-f]{8}\b/g, 'HASH');
    assert.deepEqual(note === '' ? [] : note.split('\n'), row.note ?? []);
    assert.deepEqual(
      report.commits.map(({ subject }) => subject),
      row.commits ?? [],
    );
    assert.deepEqual(
      report.changedFiles.map((file) => path.relative(place.workspace, file)).sort(),
      row.changed ?? [],
    );
    assert.equal(report.dirty, row.dirty ?? false);
    assert.match(report.warning, row.warning ?? /^$/);
    assert.equal(report.proceed, true);
  });
}
