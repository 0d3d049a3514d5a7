import type { Settings } from '../../machine/settings.js';
import type { Model } from '../../ports/model.js';
import { checkModel } from '../check-outside-values.js';

/** The models for the sessions of one agent, by id. */
export type Models = {
  /** A connected model. Throws if it is not connected. */
  get(modelId: string): Model;
  /** Connects a model if necessary. Rejects with the reason, or with a TypeError for an invalid model. */
  connect(wanted: string | Model): Promise<Model>;
};

/** Starts with one model. `connect` finds others by id; without it there are no others. */
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
      // The model's own id may differ from the given one: a script has its absolute path.
      const model = typeof wanted === 'string' ? (connected.get(wanted) ?? (await open(wanted))) : wanted;
      checkModel(model);
      connected.set(model.id, model);
      model.prepare?.();
      return model;
    },
  };
};

/** The settings for a session that uses this model. */
export const settingsOfModel = ({ id, facts, canAbort }: Model): Partial<Settings> & { model: string } => ({
  model: id,
  windowTokens: facts.windowTokens,
  ...(canAbort === 'no' ? { cancelMode: 'drain' } : {}),
});
