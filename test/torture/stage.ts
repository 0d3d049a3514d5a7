import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makePlace, type Place } from '../e2e/pawl.js';
import { type AnthropicServer, startAnthropicServer } from '../servers/anthropic.js';
import { atEnd, type TestScope } from '../temporary-folder.js';
import type { KillPoint } from './kill-points.js';
import { repeatingModel } from './repeating-model.js';
import type { Scenario } from './scenarios.js';

/** Where a trial takes place: a home and a workspace of its own, and a strict server with a model that repeats. */

export type Trial = {
  readonly scenario: Scenario;
  /** Null: nothing is interrupted. */
  readonly point: KillPoint | null;
  /** How long after the end the session is opened again: at once, or when all that it had started has ended. */
  readonly again: 'at once' | 'later';
};

export type Stage = Place & { readonly server: AnthropicServer; readonly log: string };

export const prepareStage = async (scope: TestScope, { scenario }: Trial): Promise<Stage> => {
  const { rounds, model } = scenario;
  const server = await startAnthropicServer({ replies: repeatingModel(rounds, model) });
  atEnd(scope, () => server.close());
  const place = makePlace(scope, {
    ANTHROPIC_API_KEY: 'key',
    ANTHROPIC_BASE_URL: server.url,
    PAWL_RETRY_MS: '5',
  });
  execFileSync('/bin/bash', ['-c', `set -e\n${scenario.prepare}`], {
    cwd: place.workspace,
    env: { ...place.environment, GIT_CONFIG_NOSYSTEM: '1' },
  });
  return { ...place, server, log: join(place.folder, 'steps') };
};

const sessionFiles = ({ state }: Place): readonly string[] => {
  const folder = join(state, 'pawl', 'sessions');
  if (!existsSync(folder)) return [];
  const written = (file: string): number => statSync(file).mtimeMs;
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => join(folder, name))
    .toSorted((one, other) => written(other) - written(one));
};

export const newestSession = (place: Place): string | null => sessionFiles(place)[0] ?? null;

export const idOf = (file: string): string => (file.split('/').at(-1) ?? '').replace('.jsonl', '');
