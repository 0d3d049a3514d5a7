/** What a model call is for: the user's message, or the results of tools. */
export type Purpose = 'user' | 'toolResults';

/** What happens after tools, in this order. */
export type HookPhase = 'CheckingGitCommits' | 'RunningAutoformatters' | 'AutoCommitting';
