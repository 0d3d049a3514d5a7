import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageFault } from '../../src/policy/shell/message-substitutions.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';

// A message in double quotes whose backticks name no command would lose that part: it is refused
// with advice. Everything else goes on to the policy as before.

const KNOWN = new Set(['cat', 'date', 'git', 'node', 'ls', 'gh', '/bin/tool']);
const find = (name: string): string | null => (KNOWN.has(name) ? `/bin/${name}` : null);

const refused: readonly (readonly [text: string, why: string])[] = [
  [
    'git commit -m "Add `.clearWhere()`"',
    'the backticks in "Add `.clearWhere()`" would run a command: use single quotes',
  ],
  [
    'git commit -m "Rename `autoStart`"',
    'the backticks in "Rename `autoStart`" would run a command: use single quotes',
  ],
  ['git add a.ts && git commit -am "Use `src/a.ts`"', '"Use `src/a.ts`"'],
  ['git commit --message="Drop `--flag`"', '"Drop `--flag`"'],
  ['git commit -m"Drop `xyz`"', '"Drop `xyz`"'],
  ['git commit -m "First" -m "Second `autoStart`"', '"Second `autoStart`"'],
  ['git tag -a v1 -m "See $(autoStart)"', 'a $(…) in "See $(autoStart)"'],
  ['gh pr create --title "Fix `useThing`" --body x', '"Fix `useThing`"'],
  ['cd sub && gh issue comment 5 --body "It is `a(b)`"', '"It is `a(b)`"'],
  ['echo "- Add `autoStart`" >> CHANGELOG.md', '"- Add `autoStart`"'],
  ['if true; then git commit -m "Rename `autoStart`"; fi', '"Rename `autoStart`"'],
];

for (const [text, why] of refused) {
  test(`${text} is refused`, () => {
    const fault = messageFault(text, find);
    assert.ok(fault?.includes(why), String(fault));
    assert.match(fault ?? '', /would run a command: use single quotes$/);
  });
}

test('an argument of the shell in a message is refused, since it would be empty', () => {
  const empty: readonly (readonly [text: string, why: string])[] = [
    ['git commit -m "Costs $5"', '$5 in "Costs $5"'],
    ['git commit -am "Fix: $100 limit"', '$1 in "Fix: $100 limit"'],
    ['git commit --message="From $HOME to $1"', '$1 in "From $HOME to $1"'],
    ['gh issue create --title x --body "It is $5 \\"net\\""', '$5 in "It is $5 \\"net\\""'],
  ];
  for (const [text, why] of empty)
    assert.equal(messageFault(text, find), `${why} would be empty: use single quotes`);
});

const untouched: readonly string[] = [
  "git commit -m 'Costs $5'",
  'git commit -m "Costs \\$5"',
  'git commit -m "In $HOME"',
  'f() { git commit -m "$1"; }; f x',
  'set -- x; git commit -m "$1"',
  'awk "{ print $5 }" file',
  "git commit -m 'Rename `autoStart`'",
  'git commit -m "Rename \\`autoStart\\`"',
  'git commit -m "On `date`"',
  'git commit -m "$(cat <<\'EOF\'\nRename `autoStart`\nEOF\n)"',
  'cat > x.sh <<\'EOF\'\ngit commit -m "Rename `autoStart`"\nEOF',
  'git log "$(autoStart)"',
  'echo "$(foo --version || echo none)"',
  'echo "`foo --version`"',
  'f() { echo x; }; git commit -m "`f`"',
  'source ./x.sh; git commit -m "`autoStart`"',
  'PATH=./bin:$PATH; git commit -m "`autoStart`"',
  'git commit -m "$((1 + 2))"',
  'git commit -m "$HOME"',
  'git commit -m "``"',
  'ls "',
];

for (const text of untouched) {
  test(`${JSON.stringify(text)} is left to the policy`, () => {
    assert.equal(messageFault(text, find), null);
  });
}

test('the shell tool refuses such a call before anybody is asked', async () => {
  const bash = builtinTools().find(({ name }) => name === 'bash') ?? assert.fail();
  const judged = await bash.judge({ command: 'git commit -m "Rename `autoStart`"' }, '/tmp');
  assert.deepEqual(judged, {
    kind: 'invalid',
    field: 'command',
    why: 'the backticks in "Rename `autoStart`" would run a command: use single quotes',
  });
});
