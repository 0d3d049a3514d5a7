import { createIdentityFinder, type Environment } from './git-identity.js';
import { MARKER } from './processes.js';

/** The environment of commands: no terminal, no questions, no keys of model providers. */

const SECRET =
  /^(PAWL|ANTHROPIC|CLAUDE|OPENAI|AZURE_OPENAI|GOOGLE_GENERATIVE_AI|GOOGLE|GEMINI|OPENROUTER|MISTRAL|GROQ|XAI|DEEPSEEK|COHERE|TOGETHER|FIREWORKS|CEREBRAS|PERPLEXITY)_(.*_)?(API_?KEY|AUTH_TOKEN|OAUTH_TOKEN)$/;
/** Colours that NO_COLOR would not stop, and what makes a test runner believe that it runs inside another one. */
const UNWANTED = ['FORCE_COLOR', 'CLICOLOR_FORCE', 'NODE_TEST_CONTEXT'];

const QUIET = {
  CI: '1',
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: 'cat',
  // `true` leaves the text as it is: a merge keeps its message, a commit without one fails.
  EDITOR: 'true',
  VISUAL: 'true',
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'true',
  GIT_TERMINAL_PROMPT: '0',
  SSH_ASKPASS_REQUIRE: 'never',
  DEBIAN_FRONTEND: 'noninteractive',
} as const;

export type CommandEnvironment = (workspace: string, command: string, marker: string) => NodeJS.ProcessEnv;

/** The environments of one session's commands, made from the program's own. */
export const createCommandEnvironment = (own: Environment): CommandEnvironment => {
  const base: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(own)) {
    if (!SECRET.test(name) && !UNWANTED.includes(name)) base[name] = value;
  }
  Object.assign(base, QUIET);
  const outer = own[MARKER] === undefined ? '' : `${own[MARKER]} `;
  const identity = createIdentityFinder(own);
  return (workspace, command, marker) => ({
    ...base,
    ...identity(workspace, command),
    PWD: workspace,
    [MARKER]: `${outer}${marker}`,
  });
};
