import { keepStyles, type Safe, safe } from './safe-text.js';

/** Every control sequence that Pawl sends to a terminal. No other file composes one. */

/** `code`: digits and semicolons of Select Graphic Rendition. */
export const beginStyle = (code: string): Safe => keepStyles(`\u001b[${code}m`);
export const CLOSE_STYLES = safe`\u001b[0m`;

/** Begin and end of a synchronized update. The terminal shows all of it in one frame. */
export const BEGIN_UPDATE = safe`\u001b[?2026h`;
export const END_UPDATE = safe`\u001b[?2026l`;
export const WRAP_OFF = safe`\u001b[?7l`;
export const WRAP_ON = safe`\u001b[?7h`;
export const HIDE_CURSOR = safe`\u001b[?25l`;
export const SHOW_CURSOR = safe`\u001b[?25h`;
export const ROW_START = safe`\r`;
export const NEXT_ROW = safe`\r\n`;
export const ERASE_ROW = safe`\r\u001b[K`;
export const ERASE_BELOW = safe`\r\u001b[J`;

export const moveUp = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}A`;
export const moveDown = (rows: number): Safe => safe`\u001b[${Math.trunc(rows)}B`;
export const moveRight = (columns: number): Safe => safe`\u001b[${Math.trunc(columns)}C`;

/** Asks the terminal for its background colour. A terminal that doesn't know the question doesn't answer. */
export const ASK_BACKGROUND = safe`\u001b]11;?\u0007`;

/** Turns on bracketed paste and the Kitty keyboard, which tells Enter from Shift+Enter and Escape from Alt. */
export const ENABLE_INPUT_MODES = safe`\u001b[?2004h\u001b[>1u`;
/** Restores the shell's terminal modes, also after a half-drawn row. */
export const RESTORE_TERMINAL = safe`\u001b[?2004l\u001b[<u\u001b[?7h\u001b[?25h\u001b[0m`;
