/** Providers whose address and key a user's file may name, with the variables that win over it. */
export const providers = [
  { name: 'anthropic', keyVariables: ['ANTHROPIC_API_KEY'], urlVariable: 'ANTHROPIC_BASE_URL' },
  { name: 'openai', keyVariables: ['OPENAI_API_KEY'], urlVariable: 'OPENAI_BASE_URL' },
  {
    name: 'google',
    keyVariables: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'],
    urlVariable: 'GOOGLE_GEMINI_BASE_URL',
  },
  {
    name: 'openai-compatible',
    keyVariables: ['OPENAI_COMPATIBLE_API_KEY'],
    urlVariable: 'OPENAI_COMPATIBLE_BASE_URL',
  },
  { name: 'ollama', keyVariables: ['OLLAMA_API_KEY'], urlVariable: 'OLLAMA_HOST' },
] as const;
