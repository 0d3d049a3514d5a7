/** The list of built-in tools. A new tool is one file beside this one and one line here. */

import { randomBytes } from 'node:crypto';
import { createCommandVariables } from '../command/environment.js';
import { createSessionSandbox, type SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import type { UserPlaces } from '../policy/paths.js';
import type { AskGit, FindDiscarded, FindLosses } from '../policy/shell/unrecoverable-files.js';
import type { Tool, ToolContext, ToolOutcome } from '../ports/tool.js';
import { readUserPlaces } from '../secrets/user-places.js';
import { createBashTool, type ProtectedGitFiles } from './bash.js';
import { editTool } from './edit.js';
import { createFetchTool } from './fetch.js';
import { withFileSafeguards } from './file-change.js';
import { findTool } from './find.js';
import { listTool } from './list.js';
import { readTool } from './read.js';
import { searchTool } from './search.js';
import { todoTool } from './todo.js';
import { writeTool } from './write.js';

export type BuiltinOptions = {
  /** Source of the variables that commands inherit. Default: the environment of this program. */
  readonly environment?: ProcessEnvironment;
  /** Sandbox for the commands. Default: a new one. */
  readonly sandbox?: SessionSandbox;
  /** Looks up which files git could not restore. Default: it can restore none. */
  readonly findLosses?: FindLosses;
  /** Looks up what `git restore` of paths would discard. Default: no lookup, the policy asks. */
  readonly findDiscarded?: FindDiscarded;
  /** Tells how git reads words. Default: it has no aliases, and names of branches alone. */
  readonly askGit?: AskGit;
  /** Finds protected files that git would write, or could not write. Default: no lookup. */
  readonly protectedGitFiles?: ProtectedGitFiles;
  /** The user's places. Default: those that the environment names. */
  readonly userPlaces?: UserPlaces;
};

/** Nothing is known, so the policy takes the worst for true. */
const NO_LOOKUP = async (): Promise<null> => null;
const NO_PROTECTED: ProtectedGitFiles = {
  find: async () => [],
  beforeCommand: async () => NO_LOOKUP,
};

/** The tool `bash` for one session. */
export const commandTool = ({
  environment = process.env,
  sandbox = createSessionSandbox({ environment }),
  findLosses = NO_LOOKUP,
  findDiscarded = NO_LOOKUP,
  askGit = NO_LOOKUP,
  protectedGitFiles = NO_PROTECTED,
}: BuiltinOptions = {}): Tool =>
  createBashTool({
    environment,
    variables: createCommandVariables(environment),
    sandbox,
    findLosses,
    findDiscarded,
    askGit,
    protectedGitFiles,
    sessionMark: randomBytes(6).toString('hex'),
  });

/** Runs a command in the way the tool does. For commands that the user types. */
export const runCommand = (
  options: BuiltinOptions,
  command: string,
  context: ToolContext,
): Promise<ToolOutcome> => commandTool(options).run({ command }, context);

/** The built-in tools, in the order in which the model sees them. Create them once per session. */
export const builtinTools = ({
  environment = process.env,
  sandbox = createSessionSandbox({ environment }),
  findLosses = NO_LOOKUP,
  findDiscarded = NO_LOOKUP,
  askGit = NO_LOOKUP,
  protectedGitFiles = NO_PROTECTED,
  userPlaces = readUserPlaces(environment),
}: BuiltinOptions = {}): readonly Tool[] => [
  readTool,
  listTool,
  findTool,
  searchTool,
  // ask about protected files such as git hooks, and check the syntax of what they wrote
  withFileSafeguards(editTool, sandbox, environment, userPlaces),
  withFileSafeguards(writeTool, sandbox, environment, userPlaces),
  commandTool({ environment, sandbox, findLosses, findDiscarded, askGit, protectedGitFiles }),
  todoTool,
  createFetchTool(environment),
];
