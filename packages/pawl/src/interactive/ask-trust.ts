import { openTrust } from '@pawl/agent/extensions/trust';
import { systemClock } from '@pawl/agent/platform/clock';
import { stateFolder } from '@pawl/agent/platform/environment';
import { readKeyboard, readLines } from '@pawl/terminal/keys';
import type { Screen } from '@pawl/terminal/live-area';
import { lookOf, warningText } from '@pawl/terminal/paint';
import { askTrust, hookSource, serverSource, settleExecutables } from '../sessions/project-trust.js';

/** Before a session opens in a terminal: the questions that the project's files raise. */
export const askAtStart = async (screen: Screen, plain: boolean, workspace: string): Promise<void> => {
  const { area } = screen;
  const trust = openTrust(stateFolder(process.env), (text) => area.print(warningText(text)));
  const { open } = await settleExecutables(trust, workspace, [serverSource, hookSource]);
  if (open.length === 0) return;
  screen.take();
  await askTrust(trust, workspace, open, {
    area,
    clock: systemClock,
    size: () => screen.size(),
    look: () => {
      const look = lookOf(process.stdout, process.env);
      return plain ? { ...look, colour: 'no', plain: 'yes' } : look;
    },
    listen: (take) =>
      plain
        ? readLines(process.stdin, { take })
        : readKeyboard(process.stdin, { take, receive: () => undefined }),
  });
};
