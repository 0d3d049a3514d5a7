import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireBody } from '../../../../test/servers/anthropic.js';
import type { Finding, Looked } from './findings.js';
import { isOfTask, resultsIn } from './repeating-model.js';
import type { Stage, Trial } from './stage.js';

/**
 * The checker of truth: what model and user were told about the fate of each call, held against a ledger that commands and
 * servers write themselves.
 */

/** What the ledger says of one call. */
type Effects = { readonly begun: number; readonly ended: number };

type Sentence = {
  readonly name: string;
  readonly told: RegExp;
  /** Whether it is true for these effects of the call, in this trial. */
  isTrue(effects: Effects, trial: Trial): boolean;
};

const ranOnce = ({ begun, ended }: Effects): boolean => begun === 1 && ended === 1;
const neverRan = ({ begun }: Effects): boolean => begun === 0;
const mayHaveRun = ({ begun }: Effects): boolean => begun <= 1;
const brokeOff = ({ begun, ended }: Effects): boolean => begun <= 1 && ended === 0;

const isKill = ({ point, more }: Trial): boolean =>
  [point, ...more].every((one) => one === null || one.ending === 'kill');
const wasKilled = ({ point, scenario }: Trial): boolean =>
  point !== null || scenario.life === 'recovery';
const onlyPawlDied = (trial: Trial): boolean =>
  isKill(trial) && trial.also === 'nothing' && !trial.copied;

/** Every sentence about the fate of a call. The first that fits is the one that counts. */
const SENTENCES: readonly Sentence[] = [
  {
    name: 'the machine was restarted, or is another one',
    told: /another machine, or this one was restarted/,
    isTrue: () => false,
  },
  {
    name: 'this is a copy',
    told: /^outcome unknown after a crash\nthis is a copy of the files of the session/,
    isTrue: (effects, { copied }) => copied && mayHaveRun(effects),
  },
  {
    name: 'nothing shows whether it still runs',
    told: /nothing shows from here whether it still runs/,
    isTrue: (effects, { space }) => space !== 'host' && mayHaveRun(effects),
  },
  {
    name: 'nobody saw how it ended',
    told: /^outcome unknown after a crash\n[\s\S]*\[nobody saw how it ended/,
    isTrue: (effects, trial) => trial.also !== 'nothing' && brokeOff(effects),
  },
  {
    name: 'interrupted while a command started or ran',
    told: /^outcome unknown after a crash\nthe session was interrupted while this command started or ran/,
    isTrue: (effects, trial) => !onlyPawlDied(trial) && mayHaveRun(effects),
  },
  {
    name: 'was being sent to a server',
    told: /this call was being sent to the MCP server ledger, or the server was working on it/,
    isTrue: mayHaveRun,
  },
  {
    name: 'nothing shows whether a server received it',
    told: /nothing shows whether the MCP server ledger had received it/,
    isTrue: (effects, trial) => !onlyPawlDied(trial) && mayHaveRun(effects),
  },
  {
    name: 'the fence was killed',
    told: /\[exit code 137, /,
    isTrue: (effects, { also }) => also !== 'nothing' && brokeOff(effects),
  },
  {
    name: 'the end of the output is missing',
    told: /\[the end of the output is missing/,
    isTrue: (effects, { also }) => also === 'launcher' && ranOnce(effects),
  },
  {
    name: 'a real result, found again',
    told: /\[exit code \d+, [\s\S]*\[Pawl was interrupted while this ran/,
    isTrue: (effects, trial) => wasKilled(trial) && ranOnce(effects),
  },
  { name: 'a real result', told: /\[exit code \d+, [^\n]*\]\s*$/, isTrue: ranOnce },
  { name: 'an answer of a server', told: /^did-\w+$/, isTrue: ranOnce },
  { name: 'not run', told: /^not run: |^cancelled before it had run/, isTrue: neverRan },
  {
    name: 'stopped while running',
    told: /^(stopped|interrupted) while running/,
    isTrue: (effects, trial) => !isKill(trial) && mayHaveRun(effects),
  },
  // a disk that takes nothing more, or no descriptor
  {
    name: 'it could not be started or recorded',
    told: /^failed: /,
    isTrue: (effects, trial) => !isKill(trial) && mayHaveRun(effects),
  },
];

/** Sentences about files. Each file is compared with what the plan says by another check. */
const UNTRUE_OF_FILES =
  /the file has changed since the call began|how the file was before the call is not recorded/;

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');

const effectsOf = (stage: Stage, callId: string): Effects => {
  const lines = read(join(stage.workspace, 'ledger')).split('\n');
  const count = (line: string): number => lines.filter((one) => one === line).length;
  return { begun: count(`begin ${callId}`), ended: count(`end ${callId}`) };
};

type Told = { readonly callId: string; readonly tool: string; readonly text: string };

/** The last result of each call that the model was told. */
const toldIn = ({ server }: Stage): readonly Told[] => {
  const told = new Map<string, Told>();
  for (const { body } of server.requests) {
    const tools = new Map<string, string>();
    for (const { content } of body.messages)
      for (const block of content)
        if (block.type === 'tool_use') tools.set(String(block.id), String(block.name));
    for (const [callId, text] of resultsIn(body))
      told.set(callId, { callId, tool: tools.get(callId) ?? '', text });
  }
  return [...told.values()];
};

/** A task's commands can write nothing. */
const isWithLedger = ({ tool, callId }: Told): boolean =>
  (tool === 'bash' && !callId.startsWith('task-')) || tool === 'mcp__ledger__act';

const judgeTold = (told: Told, stage: Stage, trial: Trial): string | null => {
  const { callId, tool, text } = told;
  const at = `${tool} ${callId}: ${text.slice(0, 400)}`;
  if (!isWithLedger(told))
    return onlyPawlDied(trial) && UNTRUE_OF_FILES.test(text) ? `untrue: ${at}` : null;
  const sentence = SENTENCES.find(({ told: pattern }) => pattern.test(text));
  if (sentence === undefined) return `no known sentence: ${at}`;
  const effects = effectsOf(stage, callId);
  const facts = `begun ${effects.begun} times, ended ${effects.ended} times`;
  return sentence.isTrue(effects, trial) ? null : `untrue (${sentence.name}; ${facts}): ${at}`;
};

/** A call whose effect happened twice: each repetition of the model has an id of its own. */
const doubled = (stage: Stage): readonly string[] => {
  const begun = read(join(stage.workspace, 'ledger'))
    .split('\n')
    .filter((line) => line.startsWith('begin '));
  return [...new Set(begun)].filter((line) => begun.filter((one) => one === line).length > 1);
};

/** Calls that never began and were not made, though nothing but Pawl was killed. */
const dropped = (told: readonly Told[], stage: Stage, trial: Trial): readonly string[] =>
  told
    .filter(
      (one) => isWithLedger(one) && onlyPawlDied(trial) && one.text.startsWith('outcome unknown'),
    )
    // what was recorded as about to be sent may have been sent
    .filter(({ tool, callId }) => tool === 'bash' && effectsOf(stage, callId).begun === 0)
    .map(({ callId, text }) => `${callId}: ${text.slice(0, 300)}`);

/** Hooks before a call run before it, and hooks after it at least once for a call that ran to its end. */
const withoutHook = (told: readonly Told[], stage: Stage, trial: Trial): readonly string[] => {
  if (!trial.scenario.hasHooks || !isKill(trial)) return [];
  const notes = read(join(stage.folder, 'hooks'));
  const isNoted = (moment: string, id: string): boolean =>
    notes.split('\n').some((line, at, all) => line.includes(`"${id}"`) && all[at - 1] === moment);
  return told.filter(isWithLedger).flatMap(({ callId, text }) => {
    const { begun, ended } = effectsOf(stage, callId);
    if (begun > 0 && !isNoted('before-tool', callId)) return [`${callId} began without its hook`];
    const isDone = ended > 0 && !text.startsWith('outcome unknown');
    return isDone && !isNoted('after-tool', callId) ? [`${callId} ended without its hook`] : [];
  });
};

const isUnknownTold = (body: WireBody | undefined): boolean =>
  body !== undefined &&
  [...resultsIn(body).values()].some((text) => text.startsWith('outcome unknown'));

/**
 * The user is told of an unknown outcome exactly if the session's model is. What a task had begun
 * is told to the task's model alone: it can have written nothing.
 */
const toldToUser = (looked: Looked): readonly string[] => {
  const { stage, toldBefore, last, trial, requestsShown } = looked;
  if (trial.scenario.where !== 'headless' || !isKill(trial)) return [];
  const ofSession = (requests: typeof stage.server.requests) =>
    requests.map(({ body }) => body).filter((body) => !isOfTask(body));
  const before = ofSession(stage.server.requests.slice(0, requestsShown)).at(-1);
  const next = ofSession(stage.server.requests.slice(requestsShown))[0];
  const told = [...toldBefore, last.stderr].join('\n');
  const isShown = told.includes('outcome unknown after a crash');
  return isUnknownTold(next) && !isUnknownTold(before) && !isShown
    ? [`the user was not told of an unknown outcome: ${told}`]
    : [];
};

export const findUntruths = (looked: Looked): readonly Finding[] => {
  const { stage, trial } = looked;
  const told = toldIn(stage);
  const untrue = told.flatMap((one) => judgeTold(one, stage, trial) ?? []);
  const finding =
    (kind: Finding['kind']) =>
    (text: string): Finding => ({ kind, text });
  return [
    ...untrue.map(finding('truth')),
    ...toldToUser(looked).map(finding('truth')),
    ...doubled(stage).map(finding('repeated')),
    ...dropped(told, stage, trial).map(finding('dropped')),
    ...withoutHook(told, stage, trial).map(finding('hook')),
  ];
};
