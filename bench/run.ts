import { benchAttach } from './attach.js';
import { benchCheckpoints } from './checkpoints.js';
import { benchFirstPaint } from './first-paint.js';
import { benchInspector } from './inspector.js';
import { benchModelSide } from './model-side.js';
import { benchReplay } from './replay.js';
import { benchResume } from './resume.js';
import { benchMoreRounds, benchRounds } from './rounds.js';
import { benchSessions } from './sessions.js';
import { benchStart } from './start.js';
import { benchStreaming } from './streaming.js';

/**
 * All benchmarks. `npm run bench [-- rounds more-rounds start first-paint attach streaming
 * replay resume sessions model-side inspector checkpoints]`: prints the tables of bench/README.md.
 */
const benches: Readonly<Record<string, () => Promise<string>>> = {
  rounds: benchRounds,
  'more-rounds': benchMoreRounds,
  start: () => benchStart(),
  'first-paint': () => benchFirstPaint(),
  attach: () => benchAttach(),
  streaming: () => benchStreaming(),
  replay: benchReplay,
  resume: benchResume,
  sessions: benchSessions,
  'model-side': benchModelSide,
  inspector: benchInspector,
  checkpoints: benchCheckpoints,
};

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(benches)) {
  const bench = benches[name];
  if (bench === undefined)
    throw new Error(`no such benchmark: ${name}; there are ${Object.keys(benches).join(', ')}`);
  console.log(`\n## ${name}\n\n${await bench()}`);
}
