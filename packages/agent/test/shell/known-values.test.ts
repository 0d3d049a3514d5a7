// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell texts, not ours

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { countCases, SEED } from '../../../../test/tier.js';
import { presetRules } from '../../src/policy/presets.js';
import { explainCommand } from '../../src/policy/shell/explain-command.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';
import { runByBash } from './hostile/oracle.js';
import { pick, type Random, seeded } from './hostile/random.js';

// A command whose program is a value is judged by the value that stands in the same text, and only
// if nothing can have changed it. bash itself says what it runs.

const find = (name: string): string => (name.includes('/') ? name : `/bin/${name}`);

type Row = readonly [text: string, ...words: readonly (readonly string[])[]];

const known: readonly Row[] = [
  ['CMD="ls -la"; $CMD', ['ls', '-la']],
  ['CMD="ls -la"\n$CMD src', ['ls', '-la', 'src']],
  ['CMD="ls -la" && $CMD', ['ls', '-la']],
  ['cd sub && CMD="ls -l" && $CMD', ['ls', '-l']],
  ['CMD=ls; "$CMD" -l; ${CMD} -a', ['ls', '-l'], ['ls', '-a']],
  ['CMD="ls -la"; $CMD | head -5', ['ls', '-la']],
  ['cmd=(ls -la "a b"); "${cmd[@]}"', ['ls', '-la', 'a b']],
  ['cmd=(git push); ${cmd[@]} --force', ['git', 'push', '--force']],
  ['A=git; B=push; $A $B', ['git', 'push']],
  ['set -e; CMD=ls; echo a; $CMD', ['ls']],
  ['CMD=ls; CMD=curl & $CMD', ['ls']],
  ['CMD=ls; $CMD -a && true & $CMD', ['ls', '-a'], ['ls']],
  ['eval "$(echo ls -la)"', ['ls', '-la']],
  ['eval "$(echo "curl x; evil")"', ['curl', 'x'], ['evil']],
];

for (const [text, ...words] of known) {
  test(`${JSON.stringify(text)} is judged by its value`, async () => {
    const { commands, unclear } = await shellFacts(text, find);
    assert.equal(unclear, null);
    for (const expected of words)
      assert.ok(
        commands.some((command) => command.words.join('\n') === expected.join('\n')),
        JSON.stringify(commands),
      );
  });
}

const unclear: readonly string[] = [
  '$CMD -la',
  'CMD="ls" & $CMD',
  'CMD=ls | cat; $CMD',
  '(CMD=ls); $CMD',
  'CMD=ls; CMD=curl && $CMD & false',
  'CMD=ls; true && CMD=curl && $CMD -x & false',
  'CMD=ls; true || CMD=curl && $CMD &',
  'CMD=ls; echo "$(CMD=curl; $CMD)"',
  'CMD=ls; cat <(CMD=curl; $CMD)',
  'false && CMD=ls; $CMD',
  'true || CMD=ls; $CMD',
  'CMD=ls; read CMD <<< curl; $CMD',
  'CMD=ls; printf -v CMD curl; $CMD',
  'CMD=ls; export CMD=curl; $CMD',
  'CMD=ls; declare CMD=curl; $CMD',
  'CMD=ls; unset CMD; $CMD',
  'CMD=ls; CMD+=" -la"; $CMD',
  'CMD=ls; CMD[0]=curl; $CMD',
  'CMD=ls; CMD=$(evil); $CMD',
  'CMD=ls; time read CMD <<< curl; $CMD',
  'CMD=ls; command read CMD <<< curl; $CMD',
  'CMD=ls; eval CMD=curl; $CMD',
  'CMD=ls; . ./x.sh; $CMD',
  'CMD=ls; mapfile -t CMD <<< curl; $CMD',
  'CMD=ls; getopts a CMD; $CMD',
  'CMD=ls; for CMD in curl; do [[ x ]]; done; $CMD',
  'CMD=ls; while true; do CMD=curl; break; done; $CMD',
  'CMD=ls; { CMD=curl; }; $CMD',
  'CMD=ls; if true; then CMD=curl; fi; $CMD',
  'CMD=ls; ((CMD=5)); $CMD',
  'CMD=; echo ${CMD:=curl}; $CMD',
  'IFS=:; CMD=ls:-la; $CMD',
  'CMD="l*"; $CMD',
  'CMD="a\\\\b"; $CMD',
  'CMD=""; $CMD curl',
  'f() { CMD=curl; }; CMD=ls; f; $CMD',
  'PWD=ls; cd curl; $PWD',
  'RANDOM=1; $RANDOM',
  "trap 'CMD=curl' DEBUG; CMD=ls; $CMD",
  `eval "trap 'CMD=curl' DEBUG"; CMD=ls; $CMD`,
  'declare -l CMD; CMD=LS; $CMD',
  "E=trap; $E 'CMD=curl' DEBUG; CMD=ls; $CMD",
  'D=declare; $D -l CMD; CMD=LS; $CMD',
  "command -- trap 'CMD=curl' DEBUG; CMD=ls; $CMD",
  'builtin -- declare -l CMD; CMD=LS; $CMD',
  'readonly CMD=curl\nCMD=ls\n$CMD',
  'CMD=ls; printf %n CMD; $CMD',
  'CMD=ls; printf x%ln CMD; $CMD',
  "printf -v I''FS , ; CMD=ls,-la; $CMD",
  'N=IFS; printf -v $N , ; CMD=ls,-la; $CMD',
  'N=IFS; read $N <<< ,; CMD=ls,-la; $CMD',
  'command typeset -l CMD; CMD=LS; $CMD',
  'shopt -s lastpipe; CMD=ls; true | CMD=curl; $CMD',
  'cmd=([1]=ls [0]=curl); "${cmd[@]}"',
  'cmd=(ls); "$cmd"',
  'CMD=curl $CMD',
  'CMD=ls; CMD=curl true; $CMD',
  'eval "$(echo ls; echo curl)"',
  'eval "$(echo ls)$(evil)"',
  'eval "$(echo $X)"',
  'eval "$(echo -e ls)"',
  'eval "$(cat a.txt)"',
  'echo() { curl x; }; eval "$(echo ls)"',
];

for (const text of unclear) {
  test(`${JSON.stringify(text)} stays unclear`, async () => {
    const facts = await shellFacts(text, find);
    const asks = facts.unclear !== null || facts.indirect !== undefined;
    assert.ok(asks, JSON.stringify(facts));
    const { decision } = await explainCommand(text, SETTINGS, { find });
    assert.equal(decision, facts.unclear === null ? 'allow' : 'ask');
  });
}

const SETTINGS = {
  rules: presetRules.auto,
  preset: 'auto',
  sandbox: 'workspace',
  workspace: '/w/ws',
} as const;

test('a here-document is no constant behind characters that bash expands', async () => {
  const here = `"$(cat <<'EOF'\nx\nEOF\n)"`;
  for (const before of ['~/', '*', '?', '[ab]', '{rm,-rf,src,}', '--body={a,b}', 'A=~/']) {
    const { commands } = await shellFacts(`printf ${before}${here}`, find);
    const printed = commands.find(({ words }) => words[0] === 'printf');
    assert.equal(printed?.words[1], null, before);
  }
});

test('the value decides as if it stood there: destruction asks', async () => {
  for (const text of [
    'CMD="git push"; $CMD --force',
    'CMD=(git reset --hard); "${CMD[@]}"',
    'CMD="rm -rf .git"; $CMD',
    'eval "$(echo git clean -fd)"',
  ]) {
    const explained = await explainCommand(text, SETTINGS, { find });
    assert.equal(explained.decision, 'ask', text);
    assert.doesNotMatch(explained.why, /not clear/);
  }
});

test('$SHELL is the shell that the command gets, unless the text sets it', async () => {
  const clear = await shellFacts("$SHELL -c 'git push'", find, '/bin/bash');
  assert.equal(clear.unclear, null);
  assert.ok(clear.commands.some(({ words }) => words.join(' ') === 'git push'));
  const texts: readonly (readonly [string, string | null])[] = [
    ["$SHELL -c 'ls'", null],
    ["$SHELL -c 'ls'", '/bin/zsh'],
    ["SHELL=$X; $SHELL -c 'ls'", '/bin/bash'],
    ["env SHELL=zsh bash -c '$SHELL -c ls'", '/bin/bash'],
  ];
  for (const [text, shell] of texts)
    assert.notEqual((await shellFacts(text, find, shell)).unclear, null, text);
});

test('a branch that the command before has made may be deleted, and no other', async () => {
  const decisionOn = async (text: string) =>
    (await explainCommand(text, SETTINGS, { find })).decision;
  assert.equal(await decisionOn('git branch tmp && git branch -D tmp'), 'allow');
  assert.equal(await decisionOn('cd sub && git branch tmp && git branch -D tmp'), 'allow');
  for (const text of [
    'git branch tmp; git branch -D tmp',
    'git branch tmp || git branch -D tmp',
    'true || git branch tmp && git branch -D tmp',
    'git branch tmp & git branch -D tmp',
    'git branch tmp && git branch -D main',
    'git branch tmp && git branch -D tmp main',
    'git branch -f tmp && git branch -D tmp',
    'git branch --list && git branch -D --list',
    'git branch tmp | cat && git branch -D tmp',
    'git branch tmp && git commit --allow-empty -m x && git branch -D tmp',
    'GIT_DIR=x git branch tmp && git branch -D tmp',
  ])
    assert.equal(await decisionOn(text), 'ask', text);
});

/** PAWL_SEED gives the texts of another run again; PAWL_COUNT makes more of them. */
const TEXTS = countCases(600);

const PIECES =
  `CMD=ls|CMD="ls -l"|CMD=curl|CMD="curl x"|CMD=(ls -l)|CMD=(curl x)|CMD+=x|CMD[0]=curl|CMD=$X|CMD=$CMD|
X=CMD|X="git status"|$CMD|$CMD|$CMD|"$CMD"|\${CMD} a|"\${CMD[@]}"|\${CMD[@]}|$X|$CMD $X|echo a|true|false|read CMD <<< curl|
printf -v CMD curl|unset CMD|export CMD=curl|declare CMD=curl|CMD=curl true|CMD=curl $CMD|cd /|set -e|set -- curl|
eval "$(echo ls)"|eval "$(echo CMD=curl)"|eval CMD=curl|echo \${CMD:=curl}|echo \${Y:=curl}|: $(CMD=curl)|(CMD=curl)|{ CMD=curl; }|
command read CMD <<< curl|time read CMD <<< curl|! read CMD <<< curl|for CMD in curl; do :; done|if true; then CMD=curl; fi|
shopt -s lastpipe|echo curl|IFS=l|SHELL=curl|$SHELL -c ls|let CMD=1|((CMD=1))|mapfile CMD <<< curl|trap 'CMD=curl' EXIT|exec ls|
  readonly CMD=curl|E=trap|$E 'CMD=curl' DEBUG|printf %n CMD`
    .split(/\|\n?/)
    .map((piece) => piece.trim());
const JOINTS = ['; ', '; ', '\n', ' && ', ' && ', ' || ', ' | ', ' & '];

const composed = (random: Random): string => {
  const parts = Array.from({ length: 2 + Math.floor(random() * 4) }, () => pick(PIECES, random));
  return parts.reduce((text, part) => `${text}${pick(JOINTS, random)}${part}`);
};

test(`of ${TEXTS} texts with values none runs a program that was not seen (seed ${SEED})`, async () => {
  const random = seeded(SEED);
  const texts = Array.from({ length: TEXTS }, () => composed(random));
  const clear: { text: string; commands: ReadonlySet<string> }[] = [];
  for (const text of texts) {
    const facts = await shellFacts(text, find);
    const words = facts.commands.map((command) => command.words);
    if (facts.unclear !== null || facts.indirect !== undefined) continue;
    const programs = new Set(words.map(([program]) => path.basename(program ?? '')));
    clear.push({ text, commands: programs });
  }
  assert.ok(clear.length > TEXTS / 30, `only ${clear.length} are clear: the measure sees nothing`);
  const ran = runByBash(clear.map(({ text }) => text));
  const unseen = clear.flatMap(({ text, commands }, index) => {
    const more = (ran[index] ?? []).filter(
      ([program = '']) => !program.startsWith('<') && !commands.has(path.basename(program)),
    );
    return more.length === 0 ? [] : [[text, more] as const];
  });
  assert.deepEqual(unseen, []);
});
