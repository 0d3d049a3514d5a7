import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { removeFolderSync } from '../../../../test/temporary-folder.js';
import { decide } from '../../src/policy/decide.js';
import { type Preset, presetRules } from '../../src/policy/presets.js';
import { judgeCall } from '../../src/session/judge-call.js';
import { builtinTools } from '../../src/tools/builtin-tools.js';

// The user's own configuration, trust, state, compiled code and credentials are never written or read unasked,
// wherever the workspace lies and whichever link leads there. The tree: TOP/home is the home; in it `dotfiles` has
// what links of the home lead to, and `proj` is an ordinary project.

const VARIABLES = ['HOME', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME', 'KUBECONFIG'];
const kept = VARIABLES.map((name) => [name, process.env[name]] as const);
const setVariables = (values: Readonly<Record<string, string | undefined>>): void => {
  for (const name of VARIABLES) {
    const value = values[name];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
};

let top = '';
const at = (...names: readonly string[]): string => path.join(top, ...names);

/** Links of the home, with what they lead to; `missing` ones lead to what is not there. */
const LINKS = {
  '.config/pawl': 'dotfiles/pawl',
  '.local/state/pawl': 'dotfiles/current/state',
  '.cache/pawl': 'dotfiles/cache',
  '.ssh': 'dotfiles/ssh',
  '.aws': 'dotfiles/missing/aws',
  'dotfiles/pawl/skills': 'dotfiles/shared/skills',
  'dotfiles/pawl/AGENTS.md': 'dotfiles/shared/rules.md',
} as const;

before(() => {
  top = realpathSync(mkdtempSync(path.join(tmpdir(), 'pawl-own-')));
  for (const folder of [
    ...['home/proj/src', 'home/dotfiles/pawl', 'home/dotfiles/real/state', 'home/dotfiles/ssh'],
    ...['home/dotfiles/shared/skills', 'home/dotfiles/cache', 'home/.config', 'home/.cache'],
    ...['home/.local/state', 'plain/.config/pawl', 'plain/proj', 'plain/.local/bin'],
  ])
    mkdirSync(at(folder), { recursive: true });
  writeFileSync(at('home/dotfiles/netrc'), 'x');
  symlinkSync('real', at('home/dotfiles/current'));
  for (const [link, target] of Object.entries(LINKS))
    symlinkSync(at('home', target), at('home', link));
  symlinkSync('../home/./dotfiles//netrc', at('home/.netrc'));
});
after(() => {
  setVariables(Object.fromEntries(kept));
  removeFolderSync(top);
});

type Tool = 'write' | 'edit' | 'read';

/** `plain` has no links, so the places lie where they are named; `home` has the links above. */
type Row = {
  readonly home: 'home' | 'plain';
  /** From TOP on. */
  readonly workspace: string;
  readonly tool: Tool;
  readonly files: string;
  readonly variables?: Readonly<Record<string, string>>;
};

const inputs = {
  write: (file: string) => ({ path: file, content: 'x' }),
  edit: (file: string) => ({ path: file, edits: [{ oldText: 'x', newText: 'y' }] }),
  read: (file: string) => ({ path: file }),
};

const decisionFor = async (
  { home, workspace, tool, variables = {} }: Row,
  file: string,
  preset: Preset,
): Promise<string> => {
  const absolute = Object.entries(variables).map(([name, value]) => [name, at(value)]);
  setVariables({ HOME: at(home), ...Object.fromEntries(absolute) });
  const tools = new Map(builtinTools().map((one) => [one.name, one]));
  const rawInput = JSON.stringify(inputs[tool](file));
  const folder = at(workspace);
  const call = await judgeCall({ type: 'call', callId: '1', tool, rawInput }, tools, folder);
  const grants = [
    { scope: 'session', tool, needs: 'outside' },
    { scope: 'shape', tool, shape: call.facts.shape, needs: 'outside' },
  ] as const;
  return decide({ rules: presetRules[preset], preset, workspace: folder }, grants, call).decision;
};

const OWN =
  '.config/pawl/config.toml .config/pawl/skills/x/SKILL.md .local/state/pawl/trust/x.json';
const RUN_LATER = `
  .config/nvim/init.lua .config/Code/User/tasks.json .config/zed/tasks.json .config/direnv/direnvrc
  .gradle/init.gradle .local/lib/python3.12/site-packages/usercustomize.py .local/bin/git bin/ls
  .ipython/profile_default/startup/a.py .bashrc .zshenv .config/systemd/user/a.service
  .config/autostart/a.desktop .cache/pawl/code-x .local/share/applications/a.desktop .xsessionrc
  .config/helix/config.toml .local/share/nvim/site/plugin/a.lua .jupyter/jupyter_server_config.py
`;
const CREDENTIALS = `
  .ssh/id_ed25519 .aws/credentials .netrc .git-credentials .npmrc .config/gh/hosts.yml .pgpass
  .kube/config .docker/config.json .local/state/pawl/sessions/a.jsonl
`;
const THROUGH_LINKS = `
  pawl/config.toml pawl/commands/a.md real/state/trust/x.json cache/code-x ssh/authorized_keys netrc
  missing/aws/credentials shared/skills/a/SKILL.md shared/rules.md
`;
const XDG = { XDG_CONFIG_HOME: 'plain/proj/conf', XDG_STATE_HOME: 'plain/proj/state' };

const ASKED: readonly Row[] = [
  { home: 'plain', workspace: 'plain', tool: 'write', files: `${OWN} ${RUN_LATER} ${CREDENTIALS}` },
  { home: 'plain', workspace: '.', tool: 'write', files: inFolder('plain', `${OWN} ${RUN_LATER}`) },
  { home: 'plain', workspace: 'plain', tool: 'read', files: CREDENTIALS },
  { home: 'plain', workspace: '.', tool: 'read', files: inFolder('plain', CREDENTIALS) },
  { home: 'plain', workspace: 'plain', tool: 'edit', files: OWN },
  {
    ...{ home: 'plain', workspace: 'plain/.config', tool: 'write' },
    files: 'pawl/config.toml nvim/init.lua zed/tasks.json gh/hosts.yml',
  },
  { home: 'plain', workspace: 'plain/.config', tool: 'read', files: 'gh/hosts.yml gcloud/a.db' },
  { home: 'plain', workspace: 'plain/.local/bin', tool: 'write', files: 'git' },
  { home: 'home', workspace: 'home/dotfiles', tool: 'write', files: THROUGH_LINKS },
  { home: 'home', workspace: 'home/dotfiles', tool: 'edit', files: 'pawl/config.toml netrc' },
  {
    ...{ home: 'home', workspace: 'home/dotfiles', tool: 'read' },
    files: 'ssh/id_ed25519 netrc missing/aws/credentials real/state/sessions/a.jsonl',
  },
  { home: 'home', workspace: 'home/dotfiles/shared', tool: 'write', files: 'rules.md' },
  {
    ...{ home: 'home', workspace: 'home', tool: 'write' },
    files: inFolder('dotfiles', THROUGH_LINKS),
  },
  {
    ...{ home: 'plain', workspace: 'plain/proj', tool: 'write', variables: XDG },
    files: 'conf/pawl/config.toml conf/git/config conf/nvim/init.lua state/pawl/trust/x.json',
  },
  {
    ...{ home: 'plain', workspace: 'plain/proj', tool: 'write' },
    variables: { XDG_CACHE_HOME: 'plain/proj/cache' },
    files: 'cache/pawl/code-x',
  },
  {
    ...{ home: 'plain', workspace: 'plain/proj', tool: 'read', variables: XDG },
    files: 'conf/gh/hosts.yml state/pawl/sessions/a.jsonl',
  },
  {
    ...{ home: 'plain', workspace: 'plain/proj', tool: 'read' },
    variables: { KUBECONFIG: 'plain/proj/cluster.yaml' },
    files: 'cluster.yaml',
  },
  {
    ...{ home: 'plain', workspace: 'home/proj', tool: 'write' },
    files: inFolder('~', `${OWN} .bashrc .ssh/config`),
  },
];

/** Controls: what the user works on is not asked about. */
const FREE: readonly Row[] = [
  { home: 'plain', workspace: 'plain', tool: 'write', files: 'proj/a.ts notes.md proj/.env' },
  { home: 'plain', workspace: 'plain', tool: 'read', files: '.config/nvim/init.lua .bashrc' },
  { home: 'plain', workspace: 'plain/proj', tool: 'write', files: 'a.ts .env .config/x bin/a' },
  { home: 'plain', workspace: 'plain/proj', tool: 'read', files: '.npmrc .env .netrc .ssh/config' },
  { home: 'plain', workspace: 'plain/proj', tool: 'write', variables: XDG, files: 'a.ts confs/a' },
  { home: 'home', workspace: 'home/dotfiles', tool: 'write', files: 'nvim/init.lua real/a' },
  { home: 'home', workspace: 'home/dotfiles', tool: 'read', files: 'pawl/config.toml' },
  { home: 'home', workspace: 'home/dotfiles/shared/skills', tool: 'write', files: 'a/SKILL.md' },
];

/** Each of the files, below the folder. */
function inFolder(folder: string, files: string): string {
  return words(files)
    .map((file) => `${folder}/${file}`)
    .join(' ');
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

const titleOf = ({ home, workspace, tool, variables = {} }: Row): string =>
  `${tool} in ${workspace} (home: ${home}${Object.keys(variables).map((one) => `, ${one}`)})`;

for (const row of ASKED)
  test(`the user's own files ask, and no grant covers them: ${titleOf(row)}`, async () => {
    const unasked: string[] = [];
    for (const file of words(row.files)) {
      const decisions: string[] = [];
      for (const preset of ['auto', 'careful', 'plan', 'ci'] as const)
        decisions.push(await decisionFor(row, file, preset));
      if (decisions.join(' ') !== 'ask ask deny deny') unasked.push(`${file}: ${decisions}`);
    }
    assert.deepEqual(unasked, []);
  });

for (const row of FREE)
  test(`control: what the user works on is not asked about: ${titleOf(row)}`, async () => {
    for (const file of words(row.files))
      assert.equal(await decisionFor(row, file, 'auto'), 'allow', file);
  });

test('the table has at least sixty places', () => {
  const places = ASKED.flatMap((row) => words(row.files));
  assert.ok(places.length >= 60, String(places.length));
});
