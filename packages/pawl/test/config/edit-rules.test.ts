import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse, stringify } from 'smol-toml';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { loadConfig } from '../../src/settings/configuration.js';
import { changeConfigFile, type EditedConfig } from '../../src/settings/edit-config.js';
import {
  addFolderRule,
  type FolderRule,
  findRule,
  removeFolderRule,
  writableRule,
} from '../../src/settings/edit-rules.js';

// An answer writes a rule into a config.toml that people write, and a revocation takes it out.

const format = { parse: (text: string) => parse(text), stringify };

const textOf = (edited: EditedConfig): string => {
  assert.ok(edited.kind === 'edited', JSON.stringify(edited));
  return edited.text;
};
const add = (text: string, rule: FolderRule): string => textOf(addFolderRule(text, rule, format));
const remove = (text: string, rule: FolderRule): string =>
  textOf(removeFolderRule(text, rule, format));

const rule = (text: string, list: readonly string[] = ['allow'], folder = '/me/p'): FolderRule => ({
  folder,
  list,
  text,
});

const WRITTEN = `# My settings.
preset = "auto" # the good one

[rules] # for all folders
allow = ["git diff"]

[mcp.servers.docs]
command = "docs" # [folder."/me/p".rules]
`;

const FOLDERS = [
  '/me/p',
  '/me/my project',
  '/me/with "quotes"',
  "/me/it's",
  '/me/line\nbreak\ttab',
  '/me/back\\slash',
  '/me/]\nallow = ["rm"]\n[x',
  '/me/a.b#c',
  '/me/é\u007f',
  '/__proto__',
];

test('a rule for any folder stands at the end; removing it gives the old text again', () => {
  for (const text of ['', WRITTEN, WRITTEN.replaceAll('\n', '\r\n'), 'preset = "auto"'])
    for (const folder of FOLDERS) {
      const one = rule('npm test', ['allow'], folder);
      const added = add(text, one);
      assert.ok(added.startsWith(text), 'all other text stays');
      const table = JSON.parse(JSON.stringify(parse(added)));
      assert.deepEqual(table.folder, { [folder]: { rules: { allow: ['npm test'] } } });
      assert.equal(added.includes('\r\n'), text.includes('\r\n'));
      const gone = remove(added, one);
      assert.equal(gone, text === 'preset = "auto"' ? `${text}\n` : text, JSON.stringify(folder));
    }
});

test('further rules join their list, in its form, and its comments stay', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['allow = ["a"]\n', 'allow = ["a", "b"]\n'],
    ['allow = ["a",]\n', 'allow = ["a", "b",]\n'],
    ['allow = []  # none ]\n', 'allow = ["b"]  # none ]\n'],
    ['allow = [\'a\'] # "x"\n', 'allow = [\'a\', "b"] # "x"\n'],
    [
      'allow = [\n  # first\n  "a" # why\n  # last\n]\n',
      'allow = [\n  # first\n  "a", # why\n  "b"\n  # last\n]\n',
    ],
    ['allow = [\r\n  "a",\r\n]\r\n', 'allow = [\r\n  "a",\r\n  "b",\r\n]\r\n'],
    ['deny = ["x"]\n', 'allow = ["b"]\ndeny = ["x"]\n'],
  ];
  for (const [list, extended] of rows) {
    const head = `${WRITTEN}\n[folder."/me/p".rules] # mine\n`;
    const tail = '\n[ask]\nmax_usd = 1\n';
    const added = add(head + list + tail, rule('b'));
    assert.equal(added, head + extended + tail);
    assert.equal(add(added, rule('b')), added, 'it is there already');
    assert.match(findRule(added, rule('b'), format).text, /"b"/);
  }
});

test('a rule is cut out of its list, and the others stay with their comments', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['allow = ["a", "b", "c"]\n', 'allow = ["a", "c"]\n'],
    ['allow = ["a", "b"] # x\n', 'allow = ["a"] # x\n'],
    ['allow = ["b", "a"]\n', 'allow = ["a"]\n'],
    ['allow = ["b", "a", "b"]\n', 'allow = ["a"]\n'],
    ['allow = ["\\u0062", "a"]\n', 'allow = ["a"]\n'],
    ['allow = ["b"]\ndeny = ["x"]\n', 'deny = ["x"]\n'],
    ['allow = ["b"] # good\n', 'allow = [] # good\n'],
    ['allow = [\n  # "c",\n  "b",\n]\n', 'allow = [\n  # "c",\n  \n]\n'],
    ['# mine\nallow = ["b"]\n', '# mine\n'],
  ];
  for (const [list, cut] of rows) {
    const head = `${WRITTEN}\n[folder."/me/p".rules]\n`;
    assert.equal(remove(head + list, rule('b')), head + cut);
  }
});

test('hosts and tools of servers have lists of their own, where their tables already stand too', () => {
  const hosts = rule('example.com', ['hosts', 'allow']);
  const added = add(add('', hosts), rule('docs/get', ['mcp', 'allow']));
  assert.deepEqual(JSON.parse(JSON.stringify(parse(added))).folder['/me/p'].rules, {
    hosts: { allow: ['example.com'] },
    mcp: { allow: ['docs/get'] },
  });
  const nested = '[folder."/me/p".rules.hosts]\ndeny = ["x.com"]\n';
  assert.equal(
    add(nested, hosts),
    '[folder."/me/p".rules.hosts]\nallow = ["example.com"]\ndeny = ["x.com"]\n',
  );
  const capitals = '[folder."/me/p".rules.hosts]\nallow = ["Example.com", "b.com"]\n';
  assert.equal(remove(capitals, hosts), '[folder."/me/p".rules.hosts]\nallow = ["b.com"]\n');
  const inline = 'folder = { "/me/p" = { rules = { allow = ["a"] } } }\n';
  const refused = addFolderRule(inline, rule('b'), format);
  assert.match(refused.kind === 'refused' ? refused.why : '', /Add "b" by hand/);
});

test('what is no TOML is not changed, and says so', () => {
  for (const edit of [addFolderRule, removeFolderRule]) {
    const edited = edit('allow = [\n', rule('b'), format);
    assert.match(edited.kind === 'refused' ? edited.why : '', /has an error.*Repair it first/);
  }
});

test('a folder whose name is no text gets no rule: another one would be read back', () => {
  const subject = { kind: 'command', words: ['npm', 'test'] } as const;
  assert.equal(writableRule(subject, '/me/\ufffd'), null);
  assert.equal(writableRule({ ...subject, needs: 'repository' }, '/me/p'), null);
  assert.deepEqual(writableRule({ ...subject, needs: 'network' }, '/me/p'), {
    folder: '/me/p',
    list: ['allow_network'],
    text: 'npm test',
  });
});

test('a folder has its own rules alone; a project can neither write nor widen them', async (context) => {
  const home = temporaryFolder(context, 'rules');
  const [one, other] = [path.join(home, 'one'), path.join(home, 'other "x"\n')];
  for (const folder of [one, other]) mkdirSync(path.join(folder, '.pawl'), { recursive: true });
  mkdirSync(path.join(home, '.config/pawl'), { recursive: true });
  const file = path.join(home, '.config/pawl/config.toml');
  writeFileSync(
    file,
    [one, other].reduce(
      (text, folder) => add(text, rule(folder === one ? 'one' : 'other', ['allow'], folder)),
      '',
    ),
  );
  const mine = add('', rule('rm', ['allow'], one));
  for (const folder of [one, other]) writeFileSync(path.join(folder, '.pawl/config.toml'), mine);
  const read = async (workspace: string) => loadConfig(workspace, { HOME: home });
  const { rules, refusedTables, faults } = await read(one);
  assert.deepEqual(rules, [
    { kind: 'command', words: ['one'], decision: 'allow', origin: `${file}:2`, from: 'folder' },
  ]);
  assert.deepEqual(refusedTables, [
    `${path.join(one, '.pawl/config.toml')}: [folder] is ignored: only your own config.toml has rules for a folder.`,
  ]);
  assert.deepEqual(faults, []);
  assert.deepEqual(
    (await read(path.join(one, '.pawl'))).rules,
    [],
    'a folder below is another one',
  );
});

test('a symlink stays one, and a file that can not be written says why', async (context) => {
  const home = temporaryFolder(context, 'rules');
  mkdirSync(path.join(home, 'dotfiles'));
  mkdirSync(path.join(home, 'pawl'));
  const [file, target] = [path.join(home, 'pawl/config.toml'), path.join(home, 'dotfiles/c')];
  writeFileSync(target, WRITTEN);
  symlinkSync(target, file);
  const edit = (text: string) => {
    assert.ok(existsSync(`${target}.lock`), 'one lock for all names of the file');
    return addFolderRule(text, rule('b'), format);
  };
  assert.equal((await changeConfigFile(file, edit)).kind, 'edited');
  assert.match(
    readFileSync(target, 'utf8'),
    /^# My settings[\s\S]*\[folder\."\/me\/p"\.rules\]\nallow = \["b"\]\n$/,
  );
  for (const folder of ['pawl', 'dotfiles'])
    assert.equal(readdirSync(path.join(home, folder)).length, 1, 'the lock is gone');
  const refused = await changeConfigFile(path.join(target, 'config.toml'), edit);
  assert.match(refused.kind === 'refused' ? refused.why : '', /folder can't be made/);
  writeFileSync(target, `# ${'x'.repeat(16 * 1024 - 20)}\n`);
  const large = await changeConfigFile(file, edit);
  assert.match(large.kind === 'refused' ? large.why : '', /more than 16384 bytes/);
});

test('processes that write at once lose no rule', { timeout: 300_000 }, async (context) => {
  const home = temporaryFolder(context, 'rules');
  const file = path.join(home, 'config.toml');
  writeFileSync(file, WRITTEN);
  const code = `
    import { changeConfigFile } from './packages/pawl/src/settings/edit-config.ts';
    import { addFolderRule } from './packages/pawl/src/settings/edit-rules.ts';
    const [, , file, name] = process.argv;
    for (let index = 0; index < 8; index++) {
      const rule = { folder: '/me/p', list: ['allow'], text: name + ' ' + index };
      const edited = await changeConfigFile(file, (text, format) => addFolderRule(text, rule, format));
      if (edited.kind !== 'edited') throw new Error(edited.why);
    }`;
  const program = await bundleProgram(context, { code });
  const run = promisify(execFile);
  await Promise.all(['a', 'b', 'c'].map((name) => run(process.execPath, [program, file, name])));
  const table = JSON.parse(JSON.stringify(parse(readFileSync(file, 'utf8'))));
  assert.equal(table.folder['/me/p'].rules.allow.length, 24);
  assert.deepEqual(readdirSync(home), ['config.toml']);
});
