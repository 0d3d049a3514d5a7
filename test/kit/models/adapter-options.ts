import { UNKNOWN } from '../../../packages/agent/src/models/catalogue.js';
import { providerOfModel } from '../../../packages/agent/src/models/provider-table.js';
import type { AdapterOptions } from '../../../packages/agent/src/models/wire-model.js';

/** Options of an adapter, as the row of the model's provider gives them. */
export const adapterOptions = (
  modelId: string,
  baseUrl: string,
  rest: Partial<AdapterOptions> = {},
): AdapterOptions => {
  const provider = providerOfModel(modelId);
  if (provider === undefined) throw new Error(`no provider of ${modelId}`);
  return {
    modelId,
    baseUrl,
    apiKey: 'key',
    facts: UNKNOWN,
    name: modelId.slice(provider.name.length + 1),
    providerName: provider.title,
    keyVariable: provider.keyVariables[0],
    ...rest,
  };
};
