import type { Settings } from '../../agent/settings.js';
import type { Model } from '../../ports/model.js';
import { checkModel } from '../check-input.js';

/** The models that the sessions of one agent can use, by their ids. */
export type Models = {
  /** One that is connected; throws if it is not. */
  get(modelId: string): Model;
  /** Connects it, unless it is; rejects with why it can't be, a TypeError for what is no model. */
  connect(wanted: string | Model): Promise<Model>;
};

/** Begins with the one model; `connect` finds others, and without it there are no others to be found by their ids. */
export const createModels = (first: Model, connect?: (modelId: string) => Promise<Model>): Models => {
  const connected = new Map([[first.id, first]]);
  const open = async (modelId: string): Promise<Model> => {
    if (connect !== undefined) return connect(modelId);
    throw new Error(`${modelId} can't be found by its name here: this agent was made without connect`);
  };
  return {
    get: (modelId) => {
      const model = connected.get(modelId);
      if (model !== undefined) return model;
      throw new Error(`the model ${modelId} is not connected: this session was opened with ${first.id}`);
    },
    connect: async (wanted) => {
      // Its own id need not be the one it was found by: a script is known by its whole path.
      const model = typeof wanted === 'string' ? (connected.get(wanted) ?? (await open(wanted))) : wanted;
      checkModel(model);
      connected.set(model.id, model);
      model.prepare?.();
      return model;
    },
  };
};

/** What a session is set to, so that this model answers in it. */
export const settingsOfModel = ({ id, facts, canAbort }: Model): Partial<Settings> & { model: string } => ({
  model: id,
  windowTokens: facts.windowTokens,
  ...(canAbort === 'no' ? { cancelMode: 'drain' } : {}),
});
