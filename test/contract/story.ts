import type { Settings } from '../../packages/agent/src/machine/settings.js';
import type { State } from '../../packages/agent/src/machine/state.js';
import type { Script } from '../../packages/agent/src/models/scripted-model.js';
import type { Hooks, UserHooks } from '../../packages/agent/src/ports/hooks.js';
import type { Entry } from '../../packages/agent/src/ports/journal.js';
import type {
  Input,
  Runtime,
  Stepped,
  StoppingPolicy,
} from '../../packages/agent/src/ports/session.js';

/** A story of the contract: what one user does in one session, and what the model answers. */

/** A session of a story, as its user sees it. */
export type StorySession = {
  readonly id: string;
  readonly runtime: Runtime;
  send(input: Input): Promise<{ readonly seq: number }>;
  /** Sends a text and resolves when the turn is over. */
  ask(text: string): Promise<State>;
  /** Sends a text without waiting for more than its seq. */
  say(text: string, mode?: 'steer' | 'followUp'): Promise<{ readonly seq: number }>;
  /** Resolves with the first step, past or future, that fits. */
  until(fits: (stepped: Stepped) => boolean): Promise<Stepped>;
  /** Resolves when the session waits for the user. */
  rest(): Promise<State>;
  /** The entries so far. */
  entries(): Promise<readonly Entry[]>;
};

export type Story = {
  readonly name: string;
  readonly replies: Script['replies'];
  readonly facts?: Script['facts'];
  readonly settings?: Partial<Settings>;
  readonly hooks?: Hooks;
  /** Called once for each play. */
  readonly userHooks?: () => UserHooks;
  readonly stoppingPolicy?: StoppingPolicy;
  play(session: StorySession): Promise<void>;
};

/** The step in which an event of this type was applied. */
export const event =
  (type: Stepped['event']['type']) =>
  (stepped: Stepped): boolean =>
    stepped.event.type === type;

/** The step with an action of this type. */
export const action =
  (type: Stepped['actions'][number]['type']) =>
  (stepped: Stepped): boolean =>
    stepped.actions.some((one) => one.type === type);

/** A story of one turn: the user says "go" and waits. */
export const oneTurn = (
  name: string,
  replies: Story['replies'],
  settings: Partial<Settings> = {},
  rest: Pick<Story, 'facts' | 'hooks' | 'userHooks' | 'stoppingPolicy'> = {},
): Story => ({
  name,
  replies,
  settings,
  ...rest,
  play: async (session) => void (await session.ask('go')),
});
