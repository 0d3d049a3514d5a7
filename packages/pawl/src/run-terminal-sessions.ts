import { isBare, paint } from '@pawl/terminal/paint-text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeWindow } from '@pawl/terminal/write';
import { type RunFlags, usageStop } from './flags.js';
import { createEventBuffer } from './interactive/event-buffer.js';
import { openTerminalSession } from './interactive/lasting-terminal.js';
import { runSession, type StartedSession } from './interactive/run-session.js';
import { createScreen, type Screen } from './interactive/take-and-restore-terminal.js';
import { chooseSession } from './sessions/choose-session.js';
import { openFromFlags } from './sessions/open-session.js';
import { realWorkspace } from './settings/connect-model.js';
import { hasProjectFile } from './settings/load.js';
import type { NextSession } from './slash/command-context.js';
import { mcpJsonFiles } from './trust/mcp-json-files.js';

const refuseWithoutTerminal = (): void => {
  for (const stream of ['stdin', 'stdout'] as const) {
    if (process[stream].isTTY) continue;
    throw usageStop(
      `There is no terminal (${stream} is not one). To run one turn without a terminal: pawl -p "prompt", or with the prompt from stdin: pawl -p -`,
    );
  }
};

/**
 * The flags for the next session in the same terminal. A new session takes all but `--resume` and `--continue`; a resumed
 * one also keeps its own model, preset and profile.
 */
const flagsFor = (flags: RunFlags, { resume: other, model }: NextSession): RunFlags => {
  const { resume, continue: last, takeOver, ...rest } = flags;
  if (other === null) return model === undefined ? rest : { ...rest, model };
  const { model: first, preset, profile, ...kept } = rest;
  return kept;
};

const open = async (
  flags: RunFlags,
  { resume, rights, said, text = '' }: NextSession,
): Promise<StartedSession> => {
  const [steps, warnings]: [StartedSession['steps'], StartedSession['warnings']] = [
    createEventBuffer(),
    createEventBuffer(),
  ];
  const early = {
    watcher: steps.push,
    warn: warnings.push,
    ...(resume === null ? {} : { resume }),
    ...(rights === undefined ? {} : { rights }),
  };
  const opened = await openFromFlags(flags, 'terminal', early);
  if (!opened.resumed) await opened.session.send({ type: 'Start' });
  return { opened, steps, warnings, notice: said, draft: text };
};

const STARTING = { rows: [safe``, safe`starting`, safe`> `], cursor: { row: 2, column: 2 } };

/** Asks about what the project's files want to run, before the session opens. Other sessions of this terminal don't ask. */
const askAboutProject = async (screen: Screen, plain: boolean, flags: RunFlags): Promise<void> => {
  const workspace = realWorkspace(flags.workspace ?? process.cwd());
  if (mcpJsonFiles(workspace).length === 0 && !hasProjectFile(workspace)) return;
  const { askAtStart } = await import('./trust/ask-trust-at-start.js');
  await askAtStart(screen, plain, workspace);
  screen.area.draw(STARTING);
};

/** `pawl`: runs sessions in the terminal, one after the other. Returns the exit code. */
export const runTerminal = async (flags: RunFlags): Promise<number> => {
  refuseWithoutTerminal();
  const chosen = await chooseSession(flags);
  const plain = flags.plain === true || isBare(process.env);
  // Raw mode from the start: without it an Enter that is pressed early would arrive as a line feed.
  if (!plain) process.stdin.setRawMode(true);
  const screen = createScreen(plain);
  // Draw something first: opening the session takes time.
  screen.area.draw(STARTING);
  const begin = async (): Promise<StartedSession> => {
    await askAboutProject(screen, plain, chosen);
    return open(chosen, { resume: null, said: '' });
  };
  let started = await begin().catch((error: unknown) => {
    screen.area.clear();
    throw error;
  });
  const terminal = openTerminalSession(screen, plain, started.opened.settings.workspace);
  try {
    for (;;) {
      const sessionExit = await runSession(started, {
        terminal: terminal,
        flags,
        openNext: (to) => open(flagsFor(flags, to), to),
      });
      if (sessionExit.kind === 'exit') return sessionExit.exit;
      started = sessionExit.started;
    }
  } finally {
    terminal.close();
    const again = safe`To continue: pawl --resume ${makeSafe(started.opened.session.id)}`;
    writeWindow(safe`\n${paint(terminal.look, 'dim', again)}\n`);
  }
};
