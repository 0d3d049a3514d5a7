import { openTrust } from '@pawl/agent/extensions/trust/trust-store';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { systemClock } from '@pawl/agent/session/clock';
import { lookOf, warningText } from '@pawl/terminal/paint-text';
import { readKeyboard, readLines } from '../interactive/input/keyboard.js';
import type { Screen } from '../interactive/take-and-restore-terminal.js';
import { askTrust } from './ask-trust.js';
import { settleExecutables } from './project-executables.js';
import { hookSource } from './project-hooks.js';
import { serverSource } from './project-servers.js';

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
