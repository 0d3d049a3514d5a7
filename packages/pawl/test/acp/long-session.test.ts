import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { agent } from '@pawl/agent/machine/machine';
import { isDeep } from '../../../../test/tier.js';
import { openFromFlags } from '../../src/sessions/open-session.js';
import { makeStage } from './acp-stage.js';

const warn = (): void => undefined;
const TURNS = isDeep ? 20 : 5;
const CALLS = 50;

/** Two replies a turn: calls, then a text that names the turn. */
const replies = Array.from({ length: 2 * (TURNS + 1) }, (_, index) =>
  index % 2 === 0
    ? {
        text: `Turn ${index / 2 + 1} begins.`,
        calls: Array.from({ length: CALLS }, (_call, offset) => ({
          tool: 'read',
          input: { path: 'a.txt', offset: offset + 1, limit: 1 },
        })),
      }
    : { text: `Turn ${(index + 1) / 2} ends.` },
);

test('a long terminal session loads whole, and its journal is folded once', async (context) => {
  const { client, workspace, model, folder } = await makeStage(context, replies);
  writeFileSync(path.join(workspace, 'a.txt'), 'line\n'.repeat(CALLS));
  const { session } = await openFromFlags({ model, workspace, preset: 'auto' }, 'terminal', {
    warn,
    configured: false,
  });
  for (let turn = 1; turn <= TURNS; turn++) await session.prompt(`turn ${turn}`);
  await session.close();
  const { seq } = await fileJournals({ folder: path.join(folder, 'state', 'pawl') }).peek(
    session.id,
  );
  assert.ok(seq >= 100 * TURNS, `${seq} events`);

  let folded = 0;
  context.mock.method(agentMachine, 'step', (...given: Parameters<typeof agent.stepUnchecked>) => {
    folded += 1;
    return agent.stepUnchecked(...given);
  });
  const loaded = { sessionId: session.id, cwd: workspace, mcpServers: [] };
  await client.request('session/load', loaded);
  assert.equal(folded, seq, 'each event is folded once');
  const texts = Array.from({ length: TURNS }, (_, index) => index + 1);
  assert.equal(
    client.textOf(session.id, 'user_message_chunk'),
    texts.map((turn) => `turn ${turn}`).join(''),
  );
  assert.equal(
    client.textOf(session.id),
    texts.map((turn) => `Turn ${turn} begins.Turn ${turn} ends.`).join(''),
  );
  assert.equal(client.updatesOf(session.id, 'tool_call').length, TURNS * CALLS);
  const ended = client
    .updatesOf(session.id, 'tool_call_update')
    .filter(({ status }) => status === 'completed');
  assert.equal(ended.length, TURNS * CALLS);
  assert.equal(client.updatesOf(session.id, 'session_info_update').at(0)?.title, 'turn 1');
  assert.equal(await client.prompt(session.id, 'go on'), 'end_turn');
  client.expectNoFault();
  if (!isDeep) return; // a short session has no snapshot

  await client.request('session/close', { sessionId: session.id });
  folded = 0;
  await client.request('session/resume', { sessionId: session.id, cwd: workspace });
  assert.ok(
    folded < seq / 2,
    `resuming folds only what follows the last snapshot: ${folded} events`,
  );
});
