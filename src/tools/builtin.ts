import { randomBytes } from 'node:crypto';
import type { Tool } from '../needs.js';
import { createBashTool } from './bash.js';
import { editTool } from './edit.js';
import { createCommandEnvironment } from './environment.js';
import { createFetchTool } from './fetch.js';
import { findTool } from './find.js';
import { listTool } from './list.js';
import { readTool } from './read.js';
import { searchTool } from './search.js';
import { todoTool } from './todo.js';
import { writeTool } from './write.js';

export type BuiltinOptions = {
  /** The environment that commands inherit, keys of providers excepted. Default: that of this program. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
};

/** The tool that runs commands. */
export const commandTool = ({ environment = process.env }: BuiltinOptions = {}): Tool =>
  createBashTool({
    environment: createCommandEnvironment(environment),
    sessionMark: randomBytes(6).toString('hex'),
  });

/** The tools that come with the product, in the order in which the model is told of them. Make them once per session. */
export const builtinTools = ({ environment = process.env }: BuiltinOptions = {}): readonly Tool[] => [
  readTool,
  listTool,
  findTool,
  searchTool,
  editTool,
  writeTool,
  commandTool({ environment }),
  todoTool,
  createFetchTool(environment),
];
