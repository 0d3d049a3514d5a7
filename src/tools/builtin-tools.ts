import { randomBytes } from 'node:crypto';
import type { ProcessEnvironment } from '../base/process-environment.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import { createSessionSandbox, type SessionSandbox } from '../sandbox/session/session-sandbox.js';
import { createBashTool } from './bash.js';
import { editTool } from './edit.js';
import { createFetchTool } from './fetch.js';
import { withAllowedWrites } from './files/allowed-writes.js';
import { findTool } from './find.js';
import { listTool } from './list.js';
import { readTool } from './read.js';
import { searchTool } from './search.js';
import { createCommandVariables } from './shell/command-variables.js';
import { todoTool } from './todo.js';
import { writeTool } from './write.js';

export type BuiltinOptions = {
  /** The environment that commands inherit, as far as they may. Default: that of this program. */
  readonly environment?: ProcessEnvironment;
  /** The sandbox of the commands; a new one if not given. */
  readonly sandbox?: SessionSandbox;
};

/** The tool that runs commands. */
export const commandTool = ({
  environment = process.env,
  sandbox = createSessionSandbox({ environment }),
}: BuiltinOptions = {}): Tool =>
  createBashTool({
    environment,
    variables: createCommandVariables(environment),
    sandbox,
    sessionMark: randomBytes(6).toString('hex'),
  });

/** Runs a command as the tool does: for commands that the user types. */
export const runCommand = (
  options: BuiltinOptions,
  command: string,
  context: ToolContext,
): Promise<ToolOutcome> => commandTool(options).run({ command }, context);

/** The tools that come with the product, in the order in which the model is told of them. Make them once per session. */
export const builtinTools = ({
  environment = process.env,
  sandbox = createSessionSandbox({ environment }),
}: BuiltinOptions = {}): readonly Tool[] => [
  readTool,
  listTool,
  findTool,
  searchTool,
  withAllowedWrites(editTool, sandbox),
  withAllowedWrites(writeTool, sandbox),
  commandTool({ environment, sandbox }),
  todoTool,
  createFetchTool(environment),
];
