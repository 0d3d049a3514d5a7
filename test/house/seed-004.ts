import { mutableStateMachine } from '../../packages/machine/src/builder/builder.js';

/** Both tables of seed 004, built as its text builds them, with an event source for each that plays a script. */

// ---- Code mode ----

export type CodeState = 'INIT' | 'SHALLOW_CALL' | 'PROMPTING' | 'EXECUTING' | 'DONE';
export type CodeEvent =
  | { readonly type: 'DepthExceeded' }
  | { readonly type: 'LLMResponseReceived'; readonly text: string }
  | { readonly type: 'CodeBlocksFound'; readonly blocks: readonly string[] }
  | { readonly type: 'FinalAnswerFound'; readonly answer: string }
  | { readonly type: 'CodeExecuted' }
  | { readonly type: 'MaxIterationsReached' };
/** Changed by the actions, and by the event source, which does all the work. */
export type CodeContext = {
  iteration: number;
  readonly maxIterations: number;
  readonly depth: number;
  readonly maxDepth: number;
  lastCompletion: string | null;
  finalAnswer: string | null;
  readonly history: string[];
};

const isTooDeep = (_event: unknown, { depth, maxDepth }: CodeContext): boolean => depth >= maxDepth;
const storeCompletion = ({ text }: { readonly text: string }, context: CodeContext): void => {
  context.lastCompletion = text;
};
const storeAnswer = ({ answer }: { readonly answer: string }, context: CodeContext): void => {
  context.finalAnswer = answer;
};

export const codeMode = mutableStateMachine<CodeState, CodeEvent, CodeContext>()
  .transition('INIT', 'DepthExceeded', 'SHALLOW_CALL', { guard: isTooDeep })
  .transition('INIT', 'LLMResponseReceived', 'PROMPTING', { action: storeCompletion })
  .transition('PROMPTING', 'FinalAnswerFound', 'DONE', { action: storeAnswer })
  .transition('PROMPTING', 'CodeBlocksFound', 'EXECUTING')
  .transition('EXECUTING', 'FinalAnswerFound', 'DONE', { action: storeAnswer })
  .transition('EXECUTING', 'MaxIterationsReached', 'DONE')
  .transition('EXECUTING', 'CodeExecuted', 'PROMPTING')
  .transition('SHALLOW_CALL', 'LLMResponseReceived', 'DONE', { action: storeCompletion })
  .terminal('DONE')
  .build('INIT');

const finalOf = (reply: string): string | null => /^FINAL\((.*)\)$/m.exec(reply)?.[1] ?? null;
const blocksOf = (reply: string): readonly string[] =>
  [...reply.matchAll(/```repl\n(.*?)```/gs)].map(([, code = '']) => code.trim());

/** A model that answers from a list, behind the source that the seed's text describes. */
export const codeSource = (replies: readonly string[]) => {
  let calls = 0;
  const ask = (): string => {
    calls += 1;
    return replies[calls - 1] ?? 'nothing more';
  };
  const execute = (context: CodeContext): CodeEvent => {
    const reply = context.lastCompletion ?? '';
    const answer = finalOf(reply);
    if (answer !== null) return { type: 'FinalAnswerFound', answer };
    context.history.push(...blocksOf(reply).map((code) => `ran ${code}`));
    context.iteration += 1;
    const next = ask();
    if (context.iteration >= context.maxIterations) {
      context.finalAnswer = finalOf(next) ?? next;
      return { type: 'MaxIterationsReached' };
    }
    context.lastCompletion = next;
    return { type: 'CodeExecuted' };
  };
  const source = (state: CodeState, context: CodeContext): CodeEvent | null => {
    if (state === 'INIT' && context.depth >= context.maxDepth) return { type: 'DepthExceeded' };
    if (state === 'INIT' || state === 'SHALLOW_CALL')
      return { type: 'LLMResponseReceived', text: ask() };
    if (state === 'EXECUTING') return execute(context);
    const reply = context.lastCompletion ?? '';
    const blocks = blocksOf(reply);
    const answer = blocks.length === 0 ? finalOf(reply) : null;
    return answer === null
      ? { type: 'CodeBlocksFound', blocks }
      : { type: 'FinalAnswerFound', answer };
  };
  return { source, calls: () => calls };
};

export const codeContext = (patch: Partial<CodeContext> = {}): CodeContext => ({
  iteration: 0,
  maxIterations: 30,
  depth: 0,
  maxDepth: 1,
  lastCompletion: null,
  finalAnswer: null,
  history: [],
  ...patch,
});

// ---- Tools mode ----

export type ToolsState = 'INIT' | 'PROMPTING' | 'EXECUTING_TOOLS' | 'DONE';
export type ToolsEvent =
  | { readonly type: 'LLMResponseReceived'; readonly calls: number; readonly text: string }
  | { readonly type: 'ToolCallsFound' }
  | { readonly type: 'ToolsExecuted' }
  | { readonly type: 'NoToolCalls' }
  | { readonly type: 'PolicyStop' }
  | { readonly type: 'MaxIterationsReached' };
export type ToolsContext = {
  iteration: number;
  readonly maxIterations: number;
  openCalls: number;
  lastResponse: string | null;
  policyStop: boolean;
};

const storeResponse = (
  { calls, text }: { readonly calls: number; readonly text: string },
  context: ToolsContext,
): void => {
  context.openCalls = calls;
  context.lastResponse = text;
};
const markPolicyStop = (_event: unknown, context: ToolsContext): void => {
  context.policyStop = true;
};

export const toolsMode = mutableStateMachine<ToolsState, ToolsEvent, ToolsContext>()
  .transition('INIT', 'LLMResponseReceived', 'PROMPTING', { action: storeResponse })
  .transition('PROMPTING', 'NoToolCalls', 'DONE')
  .transition(['PROMPTING', 'EXECUTING_TOOLS'], 'PolicyStop', 'DONE', { action: markPolicyStop })
  .transition('PROMPTING', 'ToolCallsFound', 'EXECUTING_TOOLS')
  .transition('EXECUTING_TOOLS', 'ToolsExecuted', 'PROMPTING')
  .transition('EXECUTING_TOOLS', 'MaxIterationsReached', 'DONE')
  .terminal('DONE')
  .build('INIT');

type Reply = { readonly calls: number; readonly text: string };

/** `stopAt`: the policy stops when it is asked for the nth time. */
export const toolsSource = (replies: readonly Reply[], stopAt = Number.POSITIVE_INFINITY) => {
  let asked = 0;
  let calls = 0;
  const isStopped = (): boolean => {
    asked += 1;
    return asked >= stopAt;
  };
  const next = (): Reply => {
    calls += 1;
    return replies[calls - 1] ?? { calls: 0, text: 'nothing more' };
  };
  const source = (state: ToolsState, context: ToolsContext): ToolsEvent => {
    if (state === 'INIT') return { type: 'LLMResponseReceived', ...next() };
    if (isStopped()) return { type: 'PolicyStop' };
    if (state === 'PROMPTING')
      return { type: context.openCalls === 0 ? 'NoToolCalls' : 'ToolCallsFound' };
    context.iteration += 1;
    const reply = next();
    [context.openCalls, context.lastResponse] = [reply.calls, reply.text];
    return {
      type: context.iteration >= context.maxIterations ? 'MaxIterationsReached' : 'ToolsExecuted',
    };
  };
  return { source, calls: () => calls };
};

export const toolsContext = (patch: Partial<ToolsContext> = {}): ToolsContext => ({
  iteration: 0,
  maxIterations: 10,
  openCalls: 0,
  lastResponse: null,
  policyStop: false,
  ...patch,
});
