import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { openFromFlags } from '../../src/sessions/open-session.js';
import { storedJournals } from '../../src/sessions/stored-sessions.js';

/** Resuming a session steps the machine once over its journal: for its settings, its state and the turns shown again. */

const inFolder = (context: TestContext): { readonly workspace: string; readonly model: string } => {
  const folder = temporaryFolder(context, 'resume-once');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const before = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = folder;
  context.after(() => {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  });
  const script = path.join(folder, 'script.json');
  writeFileSync(
    script,
    JSON.stringify({ replies: [{ text: 'first' }, { text: 'second' }, { text: 'third' }] }),
  );
  return { workspace, model: `scripted/${script}` };
};

const warn = (): void => undefined;

test('a resumed session folds its journal once, and has the turns that are shown again', async (context) => {
  const flags = inFolder(context);
  const { session } = await openFromFlags(flags, 'terminal', { warn, configured: false });
  await session.prompt('one');
  await session.prompt('two');
  await session.close();
  const { seq } = await storedJournals().peek(session.id);
  const step = context.mock.method(agentMachine, 'step');
  const again = await openFromFlags({ workspace: flags.workspace }, 'terminal', {
    warn,
    configured: false,
    resume: session.id,
  });
  assert.equal(step.mock.callCount(), seq);
  assert.equal(again.settings.model, flags.model);
  const typed = (again.resumed?.recent?.steps ?? []).map(({ event }) => event.type);
  assert.ok(typed.includes('UserInput') && !typed.includes('Resumed'), typed.join());
  await again.session.prompt('three');
  await again.session.close();
});

test('a session whose resume is refused is free for the next one', async (context) => {
  const flags = inFolder(context);
  const { session } = await openFromFlags(flags, 'terminal', { warn, configured: false });
  await session.close();
  const resumed = { warn, configured: false, resume: session.id } as const;
  const refused = openFromFlags(
    { ...flags, model: 'scripted/no-such-file.json' },
    'terminal',
    resumed,
  );
  await assert.rejects(refused, /no-such-file/);
  const again = await openFromFlags(flags, 'terminal', resumed);
  await again.session.close();
});
