/** What providers answer to a conversation that is too long, each with where it was seen. */

export type BodyRow = readonly [
  title: string,
  source: string,
  status: number | null,
  body: object | string,
];

export const overflows: readonly BodyRow[] = [
  [
    'xAI',
    'github.com/cline/cline/issues/3120',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    },
  ],
  [
    'a provider behind OpenRouter, as text in metadata.raw',
    'github.com/cline/cline/issues/13194',
    400,
    {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: {
          raw: JSON.stringify({
            error: {
              message:
                "This model's maximum context length is 262144 tokens. However, your messages resulted in 262897 tokens. Please reduce the length of the messages.",
              type: 'Bad Request',
              code: 400,
            },
          }),
          provider_name: 'Nvidia',
          is_byok: false,
        },
      },
    },
  ],
  [
    'a provider behind OpenRouter, as an object in metadata.raw',
    'github.com/earendil-works/pi/issues/4943',
    400,
    {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: {
          raw: {
            error: {
              message:
                'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
            },
          },
        },
      },
    },
  ],
  [
    'LM Studio, tokens to keep',
    'lmstudio-ai/lmstudio-bug-tracker/issues/237 and the words of first-version measurements',
    400,
    {
      error:
        'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input.',
    },
  ],
  [
    'LM Studio, n_keep',
    'github.com/anomalyco/opencode/issues/11141',
    400,
    { error: 'Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)' },
  ],
  [
    'ollama.com',
    'ollama.com cloud, quoted by many clients',
    400,
    { error: 'prompt too long; exceeded max context length by 17 tokens (ref: 4e1c)' },
  ],
  [
    'Perplexity',
    'symfony/ai and mistral-vibe hold it in their tests',
    400,
    {
      error: {
        message: 'The total length of all messages is too long.',
        type: 'bad_request',
        code: 400,
      },
    },
  ],
  [
    'Kimi',
    'github.com/MoonshotAI/kimi-cli/issues/2011',
    400,
    {
      error: {
        message:
          'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)',
        type: 'invalid_request_error',
      },
    },
  ],
  [
    'MiniMax',
    'github.com/MiniMax-AI/MiniMax-M2/issues/119',
    400,
    {
      type: 'error',
      error: {
        type: 'bad_request_error',
        message: 'invalid params, context window exceeds limit (2013)',
      },
    },
  ],
  [
    'z.ai, by its number',
    'github.com/earendil-works/pi/issues/9805, docs.z.ai/api-reference/api-code',
    400,
    { error: { code: '1261', message: 'Prompt exceeds max length' } },
  ],
  [
    'z.ai, by its number alone',
    'github.com/earendil-works/pi/issues/9805',
    400,
    { code: '1261', message: 'Eingabe zu lang' },
  ],
  [
    'Copilot',
    'github.com/microsoft/copilot-intellij-feedback/issues/94',
    400,
    {
      error: {
        message: 'prompt token count of 138898 exceeds the limit of 64000',
        code: 'model_max_prompt_tokens_exceeded',
      },
    },
  ],
  [
    'Anthropic, as a 413',
    'openclaw holds it in its tests',
    413,
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'Request size exceeds model context window',
      },
    },
  ],
  [
    'Anthropic, the same words as a 400',
    'control of the row above',
    400,
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'Request size exceeds model context window',
      },
    },
  ],
  [
    'sglang',
    'github.com/ranxianglei/billion-context/pull/493',
    400,
    {
      object: 'error',
      message:
        "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  ],
  [
    'OpenRouter itself',
    'github.com/earendil-works/pi/issues/6378',
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 262000 tokens. However, you requested about 263390 tokens (658 of text input, 732 of tool input, 262000 in the output).",
        code: 400,
        metadata: { provider_name: null },
      },
    },
  ],
  [
    'LiteLLM',
    'docs.litellm.ai, exception mapping',
    400,
    {
      error: {
        message:
          'litellm.ContextWindowExceededError: litellm.BadRequestError: this model can not read it all',
        code: '400',
      },
    },
  ],
  [
    'text-generation-inference, and Together',
    'huggingface/text-generation-inference, validation.rs',
    422,
    {
      error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.',
      error_type: 'validation',
    },
  ],
  [
    'words that nobody has seen yet',
    'made up',
    400,
    { error: { message: 'Sorry, your prompt with its 9001 pieces is larger than we allow' } },
  ],
  [
    'a request too large for a minute, Groq',
    'github.com/HunorLaczko/ha-groq-cloud-api/issues/27',
    413,
    {
      error: {
        message:
          'Request too large for model llama-3.1-8b-instant in organization org_x service tier on_demand on tokens per minute (TPM): Limit 6000, Requested 12328, please reduce your message size and try again.',
        type: 'tokens',
        code: 'rate_limit_exceeded',
      },
    },
  ],
  [
    'a request too large for a minute, OpenAI',
    'github.com/vanna-ai/vanna-flask/issues/11',
    429,
    {
      error: {
        message:
          'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.',
        type: 'tokens',
        code: 'rate_limit_exceeded',
      },
    },
  ],
];
