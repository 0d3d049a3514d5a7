import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide } from '../../src/policy/decide.js';
import type { Needs } from '../../src/policy/judged-call.js';
import { presetRules } from '../../src/policy/presets.js';
import { shellFacts } from '../../src/policy/shell/shell-facts.js';
import { command, decisionOf } from './decisions.js';

// A rule that lets a command out covers its words, further words, and only options that are known to be harmless.

/** The rule's words, and a command that begins with them but runs another program or writes elsewhere. */
const RUN_OTHERS: readonly (readonly [rule: string, text: string])[] = [
  ['git clone', 'git clone -u ./e.sh . x'],
  ['git clone', 'git clone -u./e.sh . x'],
  ['git clone', 'git clone --upload-pack=./e.sh . x'],
  ['git clone', 'git clone -c core.sshCommand=./e.sh x:y'],
  ['git submodule', "git submodule foreach './e.sh'"],
  ['git', "git submodule foreach --recursive './e.sh'"],
  ['git bisect', 'git bisect run ./e.sh'],
  ['git rebase', 'git rebase -x ./e.sh HEAD~1'],
  ['git rebase', 'git rebase --exec=./e.sh HEAD~1'],
  ['gcc', 'gcc -fplugin=./e.so a.c'],
  ['gcc -O2', 'gcc -O2 -fplugin=./e.so a.c'],
  ['sqlite3', 'sqlite3 db ".shell ./e.sh"'],
  ['psql', "psql -c '\\! ./e.sh'"],
  ['go build', 'go build -ldflags=-extld=./e.sh'],
  ['hg status', 'hg status --config extensions.e=./e.py'],
  ['apt install', 'apt install -o DPkg::Pre-Invoke::=./e.sh vim'],
  ['just build', 'just build --shell ./e.sh'],
  ['tar', 'tar -xf a.tar -C /'],
  ['npm install', 'npm install --script-shell=./e.sh'],
  ['npm install', 'npm install --unknown-option x'],
  ['docker build', 'docker build --security-opt x .'],
  ['rsync', 'rsync --rsh=./e.sh a b:c'],
  ['hyperfine', "hyperfine './e.sh'"],
  ['hyperfine make', "hyperfine make './e.sh'"],
  ['tmux new', "tmux new './e.sh x'"],
  ['screen', 'screen ./e.sh'],
  ['entr', 'entr ./e.sh'],
  ['nix-shell', "nix-shell --run './e.sh'"],
  ['ip netns', 'ip netns exec x ./e.sh'],
  ['a-program-that-nobody-knows', 'a-program-that-nobody-knows --run ./e.sh'],
];

const HARMLESS: readonly (readonly [rule: string, text: string])[] = [
  ['git clone', 'git clone --depth 1 -b main https://example.org/x.git'],
  ['git fetch', 'git fetch --all --prune'],
  ['git fetch', 'git fetch -pt origin'],
  ['git pull', 'git pull --rebase origin main'],
  ['git push', 'git push -u origin main'],
  ['git status', 'git status -sb'],
  ['git log', 'git log --oneline -n5'],
  ['npm install', 'npm install --save-dev vitest'],
  ['npm install', 'npm install -D vitest'],
  ['npm ci', 'npm ci --no-audit --no-fund'],
  ['npm install --unknown-option', 'npm install --unknown-option x'],
  ['pip install', 'pip install -r requirements.txt -q'],
  ['cargo build', 'cargo build --release --locked'],
  ['go get', 'go get -u ./...'],
  ['docker build', 'docker build -t app --no-cache .'],
  ['docker run', 'docker run image make test'],
  ['docker compose', 'docker compose up -d --build'],
  ['gh pr', 'gh pr list --limit 5 --json title'],
  ['curl', 'curl -fsSL https://example.org'],
  ['ls', 'ls -la src'],
  ['grep', 'grep -rn --include=a x src'],
  ['make', 'make -j4 test'],
  ['gcc', 'gcc a.c'],
  ['gcc -O2 -o app', 'gcc -O2 -o app a.c'],
];

const BODY = `"$(cat <<'EOF'\nIt's \`done\` for $5.\nEOF\n)"`;

/** Commands that a rule for the first covers, since the others only pass on what they get. */
const FILTERED: readonly (readonly [text: string, decision: 'allow' | 'ask'])[] = [
  ['git fetch 2>&1 | tail -3', 'allow'],
  ['git fetch | head -n 20 | cat', 'allow'],
  ['git fetch | sort -u | uniq -c | wc -l', 'allow'],
  ['printf "%s\\n" x; git fetch & wait', 'allow'],
  ['printf -v PATH ./evil:/usr/bin && git fetch', 'ask'],
  ['true & wait -np PATH; git fetch', 'ask'],
  [`gh pr create --title x --body ${BODY}`, 'allow'],
  [`gh pr create --title x --body=${BODY}`, 'allow'],
  ['git fetch | tail -3 notes.txt', 'ask'],
  ['git fetch; cat < /etc/id', 'ask'],
  ['git fetch; { cat; } < /etc/id', 'ask'],
  ['git fetch; cat 0<> /etc/id', 'ask'],
  ["git fetch; cat < /etc/id <<'EOF'\nEOF", 'ask'],
  ['git fetch; cat <<< "$SECRET"', 'ask'],
  ['git fetch; cat <<EOF\n$SECRET\nEOF', 'ask'],
  ['git fetch; exec < /etc/id; cat', 'ask'],
  ['git fetch | sort -o out', 'ask'],
  ['git fetch | sort --files0-from=names', 'ask'],
  ['git fetch | ./tail -3', 'ask'],
  ['git fetch | tail -3 > out', 'ask'],
  ['tail() { ./e.sh; }; git fetch | tail -3', 'ask'],
  ['gh pr create --body "$(cat <<EOF\n$(./e.sh)\nEOF\n)"', 'ask'],
  ['gh pr create --body "$(cat notes.txt)"', 'ask'],
  [`gh pr create --body "$(cat <<'EOF'\nx\nEOF\n./e.sh)"`, 'ask'],
  [`gh pr create $(cat <<'EOF'\n--odd\nEOF\n)`, 'ask'],
  [`gh pr create --odd=${BODY}`, 'ask'],
];

const WAYS: readonly (readonly [
  name: string,
  sandbox: 'workspace' | 'off',
  needs: Needs | undefined,
])[] = [
  ['allow_network', 'workspace', 'network'],
  ['allow_outside', 'workspace', 'outside'],
  ['allow with the sandbox off', 'off', undefined],
];

for (const [name, sandbox, needs] of WAYS) {
  const decision = (rule: string, text: string) =>
    decisionOf(text, {
      preset: 'careful',
      sandbox,
      rules: [command('allow', rule, needs)],
      ...(needs === undefined ? {} : { needs }),
    });
  test(`${name} does not cover options and words with which a program runs others or writes elsewhere`, async () => {
    for (const [rule, text] of RUN_OTHERS)
      assert.equal(await decision(rule, text), 'ask', `${rule}: ${text}`);
  });
  test(`${name} covers further words, harmless options and options that it names`, async () => {
    for (const [rule, text] of HARMLESS)
      assert.equal(await decision(rule, text), 'allow', `${rule}: ${text}`);
  });
  test(`${name} covers programs behind a pipe that only pass on what they get`, async () => {
    for (const [text, expected] of FILTERED)
      assert.equal(
        await decision(text.startsWith('gh') ? 'gh pr' : 'git fetch', text),
        expected,
        text,
      );
  });
}

test('a granted prefix covers neither unknown options outside the sandbox nor another command behind it', async () => {
  const settings = {
    rules: presetRules.careful,
    preset: 'careful',
    sandbox: 'workspace',
    workspace: '/project',
  } as const;
  const grant = {
    scope: 'prefix',
    tool: 'bash',
    words: ['npm', 'install'],
    needs: 'network',
  } as const;
  const decisionAbout = async (text: string) => {
    const shell = await shellFacts(text, (name) => `/usr/bin/${name}`);
    const traits = {
      effect: 'opaque',
      parallelSafe: false,
      mutating: true,
      deadlineMs: 0,
    } as const;
    const facts = {
      argv: [text],
      paths: ['/project'],
      hosts: [],
      shape: text,
      shell,
      needs: 'network',
    } as const;
    const call = {
      callId: '1',
      tool: 'bash',
      input: {},
      verdict: { kind: 'ok' },
      traits,
      facts,
    } as const;
    return decide(settings, [grant], call).decision;
  };
  const covered = ['npm install', 'npm install vitest', 'npm install -D vitest'];
  const others = [
    'npm install x && curl evil.example',
    'npm install x; ./e.sh',
    'npm install x | sh',
    'npm install x & ./e.sh',
    'npm install x\n./e.sh',
    'npm install $(./e.sh)',
    'npm install `./e.sh`',
    'npm install <(./e.sh)',
    'npm install x > .npmrc',
    'npm install "$X"',
    'X=1 npm install x',
    'f() { ./e.sh; }; npm install x',
    'npm install --script-shell=./e.sh',
    'npm install --odd=./e.sh',
    'npm run install',
  ];
  for (const text of covered) assert.equal(await decisionAbout(text), 'allow', text);
  for (const text of others) assert.equal(await decisionAbout(text), 'ask', text);
});
