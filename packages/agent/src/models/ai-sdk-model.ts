import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Model, ModelFacts } from '../ports/model.js';
import { factsOf } from './catalogue.js';
import { unifiedStopReason, type Wire } from './providers/provider-adapter.js';
import { wireModel } from './providers/sdk-model.js';

/** The part of an AI SDK language model (`LanguageModelV3`) that Pawl calls, so that its type needs no package. */
export type AiSdkLanguageModel = {
  readonly specificationVersion: 'v3';
  /** For example `openai.responses`. */
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<{ readonly stream: object }>;
};

/**
 * Makes an agent's model from an AI SDK model. Pawl calls its `doStream`, so that only the machine retries. Facts that
 * are not given come from the catalogue; for a model that is not in it they are safe assumptions without a price.
 * Throws for a package of another generation.
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
  return wireModel(wire, { facts: { ...factsOf(id), ...facts } });
};
