import type { Inspector } from '@pawl/inspector/server/inspector-server';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import type { Command } from './command-context.js';

/** One server for all sessions of this process. It ends with the process, and costs nothing while nobody looks. */
let opened: Promise<Inspector> | null = null;

/** `/inspect`: prints the address at which a browser shows this session while it works. */
export const inspect: Command = async ({ view, session }) => {
  opened ??= import('../commands/inspect/page-and-server.js').then(({ openInspector }) => openInspector());
  try {
    const { addressOf } = await opened;
    view.print(safe`  ${makeSafe(addressOf(session.id))}`);
    view.print(safe`  Open it in a browser on this computer. It only shows; it ends with this program.`);
  } catch (error) {
    opened = null;
    throw error;
  }
};
