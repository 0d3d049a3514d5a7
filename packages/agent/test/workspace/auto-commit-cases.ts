import type { Deed } from './place.js';

/** What the agent and the user do, and what is committed then. */
export type Row = {
  readonly title: string;
  /** Rows of one kind stand for each other. Default: it stands alone. */
  readonly kind?: string;
  readonly given?: string;
  /** Batches; after each the phases run. A text is what the user does between them. */
  readonly when: readonly (readonly Deed[] | string)[];
  /** Status and names, with tabs between, of what HEAD changed; none: the last batch leads to no commit. */
  readonly committed?: readonly string[];
  /** `git status --porcelain` afterwards. */
  readonly status?: readonly string[];
  /** Where it is not what the status says: what is inside of submodules and other repositories is not looked at. */
  readonly dirty?: false;
  readonly note?: RegExp;
  readonly warning?: RegExp;
};

export const COMMITTED =
  /^\[auto-commit\] Your changes were committed to main as [0-9a-f]{8}: feat: something \(\d+ files?, \+\d+ -\d+\)/;
export const notCommitted = (name: string, why: string): RegExp =>
  new RegExp(`(^|\n|\\] )Not committed: ${name}: ${why}.*\\.$`, 'm');
const DIRTY = 'it had uncommitted changes before the agent changed it';
const STAGED = 'another version of it is staged';

export const rows: readonly Row[] = [
  {
    title: 'a file that is edited and one that is made are committed',
    when: [
      [
        { edit: 'a', text: 'x' },
        { edit: 'deep/new', text: 'x' },
      ],
    ],
    committed: ['M\ta', 'A\tdeep/new'],
  },
  {
    title:
      'what a command makes, changes, deletes, renames, links and makes executable is committed',
    given:
      'for name in gone moved mode; do echo $name > $name; done; git add .; git commit -qm more',
    when: [
      [
        {
          command:
            'echo x >> a; rm gone; mv moved other; chmod +x mode; ln -s a link; echo x > new',
        },
      ],
    ],
    committed: ['M\ta', 'D\tgone', 'A\tlink', 'M\tmode', 'A\tnew', 'R100\tmoved\tother'],
  },
  {
    title: 'a file becomes a folder and a folder a file',
    kind: 'a file becomes a folder',
    given: 'mkdir d; echo x > d/in; git add .; git commit -qm more',
    when: [[{ command: 'rm a; mkdir a; echo x > a/in; rm -r d; echo y > d' }]],
    committed: ['D\ta', 'R100\td/in\ta/in', 'A\td'],
  },
  {
    title: 'the same, staged',
    kind: 'a file becomes a folder',
    given: 'mkdir d; echo x > d/in; git add .; git commit -qm more',
    when: [[{ command: 'rm a; mkdir a; echo x > a/in; rm -r d; echo y > d; git add -A' }]],
    committed: ['D\ta', 'R100\td/in\ta/in', 'A\td'],
  },
  {
    title: 'a file whose name is no UTF-8 is named, and left alone',
    when: [[{ command: `echo x >> a; echo x > $'odd\\xff'` }]],
    committed: ['M\ta'],
    status: ['?? odd\ufffd'],
    note: notCommitted('odd\ufffd', 'its name is no UTF-8'),
    warning: notCommitted('odd\ufffd', 'its name is no UTF-8'),
  },
  {
    title: 'names with spaces, quotes, line breaks and letters of all kinds',
    when: [[{ command: `touch -- 'a b' $'new\\nline' '"q"' 'ü中🙂' ':(top)x' '*' '-x' $'t\\tb'` }]],
    committed: [
      'A\t"q"',
      'A\t*',
      'A\t-x',
      'A\t:(top)x',
      'A\ta b',
      'A\tnew\nline',
      'A\tt\tb',
      'A\tü中🙂',
    ],
  },
  {
    title: "the user's dirty, staged and new files are left alone",
    given:
      'for name in s p d; do echo x > $name; done; git add .; git commit -qm more; echo user >> b; echo user >> s; git add s; echo staged >> p; git add p; echo more >> p; git rm -q --cached d; echo user > new; echo user > both; git add both; echo more >> both',
    when: [[{ edit: 'a', text: 'x' }]],
    committed: ['M\ta'],
    status: [' M b', 'AM both', 'D  d', 'MM p', 'M  s', '?? d', '?? new'],
  },
  {
    title: 'a file that was dirty before the agent edited it is left alone, and that is said',
    kind: 'dirty before',
    given: 'echo user >> b',
    when: [
      [
        { edit: 'a', text: 'x' },
        { edit: 'b', text: 'x' },
      ],
    ],
    committed: ['M\ta'],
    status: [' M b'],
    note: notCommitted('b', DIRTY),
    warning: notCommitted('b', DIRTY),
  },
  {
    title: 'a file of which the user has staged another text is left alone',
    given: 'echo user > b; git add b; git show HEAD:b > b',
    when: [[{ edit: 'b', text: 'x' }]],
    status: ['MM b'],
    note: notCommitted('b', STAGED),
    warning: notCommitted('b', STAGED),
  },
  {
    title: 'a file of which the user has staged another mode is left alone',
    given: 'git update-index --chmod=+x b',
    when: [[{ edit: 'b', text: 'x' }]],
    status: ['MM b'],
    note: notCommitted('b', STAGED),
    warning: notCommitted('b', STAGED),
  },
  {
    title: 'a file that was dirty before a command changed it is left alone',
    kind: 'dirty before',
    given: 'echo user >> b',
    when: [[{ command: 'echo x >> b' }]],
    status: [' M b'],
    note: notCommitted('b', DIRTY),
    warning: notCommitted('b', DIRTY),
  },
  {
    title: 'what is left alone is said once',
    kind: 'edits in turn',
    given: 'echo user >> b',
    when: [[{ edit: 'b', text: 'x' }], [{ edit: 'b', text: 'y' }]],
    status: [' M b'],
  },
  {
    title: 'when the user has committed it, the file is like any other',
    kind: 'edits in turn',
    given: 'echo user >> b',
    when: [[{ edit: 'b', text: 'x' }], 'git commit -qam theirs', [{ edit: 'b', text: 'y' }]],
    committed: ['M\tb'],
  },
  {
    title: "a file that the user edits between the agent's edits and the commit is left alone",
    given: 'touch .git/MERGE_HEAD',
    when: [
      [{ edit: 'a', text: 'x' }],
      'rm .git/MERGE_HEAD; echo user >> a',
      [{ edit: 'a', text: 'y' }],
    ],
    status: [' M a'],
    note: notCommitted('a', 'somebody else changed it too'),
    warning: notCommitted('a', 'somebody else changed it too'),
  },
  {
    title: 'what could not be committed is committed with the next batch',
    given: 'git rev-parse HEAD > .git/MERGE_HEAD',
    when: [[{ edit: 'a', text: 'x' }], 'rm .git/MERGE_HEAD', [{ edit: 'b', text: 'y' }]],
    committed: ['M\ta', 'M\tb'],
  },
  {
    title: 'what a call has changed that the phases are not told of is committed, too',
    kind: 'unasked',
    when: [
      [
        { command: 'echo x >> a', unasked: true },
        { edit: 'b', text: 'x' },
      ],
    ],
    committed: ['M\ta', 'M\tb'],
  },
  {
    title: "a file that the agent made and a failed call changed further is still the agent's",
    kind: 'unasked',
    when: [
      [
        { edit: 'new', text: 'x' },
        { command: 'echo y >> new', unasked: true },
      ],
    ],
    committed: ['A\tnew'],
  },
  {
    title: 'what the agent committed itself is not committed again',
    kind: 'commits of the agent',
    when: [[{ edit: 'a', text: 'x' }, { command: 'git commit -qam own' }]],
  },
  {
    title: 'what the agent left of its own commit is committed',
    kind: 'commits of the agent',
    when: [[{ command: 'echo x >> a; git commit -qam own; echo y >> b' }]],
    committed: ['M\tb'],
  },
  {
    title: 'what the agent has staged is committed, and is staged no more',
    when: [[{ command: 'echo x >> a; echo x > new; git add .' }]],
    committed: ['M\ta', 'A\tnew'],
  },
  {
    title: 'a new file that the agent has only announced to the index is staged no more',
    when: [[{ command: 'echo x > new; git add -N new' }]],
    committed: ['A\tnew'],
  },
  {
    title: 'what the agent has staged in the form of git is committed',
    given:
      "echo '*.bat text eol=crlf' > .gitattributes; printf 'x\\r\\n' > run.bat; git add .; git commit -qm more",
    when: [[{ edit: 'run.bat', text: 'y\r\n' }, { command: 'git add run.bat' }]],
    committed: ['M\trun.bat'],
  },
  {
    title: 'a file of which the agent has staged an earlier text is left alone, and that is said',
    when: [[{ command: 'echo x > a; git add a; echo y > a' }]],
    status: ['MM a'],
    note: notCommitted('a', STAGED),
    warning: notCommitted('a', STAGED),
  },
  {
    title: 'what was staged while a command ran that can stage nothing is the user’s',
    when: [
      [{ command: 'echo x >> a; echo user >> b; git add b', byWords: 'readsGit' }],
      [{ command: 'git add a' }],
    ],
    status: ['M  b'],
  },
  {
    title: 'without a sandbox such a command may have staged it, so it is the agent’s',
    when: [[{ command: 'echo x >> a; echo y >> b; git add b', byWords: 'readsGit', level: 'off' }]],
    committed: ['M\ta', 'M\tb'],
  },
  {
    title: 'the same of a new file, where a call before has staged',
    kind: 'what was staged while a command ran that can stage nothing is the user’s',
    when: [
      [{ command: 'echo y > staged; git add staged' }],
      [{ command: 'echo x >> a; echo user > new; git add new', byWords: 'readsGit' }],
    ],
    committed: ['M\ta'],
    status: ['A  new'],
    note: notCommitted('new', 'somebody else staged it'),
    warning: notCommitted('new', 'somebody else staged it'),
  },
  {
    title: 'a commit that the agent takes back is not made again',
    kind: 'taken back',
    given: 'echo x >> a; git commit -qam more',
    when: [[{ command: 'git reset -q --soft HEAD~1' }]],
    status: ['M  a'],
  },
  {
    title:
      "a file that was committed and then edited by the user is the user's, and nothing is said of it",
    when: [[{ edit: 'a', text: 'x' }], 'echo user >> a', [{ edit: 'b', text: 'x' }]],
    committed: ['M\tb'],
    status: [' M a'],
  },
  {
    title: "a stash of the user's that the agent pops is not committed",
    kind: 'taken back',
    given: 'echo user >> b; git stash -q',
    when: [[{ command: 'git stash pop -q' }]],
    status: [' M b'],
    note: notCommitted('b', 'it came with a switch'),
    warning: notCommitted('b', 'it came with a switch'),
  },
  {
    title: 'ignored files are not committed, unless they are tracked',
    given: 'echo "out*" > .gitignore; echo x > out1; git add -f .; git commit -qm more',
    when: [
      [
        { edit: 'out1', text: 'y' },
        { edit: 'out2', text: 'y' },
      ],
    ],
    committed: ['M\tout1'],
  },
  {
    title: 'a file for which a filter would have to run is left alone, and that is said',
    kind: 'a filter',
    given:
      "echo '*.bin filter=lfs' > .gitattributes; git add .; git commit -qm more; git config filter.lfs.clean 'echo clean'",
    when: [
      [
        { edit: 'a', text: 'x' },
        { edit: 'x.bin', text: 'big' },
      ],
    ],
    committed: ['M\ta'],
    status: ['?? x.bin'],
    note: notCommitted('x.bin', 'a filter of the repository'),
    warning: notCommitted('x.bin', 'a filter of the repository'),
  },
  {
    title: 'a file that the agent puts under a filter in the same batch',
    kind: 'a filter',
    given: "git config filter.lfs.clean 'echo clean'",
    when: [
      [
        { edit: '.gitattributes', text: '*.bin filter=lfs' },
        { edit: 'x.bin', text: 'big' },
      ],
    ],
    committed: ['A\t.gitattributes'],
    status: ['?? x.bin'],
    note: notCommitted('x.bin', 'a filter of the repository'),
    warning: notCommitted('x.bin', 'a filter of the repository'),
  },
  {
    title: 'a very large file is left alone, and that is said',
    when: [[{ command: 'truncate -s 21M core' }, { edit: 'a', text: 'x' }]],
    committed: ['M\ta'],
    status: ['?? core'],
    note: notCommitted('core', 'it is larger than 20 MiB'),
    warning: notCommitted('core', 'it is larger than 20 MiB'),
  },
  {
    title: 'very many new files are not committed, and that is said',
    when: [[{ command: 'mkdir many; touch many/{1..1001}' }]],
    status: ['?? many/'],
    warning: /1001 files are too many for an automatic commit\. Commit them, or ignore them/,
  },
  {
    title: 'files of a submodule are left alone, and that is said',
    given:
      'git clone -q . ../other; git -c protocol.file.allow=always submodule --quiet add ../other sub; git commit -qm sub',
    when: [
      [
        { edit: 'a', text: 'x' },
        { edit: 'sub/a', text: 'x' },
        { command: 'git -C sub commit -qam inside' },
      ],
    ],
    committed: ['M\ta'],
    status: [' M sub'],
    dirty: false,
    note: notCommitted('sub/a', 'it belongs to a repository inside'),
    warning: notCommitted('sub/a', 'it belongs to a repository inside'),
  },
  {
    title: 'a repository that the agent makes inside is left alone',
    when: [[{ command: 'git init -q inner; echo x > inner/a; echo x >> a' }]],
    committed: ['M\ta'],
    status: ['?? inner/'],
    dirty: false,
  },
  {
    title: 'the first commit of a branch without commits',
    kind: 'a first commit',
    given:
      'git checkout -q --orphan fresh; git rm -rqf .; git branch -qD main; git symbolic-ref HEAD refs/heads/main',
    when: [[{ edit: 'new', text: 'x' }]],
    committed: ['A\tnew'],
  },
  {
    title: 'the first commit while other files are staged',
    kind: 'a first commit',
    given:
      'git checkout -q --orphan fresh; git branch -qD main; git symbolic-ref HEAD refs/heads/main',
    when: [[{ edit: 'new', text: 'x' }]],
    committed: ['A\tnew'],
    status: ['A  a', 'A  b'],
  },
  {
    title: 'line endings are stored as the repository wants them',
    given: "echo '* text=auto' > .gitattributes; git add .; git commit -qm more",
    when: [[{ edit: 'a', text: 'one\r\ntwo\r\n' }]],
    committed: ['M\ta'],
  },
  {
    title: 'a file that is marked as unchanged is none',
    given: 'git update-index --assume-unchanged a',
    when: [[{ edit: 'a', text: 'x' }]],
  },
  {
    title: 'files outside of the repository are none of its business',
    when: [
      [
        { edit: '../outside', text: 'x' },
        { edit: 'a', text: 'x' },
      ],
    ],
    committed: ['M\ta'],
  },
];
