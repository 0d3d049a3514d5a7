import type { Case } from '../../../../test/kit/sandbox/fence.js';
import type { Step } from '../../../../test/kit/sandbox/fence-runner.js';
import type { CommandLevel } from '../../src/policy/decide.js';
import type { RepositoryAccess } from '../../src/policy/repository-access.js';

/** Scripts that try to delete history, and the judge: the user's own git, outside the sandbox. */

const COMMIT = 'git -c user.name=a -c user.email=a@x commit -q';

/** A history in packs and loose objects: branches, a tag, two stashes, and a commit that only a reflog names. */
export const HISTORY = [
  'git init -q -b main .',
  `for n in 1 2 3; do echo $n > file$n; git add .; ${COMMIT} -m c$n; done`,
  `git checkout -q -b side; echo s > side; git add .; ${COMMIT} -m side; git checkout -q main`,
  'git tag light side~1; git -c user.name=a -c user.email=a@x tag -a -m heavy heavy side',
  'git gc -q',
  `git checkout -q -b loose; echo l > loose; git add .; ${COMMIT} -m loose; echo m >> loose; ${COMMIT} -a --amend -m amended`,
  'git checkout -q main',
  `for n in 1 2; do echo stash$n > file1; git -c user.name=a -c user.email=a@x stash -q; done`,
  'echo staged > staged; git add staged',
].join('\n');

/** Remembers which commits there are, in the folder `outside`. `REPO`: where git looks. */
const REMEMBER =
  'git -C "$REPO" rev-list --all --reflog | sort > ../../outside/commits; git -C "$REPO" stash list | wc -l > ../../outside/stashes';

const JUDGE = [
  // A repository that was renamed is looked for.
  '[ -d "$REPO" ] || REPO=$(find "$WORK" -mindepth 3 -name .git -printf "%h\\n" | head -n 1)',
  'cd "$REPO" || exit 0',
  `OUT=$(cd "$WORK/../../outside" && pwd)`,
  'git rev-list --all --reflog 2>/dev/null | sort > "$OUT/now"',
  'missing=$(comm -23 "$OUT/commits" "$OUT/now" | wc -l)',
  'git cat-file --batch-check < "$OUT/commits" 2>/dev/null | grep -q missing && broken=objects',
  '[ "$BARE" = 1 ] || git status --short >/dev/null 2>&1 || broken="$broken status"',
  '[ "$BARE" = 1 ] || [ "$(git ls-files | wc -l)" -gt 0 ] || broken="$broken index"',
  'git fsck --no-dangling >"$OUT/fsck" 2>&1 || broken="$broken fsck: $(tail -n 3 "$OUT/fsck")"',
  '[ "$missing" = 0 ] && [ -z "$broken" ] && echo KEPT || echo "LOST missing=$missing broken=$broken"',
].join('\n');

export type Attack = {
  readonly name: string;
  /** What it attacks, where others attack it too. */
  readonly kind?: string;
  /** A script in the workspace. `$G` is the git folder. */
  readonly script: string;
  /** Instead of the usual one. It sets up the folder `REPO`. */
  readonly setup?: string;
  readonly repo?: string;
  readonly gitFolder?: string;
  readonly isBare?: true;
  /** The script ends when it is killed. */
  readonly hangs?: true;
};

const python = (text: string): string => `python3 - <<'X'\n${text}\nX`;

export const ATTACKS: readonly Attack[] = [
  { name: 'deletes .git', kind: 'all of it', script: 'rm -rf $G; rm -rf $G/*' },
  {
    name: 'deletes all objects',
    kind: 'folders of objects',
    script: 'rm -rf $G/objects; rm -rf $G/objects/*',
  },
  {
    name: 'deletes all refs',
    kind: 'refs',
    script: 'rm -rf $G/refs $G/packed-refs; rm -rf $G/refs/*; rm -rf $G/logs',
  },
  {
    name: 'deletes reflogs and a stash',
    kind: 'reflogs',
    script: 'rm -rf $G/logs $G/logs/* $G/refs/stash',
  },
  {
    name: 'deletes refs with update-ref',
    kind: 'refs',
    script:
      'git for-each-ref --format="%(refname)" | while read r; do git update-ref -d $r; done; git reflog expire --expire=now --all',
  },
  {
    name: 'expires reflogs and collects garbage',
    kind: 'reflogs',
    script:
      'git stash clear; git branch -D side loose; git tag -d light heavy; git reflog expire --expire=now --expire-unreachable=now --all; git -c gc.reflogExpire=now gc -q --prune=now',
  },
  {
    name: 'truncates packs and loose objects in place',
    kind: 'content of objects',
    script:
      'find $G/objects -type f -exec chmod u+w {} +; find $G/objects -type f -exec truncate -s 0 {} +',
  },
  {
    name: 'overwrites loose objects and puts their times back',
    kind: 'content of objects',
    script: python(
      `import os, glob
for f in glob.glob(os.environ['G'] + '/objects/??/*'):
    s = os.stat(f); os.chmod(f, 0o644); d = bytearray(open(f, 'rb').read()); d[-1] ^= 255
    with open(f, 'r+b') as h: h.write(d)
    os.utime(f, ns=(s.st_atime_ns, s.st_mtime_ns)); os.chmod(f, 0o444)`,
    ),
  },
  {
    name: 'overwrites packed-refs with garbage',
    kind: 'content of refs',
    script: 'git pack-refs --all; echo garbage > $G/packed-refs; rm -rf $G/logs',
  },
  {
    name: 'makes a packed-refs of garbage',
    kind: 'content of refs',
    setup: HISTORY.replace('git gc -q\n', ''),
    script: 'echo garbage > $G/packed-refs; rm -rf $G/logs',
  },
  { name: 'writes garbage into HEAD', kind: 'content of refs', script: 'echo garbage > $G/HEAD' },
  {
    name: 'adds a branch to a commit that is not there',
    kind: 'content of refs',
    script: `echo ${'2'.repeat(40)} > $G/refs/heads/new`,
  },
  { name: 'writes garbage into the index', script: 'echo garbage > $G/index' },
  {
    name: 'moves .git elsewhere',
    kind: 'all of it',
    script: 'mv $G /tmp/elsewhere; mv $G ./elsewhere; mv $G/objects $G/refs .',
  },
  {
    name: 'puts a link in place of .git',
    kind: 'all of it',
    script: 'rm -rf $G; ln -s /tmp $G; rm -rf $G/refs/heads; ln -s /tmp $G/refs/heads',
  },
  {
    name: 'puts links in place of folders of objects',
    kind: 'folders of objects',
    script:
      'for d in $G/objects/??; do rm -rf $d; ln -s /tmp $d; done; for n in 0 1 2 3; do ln -s /tmp $G/objects/$n$n; done',
  },
  {
    name: 'hides history by replacements, grafts and a shallow border',
    script:
      'h=$(git rev-parse main); e=$(git -c user.name=a -c user.email=a@x commit-tree -m x main^{tree}); git replace $h $e; echo $h > $G/info/grafts; echo $h > $G/shallow; git reflog expire --expire=now --all; git stash clear; git branch -D side loose; git tag -d light heavy',
  },
  {
    name: 'damages the files that git derives from objects',
    kind: 'content of objects',
    script:
      'chmod -R u+w $G/objects; git multi-pack-index write; rm -f $G/objects/info/commit-graph; echo x > $G/objects/info/commit-graph; echo x > $G/objects/pack/multi-pack-index; mkdir -p /tmp/none; echo /tmp/none > $G/objects/info/alternates',
  },
  {
    name: 'deletes everything',
    kind: 'all of it',
    script: 'find . -delete 2>/dev/null; find .git -delete',
  },
  {
    name: 'is killed after it has deleted refs and objects',
    script:
      'rm -rf $G/refs/* $G/packed-refs $G/logs/*; rm -rf $G/objects/??; touch killme; sleep 1000',
    hangs: true,
  },
  {
    name: 'leaves a process that deletes on',
    script:
      '(setsid sh -c "while :; do rm -rf $G/refs/heads/* $G/packed-refs $G/logs/* $G/objects/??; done" >/dev/null 2>&1 &) ; sleep 0.2',
  },
  {
    name: 'deletes a bare repository in the workspace',
    setup: `mkdir seed; cd seed; ${HISTORY}\ncd ..; git clone -q --mirror seed store.git; rm -rf seed; git -C store.git gc -q; git -C store.git update-ref refs/heads/more main~1`,
    repo: 'store.git',
    gitFolder: 'store.git',
    isBare: true,
    script:
      'rm -rf $G/refs $G/packed-refs $G/refs/*; chmod -R u+w $G/objects; rm -rf $G/objects/*; rm -rf $G',
  },
  {
    name: 'deletes the history of a nested repository and renames its folder',
    setup: `${HISTORY}\nmkdir -p deep/nested; cd deep/nested; ${HISTORY}\ncd ../..`,
    repo: 'deep/nested',
    gitFolder: 'deep/nested/.git',
    script:
      'mv deep/nested deep/other; mv deep deeper; find . -name objects -path "*nested*" -exec rm -rf {} +; rm -rf deep*/*/.git/refs deep*/*/.git/logs deep*/*/.git/packed-refs',
  },
  {
    name: 'deletes the history of a submodule',
    setup: `mkdir ../sub; cd ../sub; ${HISTORY}\ncd ../work; ${HISTORY}\ngit -c protocol.file.allow=always submodule add -q ../sub sub`,
    repo: 'sub',
    gitFolder: '.git/modules/sub',
    script: 'rm -rf $G/refs $G/logs $G/packed-refs; rm -rf $G/objects; rm -rf $G',
  },
  {
    name: 'deletes the common folder of a linked worktree, and the worktree in it',
    setup: `mkdir ../main; cd ../main; ${HISTORY}\ngit worktree add -q --detach ../tree; cd ../tree; echo d > d; git add d; ${COMMIT} -m detached; cp -a ../main ../../outside/main; cp -a .git ../work/.git; echo ../work/.git > /dev/null; echo "$(cd ../work && pwd)/.git" > ../main/.git/worktrees/tree/gitdir; cd ../work; git checkout -q -f; rm -rf ../tree`,
    gitFolder: '../main/.git',
    script:
      'rm -rf $G/refs/* $G/logs/* $G/packed-refs; rm -rf $G/worktrees; rm -rf $G/objects/??; rm -rf $G',
  },
  {
    name: 'removes a linked worktree with commits of its own',
    setup: `${HISTORY}\ngit worktree add -q --detach tree; cd tree; echo d > d; git add d; ${COMMIT} -m detached; echo dirty > d; cd ..`,
    // The first command stops at files that are mounted, after it has deleted others in any order.
    script: 'git worktree remove --force tree; rm -rf .git/worktrees/tree',
  },
];

const environmentLine = (attack: Attack): string =>
  `export REPO="\${REPO_AT:-$PWD/${attack.repo ?? '.'}}" WORK="$PWD" BARE=${attack.isBare ? 1 : 0}`;

/** The words that run the attack, by how far they may change the git folder. */
const WORDS: Readonly<Record<RepositoryAccess, string>> = {
  read: 'G=%G sh attack.sh',
  write: 'git add file1 ; G=%G sh attack.sh',
  writePacks: 'git repack -q ; G=%G sh attack.sh',
  approved: 'G=%G sh attack.sh',
};

export const ACCESSES: readonly RepositoryAccess[] = ['read', 'write', 'writePacks', 'approved'];

/**
 * One scenario: the attack with these accesses, each on a fresh copy, each judged. `fixture`: a folder
 * with the usual history, which each case copies.
 */
export const caseOf = (
  attack: Attack,
  fixture: string,
  accesses: readonly RepositoryAccess[],
): Case => ({
  name: attack.name,
  setup: [
    attack.setup ?? `cp -r ${fixture}/. .`,
    environmentLine(attack),
    REMEMBER,
    `cat > attack.sh <<'ATTACK'\n${attack.script}\nATTACK`,
    'mkdir -p ../../outside/copy && cp -a . ../../outside/copy/',
  ].join('\n'),
  steps: ({ workspace }, level: CommandLevel) =>
    accesses.flatMap((repository): readonly Step[] => [
      { host: 'find . -mindepth 1 -delete; cp -a ../../outside/copy/. .' },
      {
        level,
        repository,
        command: `export G="$PWD/${attack.gitFolder ?? '.git'}"; ${WORDS[repository].replace('G=%G ', '')}`,
        ...(attack.hangs ? { killedAt: `${workspace}/killme` } : {}),
      },
      { host: `${environmentLine(attack)}\n${JUDGE}` },
    ]),
});
