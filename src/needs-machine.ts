import type { Action } from './agent/action.js';
import type { Event } from './agent/event.js';
import type { Settings } from './agent/settings.js';
import type { State } from './agent/state.js';

/** What journal and loop must know of a machine. Types only. */

/** The types of one machine, under one name. What has a parameter of them is the agent's unless told otherwise. */
export type MachineTypes = {
  readonly kind: 'agent' | 'ask';
  readonly event: { readonly type: string; readonly at: number };
  readonly state: { readonly name: string };
  readonly action: { readonly type: string };
  /** `question`: what a run is about, if it is known from the start. */
  readonly settings: { readonly model: string; readonly question?: string };
};

export type AgentTypes = {
  readonly kind: 'agent';
  readonly event: Event;
  readonly state: State;
  readonly action: Action;
  readonly settings: Settings;
};
