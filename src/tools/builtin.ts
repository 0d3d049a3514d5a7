import { randomBytes } from 'node:crypto';
import type { Tool } from '../needs.js';
import { createBashTool } from './bash.js';
import { editTool } from './edit.js';
import { createCommandEnvironment } from './environment.js';
import { readTool } from './read.js';
import { searchTool } from './search.js';
import { writeTool } from './write.js';

export type BuiltinOptions = {
  /** The environment that commands inherit, keys of providers excepted. Default: that of this program. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
};

/** The tools that come with the product, in the order in which the model is told of them. Make them once per session. */
export const builtinTools = ({ environment = process.env }: BuiltinOptions = {}): readonly Tool[] => [
  readTool,
  searchTool,
  editTool,
  writeTool,
  createBashTool({
    environment: createCommandEnvironment(environment),
    sessionMark: randomBytes(6).toString('hex'),
  }),
];
