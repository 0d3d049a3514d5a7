import type { Action } from '../machine/action.js';
import type { Event } from '../machine/event.js';
import type { Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';

/** Types of a machine that journal and loop work with. Types only. */

/** The types of one machine as one type parameter. Generic types default to the agent's (AgentTypes). */
export type MachineTypes = {
  readonly kind: 'agent' | 'ask';
  readonly event: { readonly type: string; readonly at: number };
  readonly state: { readonly name: string };
  readonly action: { readonly type: string };
  /** `question`: the question of a run (`pawl ask`), if the settings hold it. */
  readonly settings: { readonly model: string; readonly question?: string };
};

export type AgentTypes = {
  readonly kind: 'agent';
  readonly event: Event;
  readonly state: State;
  readonly action: Action;
  readonly settings: Settings;
};
