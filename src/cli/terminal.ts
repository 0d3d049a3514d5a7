import { isBare, paint, writeIfThere } from '../terminal/print.js';
import { chooseSession } from './choose-session.js';
import type { Destination } from './commands/room.js';
import { type RunFlags, usageStop } from './flags.js';
import { createHeld } from './held.js';
import { type Arrival, live } from './life.js';
import { openFromFlags } from './open-session.js';
import { createScreen } from './screen.js';
import { takeSeat } from './seat.js';

const refuseWithoutTerminal = (): void => {
  for (const stream of ['stdin', 'stdout'] as const) {
    if (process[stream].isTTY) continue;
    throw usageStop(
      `There is no terminal (${stream} is none). For one turn without one: pawl -p "prompt", or with the prompt from stdin: pawl -p -`,
    );
  }
};

/**
 * What another session in the same window takes from the command line: a new one all but what chose the first; one that
 * is gone on with not what was wished of the first one, either.
 */
const flagsFor = (flags: RunFlags, { resume: other, model }: Destination): RunFlags => {
  const { resume, continue: last, ...rest } = flags;
  if (other === null) return model === undefined ? rest : { ...rest, model };
  const { model: first, preset, profile, ...kept } = rest;
  return kept;
};

const open = async (flags: RunFlags, { resume, said, text = '' }: Destination): Promise<Arrival> => {
  const [steps, warnings]: [Arrival['steps'], Arrival['warnings']] = [createHeld(), createHeld()];
  const early = { watcher: steps.give, warn: warnings.give, ...(resume === null ? {} : { resume }) };
  const opened = await openFromFlags(flags, 'terminal', early);
  if (!opened.resumed) await opened.session.send({ type: 'Start' });
  return { opened, steps, warnings, said, text };
};

/** `pawl`: sessions in the terminal, one after the other; the exit code. */
export const runTerminal = async (flags: RunFlags): Promise<number> => {
  refuseWithoutTerminal();
  const chosen = await chooseSession(flags);
  const plain = flags.plain === true || isBare(process.env);
  // From now on keys wait as they were pressed; without this an early Enter would arrive as a mere line feed.
  if (!plain) process.stdin.setRawMode(true);
  const screen = createScreen(plain);
  // First of all something to look at: what takes time comes under it.
  screen.area.draw({ rows: ['', 'starting', '> '], cursor: { row: 2, column: 2 } });
  let arrival = await open(chosen, { resume: null, said: '' }).catch((error: unknown) => {
    screen.area.clear();
    throw error;
  });
  const seat = takeSeat(screen, plain, arrival.opened.settings.workspace);
  try {
    for (;;) {
      const departure = await live(arrival, { seat, flags, arrive: (to) => open(flagsFor(flags, to), to) });
      if (departure.kind === 'exit') return departure.exit;
      arrival = departure.arrival;
    }
  } finally {
    seat.leave();
    const again = `To go on: pawl --resume ${arrival.opened.session.id}`;
    writeIfThere(1, `${paint(seat.look, 'dim', again)}\n`);
  }
};
