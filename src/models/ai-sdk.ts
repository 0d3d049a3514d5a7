import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Model, ModelFacts } from '../needs.js';
import { factsOf } from './catalogue.js';
import { unifiedStopReason, type Wire } from './wire.js';
import { wireModel } from './wire-model.js';

/** A language model of an AI SDK package (`LanguageModelV3`), by what is asked of it: no package is needed for its type. */
export type AiSdkLanguageModel = {
  readonly specificationVersion: 'v3';
  /** For example `openai.responses`. */
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ readonly stream: object }>;
};

/**
 * Makes any model of the AI SDK one that an agent can use; it is called at `doStream`, so that nothing retries beside the
 * machine. Facts that are not given are those of the catalogue, and of a model that is not in it safe assumptions without
 * a price. Throws for a package of another generation.
 */
export const aiSdkModel = (languageModel: AiSdkLanguageModel, facts: Partial<ModelFacts> = {}): Model => {
  const { specificationVersion, provider, modelId } = languageModel;
  if (specificationVersion !== 'v3') {
    throw new TypeError(
      `${provider}/${modelId} is a model of the specification ${String(specificationVersion)}: install a version of its package that offers v3 (AI SDK 6)`,
    );
  }
  const [family = provider] = provider.split('.');
  const id = `${family}/${modelId}`;
  const model: unknown = languageModel;
  const wire: Wire = {
    provider: { name: family, keyVariable: `the key that ${family}'s package was given`, host: provider },
    open: async () => model as LanguageModelV3, // it says that it is one
    dialect: { modelId: id, marksCache: family === 'anthropic', keepsCut: false },
    stopReason: unifiedStopReason,
  };
  return wireModel(wire, { name: modelId, facts: { ...factsOf(id), ...facts } });
};
