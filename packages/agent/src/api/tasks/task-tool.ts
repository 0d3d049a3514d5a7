import * as v from 'valibot';
import type { Tool } from '../../ports/tool.js';
import { defineTool } from '../../tools/define-tool.js';
import { TASK_DEADLINE_MS, type TaskSessions } from './task-sessions.js';

/** The tool `task`: the model starts a session that only reads, and gets its last message. */

const schema = v.strictObject({
  purpose: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('What it is for, in a few words.'),
  ),
  prompt: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.description('The whole task. Nothing of this conversation is known there.'),
  ),
  maxUsd: v.optional(
    v.pipe(v.number(), v.gtValue(0, 'must be above 0'), v.description('Dollars that it may spend.')),
  ),
});

/** `sessions` are those of the session that gets the tool. */
export const createTaskTool = (sessions: TaskSessions): Tool =>
  defineTool({
    name: 'task',
    description:
      'Gives a task to another agent with a conversation of its own, and returns its last message. It reads and searches the workspace and changes nothing. Use it for what needs much reading and has a short answer; several calls in one reply run side by side. It costs money.',
    schema,
    traits: {
      effect: 'opaque',
      parallelSafe: true,
      mutating: false,
      deadlineMs: TASK_DEADLINE_MS,
      spends: 'yes',
    },
    judge: async ({ prompt }) => ({
      kind: 'ok',
      facts: { argv: [], paths: [], hosts: [], shape: prompt },
    }),
    title: ({ purpose }) => purpose,
    findInterrupted: async (input, context) =>
      (await import('./run-task.js')).findTask(sessions, input, context),
    run: async (input, context) => (await import('./run-task.js')).runTask(sessions, input, context),
  });
