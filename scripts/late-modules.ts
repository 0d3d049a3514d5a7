/**
 * Modules that the program loads on first use, though it imports them at its top: plugins of
 * esbuild for modules of Node's, for packages in a file of their own, and for packages inside the
 * program.
 */

import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';

/**
 * Modules of Node's that most runs of the program never use; the program loads them with the first
 * use.
 */
const LATE = [
  'child_process',
  'dns',
  'https',
  'readline',
  'timers/promises',
  'tls',
  'tty',
  'worker_threads',
  'zlib',
];

/** Replaces each of them by a module whose exports are resolved on first use. */
export const lateBuiltins: Plugin = {
  name: 'late-builtins',
  setup(builder) {
    builder.onResolve(
      { filter: new RegExp(`^node:(${LATE.join('|')})$`) },
      ({ path: name, kind }) =>
        kind === 'import-statement' ? { path: name, namespace: 'late-builtin' } : undefined,
    );
    builder.onLoad({ filter: /./, namespace: 'late-builtin' }, ({ path: name }) => ({
      contents: `for (const key of ${JSON.stringify(Object.getOwnPropertyNames(process.getBuiltinModule(name) ?? {}))})
        Object.defineProperty(exports, key, { enumerable: true, get: () => process.getBuiltinModule('${name}')[key] });`,
    }));
  },
};

/** Packages that most runs never use. They get a file of their own. */
export const LATE_PACKAGES = [
  '@agentclientprotocol/sdk',
  '@babel/parser',
  '@joplin/turndown-plugin-gfm',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/server',
  '@modelcontextprotocol/server/stdio',
  '@modelcontextprotocol/server/validators/ajv',
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
  'turndown',
];

/** Packages that run at each start. */
export const AT_ONCE = [
  'commander',
  'diff',
  'get-east-asian-width',
  'valibot',
  '@valibot/to-json-schema',
];

/** Packages that stay in the program's file, and run on first use. */
export const LATE_INSIDE = ['acorn'];

/** The names that ES module text imports from a package. */
const importedFrom = (text: string, name: string): readonly string[] => {
  const names = [...text.matchAll(/\bimport\s*\{([^}]*)\}\s*from\s*"([^"]*)"/g)]
    .filter(([, , from]) => from === name)
    .flatMap(([, inside = '']) =>
      inside.split(',').map((one) => one.trim().replace(/\s+as\s.*$/s, '')),
    );
  return [...new Set(names)];
};

/** Whether ES module text has `import()` of a package. */
const isImportedLate = (text: string, name: string): boolean => text.includes(`import("${name}")`);

/** The file beside the program that holds these packages. */
const PROTOCOLS = 'protocols.cjs';

/**
 * Leaves these packages out of the program, and loads their file on first use. Our own code (`own`)
 * is bundled before them, as one module: their imports stand at its top, and they would run at each
 * start, which takes 40 ms. What it loads by `import()` would only be read at the first start,
 * which takes 15.
 */
export const latePackages = (own: string): Plugin => ({
  name: 'late-packages',
  setup(builder) {
    const isLate = new RegExp(`^(${LATE_PACKAGES.join('|')})$`);
    builder.onResolve({ filter: isLate }, ({ path: name, kind, importer }) => {
      if (importer.includes('node_modules')) return undefined;
      if (kind === 'dynamic-import') return { path: name, namespace: 'whole-late-package' };
      return kind === 'import-statement' ? { path: name, namespace: 'late-package' } : undefined;
    });
    builder.onLoad({ filter: /./, namespace: 'whole-late-package' }, ({ path: name }) => ({
      contents: `module.exports = require('./${PROTOCOLS}')['${name}'];`,
    }));
    builder.onResolve({ filter: /./, namespace: 'whole-late-package' }, ({ path: name }) => ({
      path: name,
      external: true,
    }));
    builder.onResolve({ filter: /./, namespace: 'late-package' }, ({ path: name }) => ({
      path: name,
      external: true,
    }));
    builder.onLoad({ filter: /./, namespace: 'late-package' }, ({ path: name }) => ({
      contents: `for (const key of ${JSON.stringify(importedFrom(own, name))})
        Object.defineProperty(exports, key, { enumerable: true, get: () => require('./${PROTOCOLS}')['${name}'][key] });`,
    }));
  },
});

/** Wraps these packages, so that each runs when one of its exports is first read. */
export const packagesLateInside = (own: string): Plugin => ({
  name: 'packages-late-inside',
  setup(builder) {
    builder.onResolve(
      { filter: new RegExp(`^(${LATE_INSIDE.join('|')})$`) },
      ({ path: name, kind }) =>
        kind === 'import-statement' ? { path: name, namespace: 'late-inside' } : undefined,
    );
    builder.onLoad({ filter: /./, namespace: 'late-inside' }, ({ path: name }) => ({
      contents: `for (const key of ${JSON.stringify(importedFrom(own, name))})
        Object.defineProperty(exports, key, { enumerable: true, get: () => require('${name}')[key] });`,
      resolveDir: fileURLToPath(new URL('..', import.meta.url)),
    }));
  },
});

/** What the program uses of each of the packages. */
const usedPackages = (own: string): Plugin => ({
  name: 'used-packages',
  setup(builder) {
    builder.onResolve({ filter: /^used-of:/ }, ({ path: name }) => ({
      path: name.slice('used-of:'.length),
      namespace: 'used-of-package',
    }));
    builder.onLoad({ filter: /./, namespace: 'used-of-package' }, ({ path: name }) => ({
      contents: isImportedLate(own, name)
        ? `module.exports = require('${name}');`
        : `export { ${importedFrom(own, name).join(', ')} } from '${name}';`,
      resolveDir: fileURLToPath(new URL('..', import.meta.url)),
    }));
  },
});

/**
 * Bundles the packages into their file, which most runs never read. It is one file, since they
 * share a third of their code; each of them runs on its own first use. Null if the program uses
 * none of them.
 */
export const buildProtocols = async (
  own: string,
  options: BuildOptions & { readonly write: false },
) => {
  const used = LATE_PACKAGES.filter(
    (name) => importedFrom(own, name).length > 0 || isImportedLate(own, name),
  );
  if (used.length === 0) return null;
  const { outputFiles, metafile } = await build({
    ...options,
    metafile: true,
    stdin: {
      contents: used
        .map(
          (name) =>
            `Object.defineProperty(exports, '${name}', { enumerable: true, get: () => require('used-of:${name}') });`,
        )
        .join('\n'),
      sourcefile: PROTOCOLS,
    },
    outfile: `packages/pawl/dist/${PROTOCOLS}`,
    plugins: [usedPackages(own), ...(options.plugins ?? [])],
  });
  const [output] = outputFiles;
  if (output === undefined)
    throw new Error('esbuild gave no file for the packages of the protocols');
  return { path: output.path, contents: output.contents, metafile };
};
