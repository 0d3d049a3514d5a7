import { randomUUID } from 'node:crypto';
import type { AskUserOrNot } from '@pawl/agent/extensions/mcp/questions/ask-server-questions';
import type { ServerAnswer, ServerQuestion } from '@pawl/agent/extensions/mcp/questions/server-question';
import type { Outbox } from '../outbox.js';
import type { Client } from '../replay-into-outbox.js';
import {
  choiceRequest,
  formRequest,
  optionsOf,
  questionTitle,
  readChoice,
  readForm,
} from './server-question-request.js';

/**
 * Asks the editor's user what an MCP server wants to know: by a form if the editor has forms, else by options if one choice
 * answers it. Other questions can't be asked.
 */
export const askInEditor = (
  { context, features }: Client,
  sessionId: string,
  outbox: Outbox,
): AskUserOrNot => {
  const askByOptions = async (
    question: ServerQuestion,
    options: NonNullable<ReturnType<typeof optionsOf>>,
    signal: AbortSignal,
  ): Promise<ServerAnswer> => {
    const toolCallId = `question-${randomUUID()}`;
    const title = questionTitle(question);
    outbox.push({ sessionUpdate: 'tool_call', toolCallId, title, kind: 'other', status: 'pending' });
    await outbox.flushed();
    signal.throwIfAborted();
    try {
      const response = await context.request(
        'session/request_permission',
        choiceRequest(sessionId, toolCallId, question, options),
        { cancellationSignal: signal, stopWaitingOnCancel: true },
      );
      return readChoice(response, options);
    } finally {
      outbox.push({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed' });
    }
  };
  return async (question, signal) => {
    const { asks } = question;
    if (asks.kind === 'form' && features.forms) {
      const request = formRequest(sessionId, question, asks.fields);
      const options = { cancellationSignal: signal, stopWaitingOnCancel: true };
      await outbox.flushed();
      signal.throwIfAborted();
      return readForm(await context.request('elicitation/create', request, options), asks.fields);
    }
    const options = optionsOf(question);
    return options === null ? null : askByOptions(question, options, signal);
  };
};
