import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ENVIRONMENTS, interruptible, prepareAsk } from '../e2e/asking.js';
import { bin, type Ended, runPawl, start, startPawl } from '../e2e/pawl.js';
import { openTerminal } from '../e2e/pty.js';
import { type AnthropicServer, startAnthropicServer } from '../servers/anthropic.js';
import type { TestScope } from '../temporary-folder.js';
import { processesWith } from '../tools/processes.js';
import { type Figures, type Finding, findingsOf } from './findings.js';
import { killEnvironment, readSteps, type Step } from './kill-points.js';
import { repeatingModel } from './repeating-model.js';
import { idOf, newestSession, prepareStage, type Stage, type Trial } from './stage.js';

/** One scenario, interrupted once at a chosen step, and gone on with. */

export type TrialEnd = {
  readonly steps: readonly Step[];
  /** Whether the step was reached. */
  readonly reached: boolean;
  readonly findings: readonly Finding[];
  readonly figures: Figures;
};

const PROMPT = 'Do all of it.';
const ASK = 'what is in it?';

/** What comes before the life that is interrupted. */
const livesBefore = async (stage: Stage, { scenario }: Trial): Promise<void> => {
  if (scenario.life === 'first' || scenario.where === 'ask') return;
  if (scenario.life === 'recovery') {
    const running = startPawl(stage, ['-p', PROMPT, ...scenario.flags]);
    const seen = (): boolean => existsSync(join(stage.workspace, 'effects'));
    for (let round = 0; round < 2_000 && !seen(); round++) await delay(10);
    running.child.kill('SIGKILL');
    await running.ended;
    return;
  }
  // A turn before there is anything to do: the model answers at once.
  const { server } = await startEmpty();
  await runPawl({ ...stage, environment: { ...stage.environment, ANTHROPIC_BASE_URL: server.url } }, [
    ...['-p', 'Good morning.', ...scenario.flags],
  ]);
  await server.close();
  const file = newestSession(stage);
  if (scenario.life === 'torn' && file !== null) appendFileSync(file, '{"seq":9');
};

const startEmpty = async (): Promise<{ readonly server: AnthropicServer }> => ({
  server: await startAnthropicServer({ replies: repeatingModel([], {}) }),
});

const wordsOf = (stage: Stage, { scenario }: Trial): readonly string[] => {
  const { life, where, flags } = scenario;
  if (where === 'ask') {
    const environment = ENVIRONMENTS.find((one) => flags.includes(one)) ?? 'javascript';
    return [...prepareAsk(stage, interruptible(environment)), ...flags, ASK];
  }
  if (life === 'first') return ['-p', PROMPT, ...flags];
  if (life === 'fork') return ['fork', idOf(newestSession(stage) ?? ''), '-p', PROMPT, ...flags];
  return ['--continue', '-p', PROMPT, ...flags];
};

const LIFE_MS = 25_000;

/** Runs the life that is interrupted, to its end. */
const interrupted = async (
  scope: TestScope,
  stage: Stage,
  trial: Trial,
  library: string,
): Promise<Ended | null> => {
  const killing = killEnvironment(library, stage.folder, stage.log, trial.point);
  const watched = { ...stage, environment: { ...stage.environment, ...killing } };
  if (trial.scenario.where !== 'terminal') {
    const running = start(watched, process.execPath, [bin, ...wordsOf(stage, trial)]);
    return await running.ended;
  }
  const terminal = openTerminal(scope, watched, ['--preset', 'auto', ...trial.scenario.flags]);
  const ended = terminal.ended.catch(() => undefined);
  const overOr = async (wanted: string): Promise<void> => {
    await Promise.race([ended, terminal.sees(wanted).catch(() => undefined)]);
  };
  await overOr('ready');
  terminal.press(`${PROMPT}\r`);
  await overOr('Done.');
  terminal.press('\u0004');
  await Promise.race([ended, delay(LIFE_MS, undefined, { ref: false })]);
  return null;
};

const nobodyLives = async (stage: Stage): Promise<boolean> => {
  for (let round = 0; round < 400; round++) {
    if (processesWith(stage.folder).length === 0) return true;
    await delay(25);
  }
  return false;
};

/** Runs a trial, and looks at all that is left. */
export const runTrial = async (scope: TestScope, trial: Trial, library: string): Promise<TrialEnd> => {
  const stage = await prepareStage(scope, trial);
  await livesBefore(stage, trial);
  const ended = await interrupted(scope, stage, trial, library);
  const steps = readSteps(stage.log);
  const reached = trial.point !== null && steps.length >= trial.point.at;
  if (trial.again === 'later') await nobodyLives(stage);
  const requestsShown = stage.server.requests.length;
  const hasSession = newestSession(stage) !== null;
  const words = trial.scenario.where === 'ask' ? ['ask', '--continue'] : ['--continue', '-p', 'Go on.'];
  const first =
    trial.scenario.where === 'ask' ? wordsOf(stage, trial) : ['-p', PROMPT, ...trial.scenario.flags];
  const last = await runPawl(stage, hasSession ? words : first);
  const gone = await nobodyLives(stage);
  const looked = { stage, trial, ended, reached, last, gone, requestsShown };
  return { steps, reached, ...(await findingsOf(looked)) };
};
