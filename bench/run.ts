import { benchAttach } from './attach.js';
import { benchCheckpoints } from './checkpoints.js';
import { benchCommands } from './commands.js';
import { benchEdits } from './edits.js';
import { benchFirstPaint } from './first-paint.js';
import { benchInspector } from './inspector.js';
import { benchModelSide } from './model-side.js';
import { benchReplay } from './replay.js';
import { benchResume } from './resume.js';
import { benchMoreRounds, benchRounds } from './rounds.js';
import { benchSessions } from './sessions.js';
import { benchShapes } from './shapes.js';
import { benchStart } from './start.js';
import { benchSteps } from './steps.js';
import { benchStreaming } from './streaming.js';

/**
 * All benchmarks. `npm run bench [-- rounds more-rounds steps start first-paint attach streaming
 * commands replay resume sessions shapes edits model-side inspector checkpoints]`: prints the
 * tables of bench/README.md.
 */
const benches: Readonly<Record<string, () => Promise<string>>> = {
  rounds: benchRounds,
  'more-rounds': benchMoreRounds,
  steps: () => benchSteps(),
  start: () => benchStart(),
  'first-paint': () => benchFirstPaint(),
  attach: () => benchAttach(),
  streaming: () => benchStreaming(),
  commands: benchCommands,
  replay: benchReplay,
  resume: benchResume,
  sessions: benchSessions,
  shapes: benchShapes,
  edits: benchEdits,
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
