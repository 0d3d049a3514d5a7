import { realpathSync } from 'node:fs';
import {
  listLibraries,
  startSandboxed,
} from '../../../packages/ask/src/environments/run-program.js';

/** Started with an open folder at descriptor 20: says whether a sandboxed program finds it there too. */

const CODE = `let found; try { found = require('fs').fstatSync(20).isDirectory() } catch { found = false }
require('fs').writeSync(3, String(found));`;

const main = async (): Promise<void> => {
  const program = realpathSync(process.execPath);
  const readable = (await listLibraries(program)).map((library) => ({
    from: library,
    to: library,
  }));
  const order = {
    program,
    words: ['-e', CODE],
    readable,
    hidden: [],
    memoryMax: 2e9,
  };
  const started = startSandboxed(order);
  started.channel.on('data', (bytes: Buffer) => process.stdout.write(bytes));
  const { code, stderr } = await started.ended;
  if (code !== 0) throw new Error(stderr);
};

void main();
