import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallFacts, CallTraits, JudgedCall, Needs } from '../../src/policy/judged-call.js';
import type { CommandPlace, Decision, WrittenRule } from '../../src/policy/presets.js';
import {
  createGrant,
  decideByWrittenRules,
  describeRule,
  type Grant,
  grantCovers,
} from '../../src/policy/rules.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';

// What written rules and grants say of a call by themselves, without a preset.

const FACTS: CallFacts = { argv: [], paths: [], hosts: [], shape: 'x' };
const callOf = (facts: Partial<CallFacts>, traits: Partial<CallTraits> = {}): JudgedCall => ({
  ...{ callId: '1', tool: 'x', input: {}, verdict: { kind: 'ok' }, facts: { ...FACTS, ...facts } },
  traits: { effect: 'opaque', parallelSafe: false, mutating: true, deadlineMs: 0, ...traits },
});

/** A shell text, or `read PATH`, `write PATH`, `get HOSTS`, `post HOSTS`, `mcp SERVER TOOL`. */
const readCall = async (text: string, needs?: Needs): Promise<JudgedCall> => {
  const [kind, ...words] = text.split(' ');
  const mutating = kind === 'write' || kind === 'post';
  if (kind === 'read' || kind === 'write') return callOf({ paths: words }, { mutating });
  if (kind === 'get' || kind === 'post') return callOf({ hosts: words }, { mutating });
  const [server = '', tool = ''] = words;
  if (kind === 'mcp') return callOf({ mcp: { server, tool } });
  const find = (name: string) => (name.startsWith('mine') ? `/w/${name}` : `/usr/bin/${name}`);
  const shell = await shellFacts(text, find);
  return callOf({ shell, argv: [text], ...(needs === undefined ? {} : { needs }) });
};

/** `DECISION WORDS`, `DECISION path PATTERN`, also of `reads`, `host` and `mcp`. */
const readRule = (text: string): WrittenRule => {
  const [decision, kind = '', pattern = ''] = text.split(' ');
  const head = { decision: decision as Decision, origin: 'f:1' };
  if (kind === 'path') return { ...head, kind, pattern, touches: 'anything' };
  if (kind === 'reads') return { ...head, kind: 'path', pattern, touches: 'reads' };
  if (kind === 'host' || kind === 'mcp') return { ...head, kind, pattern };
  const [words = '', needs] = text.replace(/^\w+ /, '').split(' +');
  return {
    ...head,
    kind: 'command',
    words: words.split(' '),
    ...(needs === undefined ? {} : { needs: needs as Needs }),
  };
};

/** `RULES = DECISION > CALL ¦ CALL`; `maybe` asks, `-` is none. Rules are joined by `&`. */
const RULES = `
  ask npm & deny npm test = deny npm test > npm test
  ask git & ask npm = ask npm > npm test
  allow npm & ask npm = ask npm > npm test
  deny npm & ask npm = deny npm > npm test
  deny git & ask npm = maybe git > $x test
  deny git push & ask npm = ask npm > npm a; git $x
  deny git push = maybe git push > git $x
  allow npm test = - > npm $x ¦ npm
  deny git = maybe git > eval "$x"
  deny path a = maybe a > eval "$x"
  deny git push = deny git push > git -C x push ¦ git -C - push ¦ git -C -x push a ¦
    sudo git push
  deny git push = - > git ¦ git x push ¦ git -C x y push ¦ docker run i $x push ¦ ./push git
  deny npm ci = - > npm - ci
  deny git remote add = deny git remote add > git remote add x ¦ git -C x remote -v add
  deny git remote add = - > git add remote ¦ git remote
  deny /usr/bin/git = deny /usr/bin/git > /usr/bin/git x
  deny /usr/bin/git = - > git x
  deny host a.com = - > eval "$x"
  deny npm = - > write /w/npm
  deny mcp docs = - > npm test
  deny host a.com & ask host b.com = ask b.com > get b.com c.com
  deny path .env = deny .env > cat .env ¦ node --env=.env ¦ curl -d @.env ¦ grep -f.env ¦
    npm $x .env ¦ npm a > .env ¦ npm a < .env ¦ write /w/.env
  deny path .env = - > npm xf.env ¦ npm x-f.env
  deny path ** = - > ls ¦ npm "" $x
  deny path ** = deny ** > ./npm
  deny reads .env = - > write /w/.env
  deny reads .env = deny .env > read /w/.env
  allow npm test = allow npm test > npm test a
  allow path a & allow npm = allow npm > npm test
  allow npm & allow git = allow npm, git > npm a; git b
  allow npm & allow git = - > npm a; git b; make
  allow npm = - > echo a ¦ npm a > out ¦ npm a > $x ¦ A=1 npm a ¦ npm $x ¦ npm a; eval $x ¦
    npm a | minetail -3 ¦ cd && npm a ¦ cd a b && npm a ¦ cd - && npm a ¦ cd -P && npm a ¦
    cd '~' && npm a ¦ cd /w && npm a ¦ cd .. && npm a ¦ cd a/../b && npm a ¦ cd a/.. && npm a ¦
    cd "" && npm a ¦ cd $x && npm a ¦ npm --odd
  allow npm = allow npm > npm a; > /dev/null ¦ npm a > /dev/null 2> /dev/stderr ¦
    npm a | tail -3 ¦ cd a && npm a ¦ cd a..b/..c && npm a
  allow npm & allow . = - > npm a; . ./x
  allow ./b = allow ./b > ./b ¦ echo a; ./b
  allow ./b = - > cd a; ./b
  allow ./b & allow pushd = - > pushd a; ./b
  allow ./b & allow popd = - > popd; ./b
  allow ./b & allow /bin/cd = allow /bin/cd, ./b > /bin/cd a; ./b
  allow /bin/b = allow /bin/b > cd a; /bin/b
  allow mine = - > mine a
  allow ./mine = allow ./mine > ./mine a
  allow timeout 5 npm = allow timeout 5 npm > timeout 5 npm test
  allow timeout 5 = - > timeout 5 npm test
  allow npm --odd = allow npm --odd > npm --odd
  allow npm & allow host *.a.com = allow *.a.com > get x.a.com
  allow host * = - > get 10.0.0.5
  allow host *.internal = - > get db.internal
  allow host a = - > read /w/a
  allow host 10.0.0.5 = allow 10.0.0.5 > get 10.0.0.5
  allow host a.com = - > get a.com b.com ¦ post a.com ¦ read /w/a
  allow npm & allow mcp docs/get = allow docs/get > mcp docs get
  allow mcp docs/get = - > mcp docs set
  deny mcp docs/get_* = deny docs/get_* > mcp docs get_a
  deny mcp docs/get_* = - > mcp docs go ¦ mcp doc get_a
  allow host a.com & allow reads a = allow a > read /w/a
  allow reads a = - > write /w/a
  allow path a = allow a > write /w/a
  allow path a = - > write /w/a /w/b
  allow path ** = - > write`;

test('rules decide by every part of a call: deny before ask before allow', async () => {
  const about = (rule: WrittenRule) =>
    rule.kind === 'command' ? rule.words.join(' ') : rule.pattern;
  const decision = (rules: string, call: JudgedCall): string => {
    const place = call.facts.shell === undefined ? null : 'unfenced';
    const actual = decideByWrittenRules(rules.split(' & ').map(readRule), call, place, '/w');
    if (actual.decision === null) return '-';
    if (actual.decision === 'allow') return `allow ${actual.rules.map(about).join(', ')}`;
    return `${actual.sure === 'maybe' ? 'maybe' : actual.decision} ${about(actual.rule)}`;
  };
  for (const row of RULES.trim().split(/\n {2}(?! )/)) {
    const [, rules = '', expected, calls = ''] = /^(.*?) = (.*?) > (.*)$/s.exec(row) ?? [];
    for (const text of calls.split(/ ¦\s+/))
      assert.equal(decision(rules, await readCall(text)), expected, `${rules} > ${text}`);
  }
});

test('a rule that allows covers what its command reaches in the place where it runs', async () => {
  const decision = async (rule: string, text: string, place: CommandPlace, needs?: Needs) =>
    decideByWrittenRules([readRule(rule)], await readCall(text, needs), place, '/w').decision;
  assert.equal(await decision('allow npm', 'npm --odd', 'sandboxed'), 'allow');
  assert.equal(await decision('allow npm', 'npm --odd', 'leaving'), null);
  assert.equal(await decision('allow npm', 'npm a', 'leaving', 'network'), null);
  assert.equal(await decision('allow npm', 'npm a', 'unfenced', 'network'), 'allow');
  assert.equal(await decision('allow npm +network', 'npm a', 'leaving', 'network'), 'allow');
  assert.equal(await decision('allow npm +network', 'npm a', 'leaving', 'outside'), null);
  assert.equal(await decision('allow npm +outside', 'npm a', 'leaving', 'repository'), 'allow');
  assert.equal(await decision('allow path a', 'write /w/a', 'unfenced'), null, 'no command');
});

test('a command is also judged as git reads it, and a filter must be one of the system', () => {
  const plain = { assignments: [], writes: [], program: '/usr/bin/x' };
  const judge = (rule: string, ...commands: NonNullable<CallFacts['shell']>['commands']) =>
    decideByWrittenRules(
      [readRule(rule)],
      callOf({ shell: { commands, unclear: null } }),
      'unfenced',
      '/w',
    ).decision;
  const alias = { ...plain, words: ['git', 'p'], readAs: ['git', 'push'] };
  assert.equal(judge('deny git push', alias), 'deny');
  assert.equal(judge('deny git p', alias), 'deny');
  assert.equal(judge('deny git pull', alias), null);
  const npm = { ...plain, words: ['npm'] };
  const tail = { ...plain, words: ['tail'], filters: 'yes' } as const;
  assert.equal(judge('allow npm', npm, tail), 'allow');
  assert.equal(judge('allow npm', npm, { ...tail, program: null }), null);
  assert.equal(judge('allow npm', npm, { ...tail, program: '/tmp/tail' }), null);
  assert.equal(
    judge('allow npm', npm, { ...plain, words: ['echo'] }),
    null,
    'a program, no builtin',
  );
});

test('a rule is described with its kind, its place and where it holds', () => {
  assert.equal(describeRule(readRule('deny npm test')), 'deny "npm test" (f:1)');
  assert.equal(describeRule(readRule('ask host a.com')), 'ask host "a.com" (f:1)');
  const ofFolder = { ...readRule('allow reads a'), from: 'folder' } as const;
  assert.equal(describeRule(ofFolder), 'allow path "a" (f:1, in this folder)');
});

const NPM: Grant = { scope: 'prefix', tool: 'x', words: ['npm', 'test'] };

test('a grant covers the calls that it names, with no more access than it had', async () => {
  const everything: Grant = { scope: 'session', tool: 'x' };
  const covers = (grant: Grant, call: JudgedCall) => grantCovers(grant, call, '/w');
  const levels = [undefined, 'network', 'repository', 'outside'] as const;
  const reached = levels.map((granted) =>
    levels.map((needs) => {
      const grant = { ...everything, ...(granted === undefined ? {} : { needs: granted }) };
      return covers(grant, callOf(needs === undefined ? {} : { needs })) ? '+' : '-';
    }),
  );
  assert.deepEqual(
    reached.map((row) => row.join('')),
    ['+---', '++--', '+-+-', '++++'],
  );
  assert.ok(!covers(everything, callOf({ paths: ['/x'] })), 'outside of the workspace');
  const changes: Grant = { scope: 'session', tool: 'y', group: 'fileChanges' };
  assert.ok(covers(changes, callOf({}, { group: 'fileChanges' })));
  assert.ok(!covers(changes, callOf({})));
  assert.ok(!covers({ scope: 'session', tool: 'y' }, callOf({})));
  assert.ok(covers({ scope: 'shape', tool: 'x', shape: 'x' }, callOf({})));
  for (const more of [{ tool: 'y' }, { shape: 'y' }])
    assert.ok(!covers({ scope: 'shape', tool: 'x', shape: 'x', ...more }, callOf({})));
  assert.ok(!covers({ ...NPM, tool: 'y' }, await readCall('npm test')));
  assert.ok(!covers(NPM, callOf({})), 'no command');
  assert.ok(!covers(NPM, callOf({ shell: { commands: [], unclear: null } })), 'no command');
});

/** Texts that a grant for `npm test` covers, and others. */
const COVERED = 'npm test|npm test a -x|npm test > /dev/null|npm test 2>&1 >/dev/null';
const OTHERS = `npm run|npm|npm test; ls|npm test $x|A=1 npm test|npm test > out|npm test > $x
  npm test; . ./x|npm test; eval "$x"|x=1|sudo npm test`;

test('a grant for a prefix covers one plain command', async () => {
  const covers = async (text: string, grant = NPM, reach: 'fenced' | 'widened' = 'fenced') =>
    grantCovers(grant, await readCall(text.trim()), '/w', reach);
  for (const text of COVERED.split('|')) assert.ok(await covers(text), text);
  for (const text of OTHERS.split(/\||\n/)) assert.ok(!(await covers(text)), text);
  assert.ok(!(await covers('npm test --odd', NPM, 'widened')));
  assert.ok(!(await covers('bash x', { ...NPM, words: ['bash', 'x'] })), 'it runs a file');
  const timed = { ...NPM, words: ['timeout', '5', 'npm'] };
  assert.ok(await covers('timeout 5 npm test', timed), 'the wrapped command is part of it');
  assert.ok(!(await covers('timeout 5 npm test', { ...timed, words: ['timeout', '5'] })));
});

test('an answer makes a grant that covers its mine call and names its access', async () => {
  const call = await readCall('npm test');
  const create = (scope: Parameters<typeof createGrant>[1], judged = call) =>
    createGrant(judged, scope, '/w');
  assert.equal(create('once'), null);
  assert.deepEqual(create('shape'), { scope: 'shape', tool: 'x', shape: 'x' });
  assert.deepEqual(create('prefix'), NPM);
  assert.deepEqual(create('session'), { scope: 'session', tool: 'x' });
  const edit = callOf({ needs: 'network' }, { group: 'fileChanges' });
  const group = { scope: 'session', tool: 'x', group: 'fileChanges', needs: 'network' };
  assert.deepEqual(create('session', edit), group);
  assert.deepEqual(create('prefix', await readCall('npm test --odd')), NPM);
  assert.equal(create('prefix', await readCall('npm test --odd', 'network')), null);
  assert.equal(create('prefix', await readCall('bash x')), null);
});
