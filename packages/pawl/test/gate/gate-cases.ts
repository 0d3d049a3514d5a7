import type { CommandHook } from '@pawl/agent/extensions/hooks/session-hooks';
import type { Preset } from '@pawl/agent/policy/presets';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { chooseRows } from '../../../../test/tier.js';

/** The table of calls and of what each preset decides about them. It holds for every face of the program. */

/** `refused`: it never came to a decision, because the input is wrong. */
export type GateDecision = 'allowed' | 'asked' | 'denied' | 'refused';

/** Absolute paths. */
export type GatePlace = {
  readonly workspace: string;
  readonly outside: string;
  readonly home: string;
};

export type GateCase = {
  /** Also the id of the call. */
  readonly name: string;
  readonly tool: string;
  input(place: GatePlace): JsonObject;
  readonly decisions: Readonly<Record<Preset, GateDecision>>;
};

/** The hook of every face denies calls to `todo` with this text. It allows the other ones, which changes nothing. */
const GUARDED = 'guarded by a hook';
export const GATE_HOOK: CommandHook = {
  name: 'gate',
  on: 'before-tool',
  tools: ['todo', 'write'],
  command: `if grep -q '${GUARDED}'; then exit 2; fi; echo '{"decision":"allow"}'`,
};

type Decisions = GateCase['decisions'];

const all = (decision: GateDecision): Decisions => ({
  plan: decision,
  careful: decision,
  auto: decision,
  ci: decision,
  full: decision,
});
const ALLOWED = all('allowed');
const REFUSED = all('refused');
/** The preset ci denies whatever would be asked. */
const ASKED: Decisions = { ...all('asked'), ci: 'denied', full: 'allowed' };
/** It leaves the workspace or the sandbox. */
const LEAVES: Decisions = {
  plan: 'denied',
  careful: 'asked',
  auto: 'asked',
  ci: 'denied',
  full: 'allowed',
};
const CHANGES: Decisions = {
  plan: 'denied',
  careful: 'asked',
  auto: 'allowed',
  ci: 'allowed',
  full: 'allowed',
};

const gateCase = (
  name: string,
  tool: string,
  input: JsonObject | ((place: GatePlace) => JsonObject),
  decisions: Decisions,
): GateCase => ({
  name,
  tool,
  input: typeof input === 'function' ? input : () => input,
  decisions,
});

const bash = (name: string, input: JsonObject, decisions: Decisions): GateCase =>
  gateCase(name, 'bash', input, decisions);

const reading: readonly GateCase[] = [
  gateCase('read-inside', 'read', { path: 'a.txt' }, ALLOWED),
  gateCase('read-outside', 'read', ({ outside }) => ({ path: `${outside}/o.txt` }), LEAVES),
  gateCase('read-key', 'read', ({ home }) => ({ path: `${home}/.ssh/id_test` }), LEAVES),
  gateCase('read-link', 'read', { path: 'link.txt' }, LEAVES),
  gateCase('list-inside', 'list', {}, ALLOWED),
  gateCase('list-outside', 'list', ({ outside }) => ({ path: outside }), LEAVES),
  gateCase('find-inside', 'find', { glob: '*.txt' }, ALLOWED),
  gateCase('search-inside', 'search', { pattern: 'one' }, ALLOWED),
  gateCase(
    'search-outside',
    'search',
    ({ outside }) => ({ pattern: 'one', path: outside }),
    LEAVES,
  ),
  gateCase(
    'denied-by-a-hook',
    'todo',
    { items: [{ text: GUARDED, status: 'pending' }] },
    all('denied'),
  ),
  gateCase('list-of-todos', 'todo', { items: [{ text: 'look', status: 'pending' }] }, ALLOWED),
  gateCase('page', 'fetch', { url: 'https://example.invalid/' }, LEAVES),
  gateCase('page-of-this-machine', 'fetch', { url: 'http://127.0.0.1:9/' }, LEAVES),
];

const changing: readonly GateCase[] = [
  gateCase('write-inside', 'write', { path: 'new.txt', content: 'x\n' }, CHANGES),
  gateCase(
    'write-outside',
    'write',
    ({ outside }) => ({ path: `${outside}/n.txt`, content: 'x' }),
    LEAVES,
  ),
  gateCase('write-hook', 'write', { path: '.git/hooks/pre-commit', content: 'x' }, LEAVES),
  gateCase('write-workflow', 'write', { path: '.github/workflows/x.yml', content: 'x' }, LEAVES),
  gateCase('write-instructions', 'write', { path: 'AGENTS.md', content: 'x' }, LEAVES),
  gateCase('write-folder-start', 'write', { path: 'sub/.envrc', content: 'x' }, LEAVES),
];

const commands: readonly GateCase[] = [
  bash('command', { command: 'echo x' }, ALLOWED),
  bash('pipeline', { command: 'cat a.txt | wc -l && ls' }, ALLOWED),
  bash('network', { command: 'echo x', needs: 'network' }, LEAVES),
  bash('outside', { command: 'echo x', needs: 'outside' }, LEAVES),
  bash('eval', { command: 'eval "$(cat a.txt)"' }, ASKED),
  bash('reset', { command: 'git reset --hard' }, ASKED),
  bash('clean', { command: 'git clean -fdx' }, ASKED),
  bash('wipe', { command: 'rm -rf .git' }, ASKED),
  bash('overwrite', { command: 'echo x > a.txt' }, { ...ALLOWED, careful: 'asked' }),
];

const wrong: readonly GateCase[] = [
  gateCase('no-such-tool', 'delete', { path: 'a.txt' }, REFUSED),
  gateCase('unknown-field', 'read', { path: 'a.txt', mode: 'raw' }, REFUSED),
  gateCase('missing-field', 'write', { path: 'a.txt' }, REFUSED),
];

export const gateCases: readonly GateCase[] = [...reading, ...changing, ...commands, ...wrong];

/** What each face is tried with: daily one call of each tool and each line of decisions. */
export const triedCases = chooseRows(
  gateCases,
  ({ tool, decisions }) => tool + Object.values(decisions).join(),
);

export const gatePresets: readonly Preset[] = ['plan', 'careful', 'auto', 'ci', 'full'];
