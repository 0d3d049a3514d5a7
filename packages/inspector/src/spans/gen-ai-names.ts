/**
 * Names of OpenTelemetry's conventions for generative AI, as @opentelemetry/semantic-conventions 1.45.0 publishes them:
 * backends know these. They are in development and may change; this file is the only place that knows them.
 */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentVersion: 'gen_ai.agent.version',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheRead: 'gen_ai.usage.cache_read.input_tokens',
  cacheWrite: 'gen_ai.usage.cache_creation.input_tokens',
  toolName: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  errorType: 'error.type',
} as const;

/** Values of `gen_ai.operation.name`. */
export const operations = { agent: 'invoke_agent', chat: 'chat', tool: 'execute_tool' } as const;

/** Our own names, for what the conventions have none. */
export const pawlNames = {
  cost: 'pawl.cost_usd',
  turn: 'pawl.turn.id',
  attempts: 'pawl.request.attempts',
  attemptFailed: 'pawl.attempt_failed',
  summary: 'pawl.request.summary',
  effort: 'pawl.request.effort',
  compacted: 'pawl.conversation.compacted',
  toolStatus: 'pawl.tool.status',
} as const;

const providerNames: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  vertex: 'gcp.vertex_ai',
  bedrock: 'aws.bedrock',
  azure: 'azure.ai.openai',
  mistral: 'mistral_ai',
  moonshot: 'moonshot_ai',
  xai: 'x_ai',
};

/** `anthropic/claude-…` as the names of the provider and of its model. */
export const namesOfModel = (id: string): { readonly provider: string; readonly model: string } => {
  const slash = id.indexOf('/');
  const provider = id.slice(0, Math.max(0, slash));
  return { provider: providerNames[provider] ?? provider, model: id.slice(slash + 1) };
};

const finishReasons: Readonly<Record<string, string>> = {
  end: 'stop',
  toolUse: 'tool_calls',
  maxTokens: 'length',
  refusal: 'content_filter',
  contentFilter: 'content_filter',
};

/** Our reason to stop in the words of the conventions. */
export const finishReasonName = (stopReason: string): string => finishReasons[stopReason] ?? stopReason;
