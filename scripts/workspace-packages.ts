import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/**
 * Finds the sources of the workspace's packages: `@pawl/agent` is packages/agent/src/index.ts,
 * `@pawl/agent/journal/writer` is packages/agent/src/journal/writer.ts.
 */
export const workspacePackages = (root: string): Plugin => ({
  name: 'workspace-packages',
  setup(builder) {
    builder.onResolve({ filter: /^@pawl\/./ }, ({ path: specifier }) => {
      const [, name = '', ...parts] = specifier.split('/');
      const file = path.resolve(root, 'packages', name, 'src', `${parts.join('/') || 'index'}.ts`);
      return existsSync(file) ? { path: file } : undefined;
    });
  },
});
