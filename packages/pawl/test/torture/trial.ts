import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { moveSecret } from '../../../../test/move-secret.js';
import { type AnthropicServer, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import type { TestScope } from '../../../../test/temporary-folder.js';
import { startPatience, until } from '../../../../test/until.js';
import { ENVIRONMENTS, interruptible, prepareAsk } from '../e2e/asking.js';
import { processesOf } from '../e2e/command-processes.js';
import { bin, type Ended, type Running, runPawl, start, startPawl } from '../e2e/pawl.js';
import { openTerminal } from '../e2e/pty.js';
import { type Figures, type Finding, findingsOf } from './findings.js';
import { killEnvironment, readSteps, type Step } from './kill-points.js';
import { repeatingModel } from './repeating-model.js';
import { idOf, newestSession, prepareStage, type Stage, type Trial } from './stage.js';

/** One scenario, interrupted once at a chosen step, and gone on with. */

export type TrialEnd = {
  readonly steps: readonly Step[];
  /** Whether the step was reached. */
  readonly reached: boolean;
  /** How many lives met their end. */
  readonly kills: number;
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
  await runPawl(
    { ...stage, environment: { ...stage.environment, ANTHROPIC_BASE_URL: server.url } },
    [...['-p', 'Good morning.', ...scenario.flags]],
  );
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
    const environment = ENVIRONMENTS.find((one) => flags.includes(one)) ?? 'quickjs';
    return [...prepareAsk(stage, interruptible(environment)), ...flags, ASK];
  }
  if (life === 'first') return ['-p', PROMPT, ...flags];
  if (life === 'fork') return ['fork', idOf(newestSession(stage) ?? ''), '-p', PROMPT, ...flags];
  return ['--continue', '-p', PROMPT, ...flags];
};

const LIFE_MS = 25_000;

/** Runs Pawl in a pid namespace of its own. An ordinary user needs a user namespace for it. */
const NAMESPACE = [
  ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
  ...['--pid', '--fork', '--mount-proc', '--kill-child'],
];
/** The namespace outlives Pawl: the file `over` ends it. Pawl alone gets the variables in the first words. */
const STAYING =
  'env "$@"; echo $? > "$FOLDER/code"; until [ -e "$FOLDER/over" ]; do sleep 0.02; done';

const startInside = (
  stage: Stage,
  variables: NodeJS.ProcessEnv,
  words: readonly string[],
): Running =>
  start({ ...stage, environment: { ...stage.environment, FOLDER: stage.folder } }, 'unshare', [
    ...NAMESPACE,
    ...['sh', '-c', STAYING, 'sh'],
    ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ...[process.execPath, bin, ...words],
  ]);

/** Resolves when Pawl has ended in its namespace, which lives on. */
const endedInside = async (stage: Stage, running: Running): Promise<Ended> => {
  const file = join(stage.folder, 'code');
  const code = (): string => (existsSync(file) ? readFileSync(file, 'utf8').trim() : '');
  await until(
    () => `it did not end: ${running.stderr()}`,
    () => code() !== '',
  );
  // A shell tells a signal as a number above 128.
  const number = Number(code());
  return { code: number > 128 ? null : number, stdout: running.stdout(), stderr: running.stderr() };
};

type InterruptedLife = { readonly ended: Ended | null; over(): Promise<void> };

const inTerminal = async (
  scope: TestScope,
  watched: Stage,
  flags: readonly string[],
): Promise<void> => {
  const terminal = openTerminal(scope, watched, ['--preset', 'auto', ...flags]);
  const ended = terminal.ended.catch(() => undefined);
  const overOr = async (wanted: string): Promise<void> => {
    await Promise.race([ended, terminal.sees(wanted).catch(() => undefined)]);
  };
  await overOr('ready');
  terminal.press(`${PROMPT}\r`);
  await overOr('Done.');
  terminal.press('\u0004');
  await Promise.race([ended, delay(LIFE_MS, undefined, { ref: false })]);
};

/** Runs the life that is interrupted, to its end. `over`: ends what it has left on purpose. */
const interrupted = async (
  scope: TestScope,
  stage: Stage,
  trial: Trial,
  library: string,
): Promise<InterruptedLife> => {
  const killing = killEnvironment(library, stage.folder, stage.log, trial.point);
  const watched = { ...stage, environment: { ...stage.environment, ...killing } };
  const over = async (): Promise<void> => undefined;
  if (trial.space === 'began inside') {
    const running = startInside(stage, killing, wordsOf(stage, trial));
    const end = async (): Promise<void> => {
      writeFileSync(join(stage.folder, 'over'), '');
      await running.ended;
    };
    return { ended: await endedInside(stage, running), over: end };
  }
  if (trial.scenario.where === 'terminal') {
    await inTerminal(scope, watched, trial.scenario.flags);
    return { ended: null, over };
  }
  const running = start(watched, process.execPath, [bin, ...wordsOf(stage, trial)]);
  return { ended: await running.ended, over };
};

/** Kills launchers or fences of the session that was interrupted. */
const killAlso = (stage: Stage, also: Trial['also']): void => {
  if (also === 'nothing') return;
  for (const { pid, line } of processesOf(stage)) {
    const isFence = /^\S*bwrap /.test(line);
    const isLauncher = line.includes('pawl-launcher');
    if (also === 'fence' ? !isFence : !isLauncher) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended since it was found
    }
  }
};

/** Another session in the same state folder runs a command. */
const runCompanion = async (stage: Stage): Promise<void> => {
  const command = { tool: 'bash', input: { command: 'echo x' }, proof: 'x', effect: null };
  const server = await startAnthropicServer({ replies: repeatingModel([[command]], {}) });
  const workspace = join(stage.folder, 'companion');
  mkdirSync(workspace);
  const environment = { ...stage.environment, ANTHROPIC_BASE_URL: server.url };
  await runPawl({ ...stage, workspace, environment }, ['-p', 'Say x.']);
  await server.close();
};

/** The stage with a copy of its state folder, made now. Sockets and locks can't be copied. */
const copyStage = (stage: Stage): Stage => {
  const state = join(stage.folder, 'copied-state');
  spawnSync('cp', ['-a', stage.state, state]);
  for (const name of readdirSync(join(state, 'pawl', 'sessions')))
    if (name.includes('.lock')) rmSync(join(state, 'pawl', 'sessions', name), { force: true });
  moveSecret(join(state, 'pawl'));
  return { ...stage, state, environment: { ...stage.environment, XDG_STATE_HOME: state } };
};

/** The lives of a resumed session that are killed as well; what each of them told. */
const killAgain = async (
  stage: Stage,
  trial: Trial,
  library: string,
): Promise<readonly string[]> => {
  const told: string[] = [];
  for (const point of trial.more) {
    const killing = killEnvironment(library, stage.folder, `${stage.log}-${told.length}`, point);
    const watched = { ...stage, environment: { ...stage.environment, ...killing } };
    const ended = await start(watched, process.execPath, [bin, '--continue', '-p', 'Go on.']).ended;
    if (ended.code !== null) break;
    told.push(ended.stderr);
  }
  return told;
};

const nobodyLives = async (stage: Stage): Promise<boolean> => {
  const isOver = startPatience();
  while (processesWith(stage.folder).length > 0) {
    if (isOver()) return false;
    await delay(25);
  }
  return true;
};

const runLast = async (stage: Stage, trial: Trial, words: readonly string[]): Promise<Ended> => {
  if (trial.space !== 'resumed inside') return runPawl(stage, words);
  return start(stage, 'unshare', [...NAMESPACE, process.execPath, bin, ...words]).ended;
};

/** Runs a trial, and looks at all that is left. */
export const runTrial = async (
  scope: TestScope,
  trial: Trial,
  library: string,
): Promise<TrialEnd> => {
  const original = await prepareStage(scope, trial);
  await livesBefore(original, trial);
  const { ended, over } = await interrupted(scope, original, trial, library);
  killAlso(original, trial.also);
  const steps = readSteps(original.log);
  const reached = trial.point !== null && steps.length >= trial.point.at;
  const hasSession = newestSession(original) !== null;
  const stage = trial.copied && hasSession ? copyStage(original) : original;
  if (trial.again === 'later' && trial.space !== 'began inside') await nobodyLives(stage);
  const toldBefore = hasSession ? await killAgain(stage, trial, library) : [];
  if (trial.companion) await runCompanion(stage);
  const requestsShown = stage.server.requests.length;
  const words =
    trial.scenario.where === 'ask' ? ['ask', '--continue'] : ['--continue', '-p', 'Go on.'];
  const first =
    trial.scenario.where === 'ask'
      ? wordsOf(stage, trial)
      : ['-p', PROMPT, ...trial.scenario.flags];
  const last = await runLast(stage, trial, hasSession ? words : first);
  await over();
  const gone = await nobodyLives(stage);
  const looked = { stage, trial, ended, reached, toldBefore, last, gone, requestsShown };
  const kills = (reached && trial.point?.ending === 'kill' ? 1 : 0) + toldBefore.length;
  return { steps, reached, kills, ...(await findingsOf(looked)) };
};
