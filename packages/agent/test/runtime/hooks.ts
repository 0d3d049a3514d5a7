import {
  callTools,
  collect,
  command,
  ok,
  type Play,
  play,
  rawCall,
  type StageOptions,
  say,
  settle,
  stage,
  testModel,
  tool,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import type { HookPhase } from '../../src/machine/action.js';
import type { Settings } from '../../src/machine/settings.js';
import type { HookContext, HookReport, Hooks } from '../../src/ports/hooks.js';

/** Sessions whose hooks keep a record. */

export const QUIET: HookReport = {
  commits: [],
  changedFiles: [],
  dirty: false,
  note: '',
  warning: '',
  proceed: true,
};

export type Phases = Partial<
  Record<HookPhase, (context: HookContext) => Promise<HookReport> | HookReport>
>;

export type Watched = Hooks & {
  readonly log: string[];
  readonly contexts: Map<HookPhase, HookContext>;
};

/** Hooks that keep a record: of the calls they looked before, and of the phases they ran. */
export const hooksOf = (
  phases: Phases = {},
  before: Hooks['before'] = async () => undefined,
): Watched => {
  const log: string[] = [];
  const contexts = new Map<HookPhase, HookContext>();
  return {
    log,
    contexts,
    deadlinesMs: { CheckingGitCommits: 1_000, RunningAutoformatters: 2_000, AutoCommitting: 3_000 },
    before: (call, settings) => {
      log.push(`before ${call.callId}`);
      return before(call, settings);
    },
    after: async (call) => {
      log.push(`after ${call.callId}`);
    },
    run: async (phase, context) => {
      log.push(`${phase} ${context.calls.map(({ callId }) => callId).join()}`);
      contexts.set(phase, context);
      return (await phases[phase]?.(context)) ?? QUIET;
    },
  };
};

export const make = tool('make', () => ok('made'), command);
export const look = tool('look', () => ok('looked'));
export const ALL: Partial<Settings> = {
  hooks: 'mutating',
  formatter: 'onChanges',
  autoCommit: 'on',
};
export const CHANGED = { ...QUIET, changedFiles: ['/workspace/a.ts'], dirty: true };
export const COMMIT = { hash: 'abcdef0123', subject: 'Add a' };

export const playWith = (hooks: Hooks, more: StageOptions = {}): Promise<Play> =>
  play({
    tools: [make, look],
    model: testModel(callTools(rawCall('1', 'make'), rawCall('2', 'look')), say('done')),
    settings: ALL,
    ...more,
    hooks,
  });

export const lastTexts = ({ model }: Play): readonly string[] =>
  (model.requests.at(-1)?.messages.at(-1)?.parts ?? []).flatMap((part) =>
    part.type === 'text' ? [part.text] : [],
  );

export const shownIn = ({ steps }: Play): readonly string[] =>
  steps.flatMap(({ actions }) =>
    actions.flatMap((action) =>
      action.type === 'DisplayWarning' || action.type === 'DisplayNotice'
        ? [`${action.kind}: ${action.text}`]
        : [],
    ),
  );

export const eventsOf = async (on: Play, type: string) =>
  (await collect(on.journals.read(on.id)))
    .map(({ event }) => event)
    .filter((event) => event.type === type);

/** A life that ended in the middle, gone on with: see `reopen`. */
export const reopenWith = async (on: Play, seq: number, options: StageOptions): Promise<Play> => {
  const later = stage({ journals: on.journals, ...options });
  const id = await on.runtime.fork(on.id, seq);
  await later.runtime.open(id);
  const again = watchSession(later, id);
  await settle();
  return again;
};
