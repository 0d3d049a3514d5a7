import type { Model } from '../../ports/model.js';
import type { WireName } from '../provider-table.js';
import { anthropicModel } from './anthropic.js';
import { googleModel } from './google.js';
import { openAiModel } from './openai.js';
import { compatibleModel } from './openai-compatible.js';
import type { AdapterOptions } from './provider-adapter.js';

/** The adapter of each wire that the table of providers names. */
export const adapters: Readonly<Record<WireName, (options: AdapterOptions) => Model>> = {
  'Anthropic Messages': anthropicModel,
  'OpenAI Responses': openAiModel,
  'Google Gemini API': googleModel,
  'Chat Completions': compatibleModel,
};
