import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { ANSWER } from '../e2e/asking.js';
import { type Ended, runPawl } from '../e2e/pawl.js';
import type { Ending } from './kill-points.js';
import { isOfTask, resultsIn } from './repeating-model.js';
import { idOf, newestSession, type Stage, type Trial } from './stage.js';
import { findUntruths } from './truth.js';

/** What is wrong after a session was interrupted and gone on with. */

export type Finding = {
  readonly kind:
    | 'ending'
    | 'answer'
    | 'request'
    | 'shown'
    | 'repeated'
    | 'truth'
    | 'dropped'
    | 'hook'
    | 'missing'
    | 'file'
    | 'journal'
    | 'processes'
    | 'lock'
    | 'repository';
  readonly text: string;
};

export type Figures = {
  /** Commands that had finished when the session was opened again, and whose real result the model was not shown. */
  readonly lostResults: number;
  readonly finished: number;
};

export type Looked = {
  readonly stage: Stage;
  readonly trial: Trial;
  /** The life that was interrupted; null of one in a terminal. */
  readonly ended: Ended | null;
  /** What the lives that were killed before the last one told the user. */
  readonly toldBefore: readonly string[];
  readonly last: Ended;
  readonly gone: boolean;
  readonly reached: boolean;
  readonly requestsShown: number;
};

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');

const git = (
  { workspace, home }: Stage,
  ...words: readonly string[]
): { code: number | null; text: string } => {
  const { status, stdout, stderr } = spawnSync('git', words, {
    cwd: workspace,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: home },
  });
  return { code: status, text: stdout + stderr };
};

/** Exit codes of a life that was interrupted; null: it may also be killed by the signal, before it listens. */
const CODES: Readonly<Record<Ending, readonly (number | null)[]>> = {
  kill: [null],
  int: [0, 130, null],
  quit: [0, 143, null],
  term: [0, 143, null],
  hangUp: [0, 143, null],
  usr1: [0],
  fullDisk: [0, 74],
  brokenDisk: [0, 65, 74, 78],
  fewDescriptors: [0, 65, 74, 78],
};

/** A life that was not killed ends with a documented code, without a stack. */
const ending = ({ ended, trial: { point }, reached }: Looked): readonly Finding[] => {
  if (ended === null || point === null || !reached) return [];
  const isKnown = CODES[point.ending].includes(ended.code);
  const hasStack = /internal fault|^\s+at \S+ \(/m.test(ended.stderr);
  return isKnown && !hasStack
    ? []
    : [{ kind: 'ending', text: `exit ${ended.code}: ${ended.stderr}` }];
};

const answers = ({ trial, last }: Looked): readonly Finding[] => {
  const wanted = trial.scenario.where === 'ask' ? `${ANSWER}\n` : 'Done.\n';
  if (last.code === 0 && last.stdout === wanted) return [];
  return [{ kind: 'answer', text: `exit ${last.code}: ${last.stdout}${last.stderr}` }];
};

const requests = ({ stage }: Looked): readonly Finding[] =>
  stage.server.requests.flatMap(({ fault }) =>
    fault === null ? [] : [{ kind: 'request' as const, text: fault }],
  );

/** A result that was shown to the model once is shown unchanged in each later request. */
const shown = ({ stage, trial }: Looked): readonly Finding[] => {
  if (trial.scenario.model.usage !== undefined) return []; // a summary takes their place
  const found: Finding[] = [];
  const [own, ofTask] = [new Map<string, string>(), new Map<string, string>()];
  for (const { body } of stage.server.requests.filter(({ fault }) => fault === null)) {
    const results = resultsIn(body);
    const seen = isOfTask(body) ? ofTask : own;
    for (const [id, text] of seen)
      if (results.get(id) !== text && results.size > 0)
        found.push({ kind: 'shown', text: `${id}: ${text} became ${results.get(id)}` });
    for (const [id, text] of results) seen.set(id, text);
  }
  return found;
};

const effects = ({ stage, trial }: Looked): readonly Finding[] => {
  const lines = read(join(stage.workspace, 'effects')).split('\n');
  // A user who stops a command, or a disk that takes nothing more, lets the model do it again.
  const isKill = trial.point === null || trial.point.ending === 'kill';
  // What was killed beside Pawl, or happened to an original, can't be known: the model may repeat it.
  const isKnown = isKill && trial.also === 'nothing' && !trial.copied;
  return trial.scenario.rounds.flat().flatMap(({ effect, tool }): readonly Finding[] => {
    if (effect === null) return [];
    const times = lines.filter((line) => line === effect).length;
    if (times === 0) return [{ kind: 'missing', text: `${effect} never happened` }];
    return times > 1 && isKnown && tool === 'bash'
      ? [{ kind: 'repeated', text: `${effect} happened ${times} times` }]
      : [];
  });
};

const files = ({ stage, trial }: Looked): readonly Finding[] =>
  Object.entries(trial.scenario.files).flatMap(([name, wanted]): readonly Finding[] => {
    const text = read(join(stage.workspace, name));
    return text === wanted ? [] : [{ kind: 'file', text: `${name}: ${JSON.stringify(text)}` }];
  });

const journal = async ({ stage }: Looked): Promise<readonly Finding[]> => {
  const file = newestSession(stage);
  if (file === null) return [{ kind: 'journal', text: 'there is none' }];
  const { code, stdout, stderr } = await runPawl(stage, ['replay', idOf(file)]);
  return code === 0 ? [] : [{ kind: 'journal', text: `${stdout.slice(-300)}${stderr}` }];
};

/** A lock of a session that never came to be holds nobody up. */
const locks = ({ stage }: Looked): readonly Finding[] => {
  const below = (folder: string): readonly string[] =>
    existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  const sessions = below(join(stage.state, 'pawl', 'sessions'));
  const left = [
    ...sessions.filter(
      (name) => name.endsWith('.lock') && sessions.includes(name.replace('.lock', '.jsonl')),
    ),
    ...below(join(stage.workspace, '.git')).filter((name) => name.endsWith('.lock')),
  ];
  return left.map((name) => ({ kind: 'lock', text: name }));
};

/** The repository is whole; each file is committed at most once, and else still there to be committed. */
const repository = ({ stage, trial }: Looked): readonly Finding[] => {
  if (!existsSync(join(stage.workspace, '.git'))) return [];
  const found: Finding[] = [];
  const check = git(stage, 'fsck', '--strict', '--no-dangling', '--no-progress');
  if (check.code !== 0) found.push({ kind: 'repository', text: check.text });
  for (const name of trial.scenario.commits ? Object.keys(trial.scenario.files) : []) {
    const commits = git(stage, 'log', '--format=%h', '--', name)
      .text.trim()
      .split('\n')
      .filter(Boolean).length;
    const status = git(stage, 'status', '--porcelain', '--', name).text.trim();
    const isCommitted = commits === 1 && status === '';
    const isWaiting = commits === 0 && /^(\?\?|A ) /.test(status);
    if (!isCommitted && !isWaiting)
      found.push({ kind: 'repository', text: `${name}: ${commits} commits, status '${status}'` });
  }
  const deleted = git(stage, 'diff', '--cached', '--name-only', '--diff-filter=D').text.trim();
  if (deleted !== '')
    found.push({ kind: 'repository', text: `the next commit deletes ${deleted}` });
  return found;
};

const processes = ({ stage, gone }: Looked): readonly Finding[] =>
  gone ? [] : [{ kind: 'processes', text: processesWith(stage.folder).join('\n') }];

/** Of the calls that the interrupted life had begun: how many had finished without the model ever being shown how. */
const figures = ({ stage, trial, requestsShown }: Looked): Figures => {
  const next = stage.server.requests[requestsShown]?.body;
  if (next === undefined || trial.point?.ending !== 'kill') return { finished: 0, lostResults: 0 };
  const results = [...resultsIn(next).values()];
  const lost = results.filter((text) => text.includes('outcome unknown')).length;
  return { finished: results.length, lostResults: lost };
};

export const findingsOf = async (
  looked: Looked,
): Promise<{ readonly findings: readonly Finding[]; readonly figures: Figures }> => {
  const checks = [
    ending,
    answers,
    requests,
    shown,
    effects,
    files,
    locks,
    repository,
    processes,
    findUntruths,
  ];
  const found = checks.flatMap((check) => check(looked));
  return { findings: [...found, ...(await journal(looked))], figures: figures(looked) };
};
