// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell texts, not ours

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { fillFolder } from '../../../../test/made-folder.js';
import { chooseRows } from '../../../../test/tier.js';
import { presetRules } from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';
import { messageFault } from '../../src/policy/shell/message-substitutions.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';
import { lossesByGit } from '../../src/workspace/uncommitted-files.js';
import { makePlace, type Place } from '../workspace/place.js';

// The preset careful asks before a command deletes or overwrites what could not be taken back.

const KEPT = ['src/clean.ts', 'src/sub/clean.ts'];
const FILES: readonly (readonly [string, string])[] = [
  ['notes.txt', 'untracked\n'],
  ['docs/draft', 'untracked\n'],
  ['dist/app.js', 'ignored, and made again\n'],
  ['node_modules/m/index.js', 'ignored, and made again\n'],
  ['data/table', 'ignored, and made by hand\n'],
  ['.env', 'KEY=ignored\n'],
];

const makeRepository = async (context: TestContext): Promise<Place> => {
  const place = await makePlace(context);
  fillFolder(place.workspace, 'a repository', (folder) => {
    const write = (file: string, text: string): void => {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      writeFileSync(path.join(folder, file), text);
    };
    const git = (...words: readonly string[]): void => {
      const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
      execFileSync('git', [...who, ...words], { cwd: folder, env: { ...place.environment } });
    };
    for (const file of [...KEPT, 'src/changed.ts', 'src/staged.ts']) write(file, 'first\n');
    write('.gitignore', 'dist\nnode_modules\ndata\n.env\n');
    git('init', '-q');
    git('add', '-A');
    git('commit', '-qm', 'first');
    write('src/changed.ts', 'not committed\n');
    write('src/staged.ts', 'in the index\n');
    git('add', 'src/staged.ts');
    for (const [file, text] of FILES) write(file, text);
    symlinkSync('../notes.txt', path.join(folder, 'src/link-to-notes'));
  });
  return place;
};

const explain = async (place: Place, text: string, preset: 'careful' | 'auto' = 'careful') =>
  explainCommand(
    text,
    {
      rules: presetRules[preset],
      preset,
      sandbox: 'workspace',
      workspace: place.workspace,
      writtenRules: [],
    },
    { findLosses: lossesByGit(place.environment) },
  );

/** Commands that lose `notes.txt`, which git has never seen. */
const LOSE_NOTES = [
  'rm notes.txt',
  'rm -- notes.txt',
  'rm -rf ./src/../notes.txt',
  '\\rm notes.txt',
  'command rm notes.txt',
  '/bin/rm notes.txt',
  "r''m notes.txt",
  "$'\\x72m' notes.txt",
  'rm no*.txt',
  'rm {notes,other}.txt',
  'rm [mn]otes.tx?',
  'env rm notes.txt',
  'sudo rm *.txt',
  'timeout 5 rm notes.txt',
  "bash -c 'rm notes.txt'",
  'eval "rm notes.txt"',
  '(rm notes.txt)',
  'if true; then rm notes.txt; fi',
  'f() { rm notes.txt; }; f',
  "trap 'rm notes.txt' EXIT",
  'cd src && rm ../notes.txt',
  'busybox rm notes.txt',
  'npx rimraf notes.txt',
  'unlink notes.txt',
  'shred -u notes.txt',
  'truncate -s 0 notes.txt',
  'dd if=/dev/zero of=notes.txt count=1',
  'echo x > notes.txt',
  'echo x >| notes.txt',
  'echo x &> notes.txt',
  'echo x >& notes.txt',
  ': > src/link-to-notes',
  'exec > notes.txt',
  '{ echo x; } > notes.txt',
  'cat > notes.txt <<EOF\nx\nEOF',
  'bash -c "echo > notes.txt"',
  'echo x | tee notes.txt',
  'echo x | sponge notes.txt',
  'sort -o notes.txt notes.txt',
  'curl -o notes.txt file:///etc/hostname',
  "sed -i 's/a/b/' notes.txt",
  "sed -ni.bak -e '1p' notes.txt",
  "sed --in-place 's/a/b/' notes.txt",
  "sed --in 's/a/b/' notes.txt",
  "perl -pi -e 's/a/b/' notes.txt",
  'ruby -i -pe 1 notes.txt',
  'gawk -i inplace 1 notes.txt',
  'go test -coverprofile=notes.txt',
  'go test -coverprofile notes.txt',
  'go build --o=notes.txt',
  'gcc --output=notes.txt src/clean.ts',
  'gcc -lgo -o notes.txt src/clean.ts',
  'xxd -r -ps src/clean.ts notes.txt',
  'tar -cfnotes.txt src',
  'gzip -f -S.txt notes',
  'mv src/clean.ts notes.txt',
  'mv notes.txt /tmp/',
  'mv notes.txt other.txt && rm other.txt',
  'git mv notes.txt other.txt; rm other.txt',
  'cp src/clean.ts notes.txt',
  'cp --target-directory=. /tmp/notes.txt',
  'cp -t . /tmp/notes.txt',
  'cp -rt. /tmp/notes.txt',
  'mv -tnode_modules/.. /tmp/notes.txt',
  'install -oowned -t. /tmp/notes.txt',
  'rsync -Ttmp-new src/clean.ts notes.txt',
  'mv notes.txt{,.old} && rm notes.txt.old',
  'cp notes.txt{,.old}',
  'mv no*.txt',
  '> notes.txt',
  'cp -r /tmp/x/. .',
  'install -m 644 src/clean.ts notes.txt',
  'install -odaemon src/clean.ts notes.txt',
  'csplit --prefix=no src/clean.ts 1',
  'split --line-bytes 5 src/clean.ts no',
  'tar -uf notes.txt src',
  'openssl req -keyout notes.txt',
  'ln -sf src/clean.ts notes.txt',
  'ln -f /tmp/notes.txt',
  'rsync -a src/clean.ts notes.txt',
  'find . -maxdepth 1 -name "*.txt" -delete',
  'find notes.txt -delete',
  'find -O3 -D all -- notes.txt -delete',
  'find src -maxdepth 0 -exec rm -f + notes.txt \\;',
  'fd src -x rm -f x + notes.txt',
  "find . -delete -name '*.pyc'",
  "find . -name '*.pyc' , -delete",
  'pushd src && rm ../notes.txt',
  'pushd src; popd; rm notes.txt',
  'env -C src rm ../notes.txt',
  'env --chdir=src rm ../notes.txt',
  'sudo -D src rm ../notes.txt',
  'cd "$PWD/src" && rm ../notes.txt',
  'rm "$PWD/notes.txt"',
  'rm "${PWD:?}"/no*.txt',
  'rm $(pwd)/notes.txt',
  'rm ~+/notes.txt',
  'F=notes.txt; rm "$F"',
  'D=src; rm "$D/../notes".txt',
  'rm {notes,{other,new}}.txt',
];

const LOSE_OTHERS: readonly (readonly [command: string, lost: string])[] = [
  ['rm src/changed.ts', 'src/changed.ts'],
  ['rm -rf src', 'src/changed.ts, src/link-to-notes'],
  ['cp src/clean.ts docs/draft', 'docs/draft'],
  ['rm -rf data', 'data'],
  ['rm .env', '.env'],
  ['rm -f .git/index', '.git/index'],
  ['rsync -a --delete src/ docs/', 'docs'],
];

/** Nobody can tell before they run. */
const UNKNOWN = [
  'rm "$FILE"',
  'for f in *.log; do rm "$f"; done',
  'ls | xargs rm',
  'find . -name "*.txt" -exec rm {} +',
  'find . -name "*.txt" | xargs -I{} rm {}',
  'cd "$DIR" && rm notes.old',
  'pushd "$DIR" && rm notes.old',
  'env -C "$DIR" rm notes.old',
  'cd && rm notes.old',
  'cd - && rm notes.old',
  'CDPATH=/ cd src && rm clean.ts',
  'PWD=/tmp; rm "$PWD/notes.old"',
  'cd src && rm $PWD/clean.ts', // a folder may have blanks
  'D=tmp; printf %n D; rm "$D"/x',
  'F=$(ls); rm "$F"',
  'F=new; for F in *; do rm "$F"; done',
  'F=-rf; rm "$F"',
  'F=a,b; rm {$F,c}',
  'echo x > "$OUT"',
  'cp src/clean.ts "$TARGET"',
  'rm file{1..3}',
];

const HARMLESS = [
  'rm src/clean.ts',
  'pushd src && rm clean.ts && popd',
  'env -C src rm clean.ts',
  'timeout 5 rm src/clean.ts',
  'cd src && cd - && rm src/clean.ts',
  'F=src/clean.ts; rm "$F"',
  'rm "$PWD"/src/clean.ts',
  'rm src/staged.ts',
  'rm -rf src/sub',
  'cd src && rm clean.ts',
  'rm nothing-is-here',
  'rm -rf dist node_modules',
  'rm -rf {dist,node_modules}',
  'find dist -delete',
  "find . -name '*.pyc' -delete",
  'find . -name __pycache__ -delete',
  'rmdir docs',
  'rm -rf /tmp/elsewhere',
  'echo x > src/clean.ts',
  'echo x > new.txt',
  'echo x >> notes.txt',
  'echo x &>> notes.txt',
  'echo x | tee -a notes.txt',
  'npm test > /dev/null 2>&1',
  'npm test > /tmp/out.txt',
  'npm run build > dist/log',
  "sed -i 's/a/b/' src/clean.ts",
  "sed -n '1p' notes.txt",
  "perl -ne 'print' notes.txt",
  'awk 1 notes.txt',
  'mv notes.txt other.txt',
  'mv src/clean.ts src/other.ts',
  'cp notes.txt other.txt',
  'cp notes.txt src/',
  'cp -r src docs',
  'cp -n src/clean.ts notes.txt',
  'ln -s src/clean.ts notes.txt',
  'install -d notes.txt',
  'rsync -a src/ backup/',
  'rsync -an --delete src/ docs/',
  'dd if=notes.txt of=/dev/null',
  'sort notes.txt',
  'git mv src/clean.ts src/other.ts',
  'git rm src/clean.ts',
  'cat notes.txt',
];

test('careful asks before a command deletes or overwrites an untracked file', async (context) => {
  const place = await makeRepository(context);
  await mkdir(place.path('empty'));
  for (const text of chooseRows(LOSE_NOTES, undefined, 11)) {
    const { decision, why } = await explain(place, text);
    assert.equal(decision, 'ask', text);
    assert.match(why, /could not be taken back: /, text);
  }
});

test('careful names what would be lost: changes, ignored files, parts of .git', async (context) => {
  const place = await makeRepository(context);
  for (const [text, lost] of LOSE_OTHERS) {
    const { unrecoverable = [], decision } = await explain(place, text);
    assert.equal(decision, 'ask', text);
    assert.equal([...unrecoverable].sort().join(', '), lost, text);
  }
});

test('careful asks where the file is known only when the command runs', async (context) => {
  const place = await makeRepository(context);
  for (const text of UNKNOWN) {
    const { decision, why } = await explain(place, text);
    assert.equal(decision, 'ask', text);
    assert.match(why, /named only when the command runs/, text);
  }
});

test('careful asks where a pattern or a symlink hides the file', async (context) => {
  const place = await makeRepository(context);
  await place.write('deep/notes.md', 'untracked\n');
  await place.write('[id].tsx', 'untracked\n');
  await place.shell('mkdir deep/folder && ln -s deep/folder link && ln -s /tmp out');
  const rows = [
    'rm [[:alpha:]]*.txt',
    'rm []a-z]*.txt',
    'rm [!]]otes.txt',
    'rm [n\\*]*.txt',
    'rm [id].tsx',
    'rm link/../notes.md',
    'cd link && rm ../notes.md',
    'mv notes.txt out/',
    'ln -s /tmp there && mv notes.txt there/',
  ];
  const silent: string[] = [];
  for (const text of rows)
    if (!/could not be taken back: /.test((await explain(place, text)).why)) silent.push(text);
  assert.deepEqual(silent, []);
});

test('careful does not ask where nothing is lost that git or a build could not restore', async (context) => {
  const place = await makeRepository(context);
  for (const text of chooseRows(HARMLESS, undefined, 13)) {
    const { decision, why } = await explain(place, text);
    assert.equal(decision, 'allow', `${text}: ${why}`);
  }
  for (const text of [...LOSE_NOTES, ...UNKNOWN]) {
    const { decision, why } = await explain(place, text, 'auto');
    // what npx would have to load first is asked about for that
    const expected = text.startsWith('npx ') ? 'npx rimraf needs the network' : null;
    assert.equal(expected === null ? decision : why, expected ?? 'allow', `auto: ${text}`);
  }
});

test('without a repository, and where git marks a file as unchanged, every file counts', async (context) => {
  const place = await makePlace(context);
  await place.write('a.ts', 'x');
  assert.equal((await explain(place, 'rm a.ts')).decision, 'ask');
  await place.shell('git init -q && git add -A && git commit -qm first');
  assert.equal((await explain(place, 'rm a.ts')).decision, 'allow');
  await place.shell('git update-index --skip-worktree a.ts');
  await place.write('a.ts', 'own settings');
  assert.equal((await explain(place, 'rm a.ts')).decision, 'ask');
});

test('a repository in the repository counts as a whole', async (context) => {
  const place = await makeRepository(context);
  await place.shell(
    'git init -q inner && cd inner && echo x > f && git add f && git commit -qm inner',
  );
  assert.equal((await explain(place, 'rm -rf inner')).decision, 'ask');
  assert.equal((await explain(place, 'rm inner/f')).decision, 'ask');
  await place.shell('git add inner 2>/dev/null && git commit -qm link');
  assert.equal((await explain(place, 'rm -rf inner')).decision, 'ask');
  assert.equal((await explain(place, 'rm inner/f')).decision, 'ask');
});

test('the deletion of the workspace or its history asks in every preset, like git reset --hard', async (context) => {
  const place = await makeRepository(context);
  const { workspace } = place;
  const wipes = [
    'rm -rf .git',
    'rm -rf ./.git/',
    'rm -rf .git/refs .git/objects',
    'rm -rf .',
    'rm -rf *',
    'rm -rf ./*',
    'rm -rf ..',
    `rm -rf ${workspace}`,
    `rm -rf ${path.dirname(workspace)}`,
    'find . -delete',
    'find -delete',
    'find . -print -delete',
    'find -L -O3 . -true -type f,l -delete',
    'mv .git /tmp/',
    'cd . && rm -rf *',
    "bash -c 'rm -rf .git'",
    'rsync -a --delete /tmp/empty/ ./',
    '(cd dist && npm run build) && rm -rf .git',
    'cd dist && npm i && cd .. && rm -rf *',
    'cd dist; rm -rf *',
    '! cd dist && rm -rf *',
    'true || cd dist && rm -rf *',
    'cd dist && { cd ..; rm -rf *; }',
    "cd dist && bash -c 'cd ..; rm -rf *'",
    'f() { cd dist; } && rm -rf *',
    `cd src && rm -rf ${workspace}/.git`,
    'cd src && rm -rf ../.git',
    `cd .. && rm -rf ${path.basename(workspace)}`,
    `cd /tmp && rm -rf ${workspace}/*`,
    `rm -rf ${workspace}/*`,
    `rm -rf ../${path.basename(workspace)}/*`,
    `rm -rf ../${path.basename(workspace).slice(0, 2)}*`,
    'rm -rf .[!.]*',
    'rm -rf .??*',
    'rm -rf .g*',
    'rm -rf .git/*',
    'rm -rf {src,.git}',
    'mv .[^.]* /tmp/',
    'cd a; cd b; cd c; cd d; cd e; cd f; cd g; cd h; cd i; rm -rf x',
    `pushd .. && rm -rf ${path.basename(workspace)}`,
    `pushd dist; popd; cd .. ; rm -rf ${path.basename(workspace)}`,
    `env -C .. rm -rf ${path.basename(workspace)}`,
    `env --chdir .. rm -rf ${path.basename(workspace)}`,
    `sudo -D.. rm -rf ${path.basename(workspace)}`,
    `while true; do rm -rf ${path.basename(workspace)}; cd ..; done`,
    'rm -rf "$PWD"',
    'rm -rf $PWD/',
    'rm -rf "${PWD}"/*',
    'rm -rf "${PWD:?}/.git"',
    'rm -rf "$(pwd)"',
    'rm -rf `pwd`/*',
    'rm -rf ~+',
    'for i in 1; do rm -rf "$PWD"; done',
    'cd src && rm -rf "$PWD/.."',
    'D=.; rm -rf "$D"',
    'D=.git; rm -rf "./$D"',
    'D=..; cd $D; rm -rf *',
    `rm -rf ${'{a,b}'.repeat(7)}`,
    'find "$PWD" -delete',
    'find $(pwd) -mindepth 1 -delete',
    'mv "$PWD" /tmp/',
    'rsync -a --delete /tmp/empty/ "$PWD"',
    'npx rimraf "$PWD/.git"',
    'rm -rf -- dist "$PWD"',
    `cd "$(dirname "$PWD")" && rm -rf ${path.basename(workspace)}`,
    `cd && rm -rf ${path.basename(workspace)}`,
  ];
  const narrow = [
    'rm -rf src',
    'rm -f .git/index.lock',
    'rm *.log',
    'find . -name "*.tmp" -delete',
    'find . -type d -delete',
    'find -O3 /tmp/elsewhere -delete',
    'cd dist && rm -rf *',
    'cd dist && timeout 60 rm -rf *',
    'pushd dist && rm -rf * && popd',
    'rm -rf "$PWD/dist"',
    'cd dist && rm -rf "$PWD"',
    'D=dist; rm -rf "$D"/*',
    'env -C dist rm -rf cache',
    '(cd dist && rm -rf *)',
    'mkdir -p dist && cd dist && rm -rf * && cd .. && npm test',
    'cd src && cd sub && rm -rf .git',
    'cd /tmp && rm -rf *.log',
    'rm -rf dist/* src/.g*',
    'rm -rf [a-c]*.log .e*',
    'rm -f .git/*.lock',
    'rm -rf "*"',
    'rsync -a ./ /tmp/copy/',
    'cp -r . /tmp/copy',
    'rm -rf /tmp/elsewhere',
  ];
  const wrong: string[] = [];
  for (const text of [...wipes, ...narrow]) {
    const { decision } = await explain(place, text, 'auto');
    if (decision !== (wipes.includes(text) ? 'ask' : 'allow')) wrong.push(text);
  }
  assert.deepEqual(wrong, []);
});

test('the tool for commands puts what would be lost into the facts of the call', async (context) => {
  const place = await makeRepository(context);
  const [bash] = builtinTools({
    environment: place.environment,
    findLosses: lossesByGit(place.environment),
  }).filter(({ name }) => name === 'bash');
  const factsOf = async (command: string) => {
    const judged = await bash?.judge({ command }, place.workspace);
    return judged?.kind === 'ok' ? judged.facts.unrecoverable : null;
  };
  assert.deepEqual(await factsOf('rm notes.txt src/clean.ts'), ['notes.txt']);
  assert.deepEqual(await factsOf('rm src/clean.ts'), []);
  assert.equal(await factsOf('npm test'), undefined);
});

test('a pattern of many stars on a name made for it takes no time, and means what a shell says', async (context) => {
  const place = await makeRepository(context);
  const name = 'a'.repeat(200);
  await place.write(name, 'untracked\n');
  const spentMs = watchCpu();
  const none = await explain(place, `rm ${'a*'.repeat(20)}b`);
  assert.deepEqual(none.unrecoverable ?? [], []);
  const [one] = (await explain(place, `rm ${'a*'.repeat(20)}[!b]`)).unrecoverable ?? [];
  assert.equal(one, name, 'control');
  assert.ok(spentMs() < 5_000);
});

test('a text that stands for very many files, or whose braces have no end, is read in no time', async (context) => {
  const place = await makeRepository(context);
  await place.shell('mkdir many && cd many && touch $(seq 2000)');
  const rows = [
    `rm -f ${'{a,b}'.repeat(26)}`,
    `git checkout -- ${'{a,b}'.repeat(26)}`,
    `${'cd a; '.repeat(5)}rm ${'many/z* '.repeat(2_000)}`,
    `${'cd a; '.repeat(5)}${'cd b; rm *.*.{a,b}x; '.repeat(400)}`,
    `echo ${'{,'.repeat(9_900)}`,
    `echo ${'['.repeat(19_900)}`,
    `git commit -m "\`x\`" ${'{,'.repeat(20_000)}`,
  ];
  for (const text of rows) {
    const spentMs = watchCpu();
    await explain(place, text);
    messageFault(text, () => null);
    assert.ok(spentMs() < 2_500, `${text.slice(0, 40)}: ${spentMs()} ms`);
  }
  const { unrecoverable } = await explain(place, `rm notes.txt ${rows[0]}`);
  assert.deepEqual(unrecoverable, ['a file that is named only when the command runs', 'notes.txt']);
});
