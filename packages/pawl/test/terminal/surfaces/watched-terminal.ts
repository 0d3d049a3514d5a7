import xterm from '@xterm/headless';

/** An emulated terminal that notes every effect which text must not have. */
export type Watched = {
  write(text: string): void;
  /** All that was found wrong, after all that was written has come. */
  faults(): Promise<readonly string[]>;
};

/** Control sequences that Pawl sends to draw its window. No style is expected: colours are off, so one is foreign. */
const WINDOW =
  /\u001b\[(?:\?2026[hl]|\?7[hl]|\?25[hl]|\?2004[hl]|>1u|<u|\d*[ABCKJLM])|\u001b\]11;\?\u0007|\r\n|\r(?=\u001b\[[KJC]|\u001b\[\d|[ -~]|$)|\r/g;
/** The text that `/copy` puts into the clipboard. It is looked through too: it is pasted elsewhere. */
const CLIPBOARD = /\u001b\]52;c;([A-Za-z0-9+/=]*)\u0007/g;
/** Nothing of this may be left: controls, what reorders, what can't be seen, tags. Joiners and variants have their places. */
const LEFT =
  /[\u034f\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ue000-\uf8ff]|[\u{e0000}-\u{e007f}\u{f0000}-\u{10ffff}]/u;
const OSC_MAX = 2_000;

const faultIn = (text: string, isWindow: boolean): string | null => {
  const rest = isWindow
    ? text
        .replace(CLIPBOARD, (_, data: string) => Buffer.from(data, 'base64').toString())
        .replace(WINDOW, '')
    : text;
  const found = LEFT.exec(rest);
  return found === null
    ? null
    : `${JSON.stringify(found[0])} in ${JSON.stringify(rest.slice(Math.max(0, found.index - 30), found.index + 30))}`;
};

export const watchTerminal = (isWindow: boolean): Watched => {
  const terminal = new xterm.Terminal({
    cols: 100,
    rows: 30,
    scrollback: 200,
    allowProposedApi: true,
    logLevel: 'off',
  });
  const faults: string[] = [];
  const note = (text: string): boolean => {
    if (faults.length < 5) faults.push(text);
    return false;
  };
  for (let code = 0; code < OSC_MAX; code += 1)
    if (!(isWindow && (code === 11 || code === 52)))
      terminal.parser.registerOscHandler(code, (text) => note(`OSC ${code};${text}`));
  for (const final of 'pqrstuvwxyz{|}~') {
    for (const intermediates of ['', '$', '+', '"'])
      terminal.parser.registerDcsHandler({ intermediates, final }, () =>
        note(`DCS ${intermediates}${final}`),
      );
  }
  terminal.onTitleChange((title) => note(`title ${title}`));
  terminal.onBell(() => note('bell'));
  terminal.onData((text) => note(`report ${JSON.stringify(text)}`));
  let pending = 0;
  return {
    write(text) {
      const fault = faultIn(text, isWindow);
      if (fault !== null) note(fault);
      pending += 1;
      terminal.write(text, () => {
        pending -= 1;
      });
    },
    async faults() {
      while (pending > 0) await new Promise((resolve) => terminal.write('', () => resolve(null)));
      const { active } = terminal.buffer;
      if (active.type !== 'normal') note('the other screen');
      if (!isWindow && terminal.modes.bracketedPasteMode) note('bracketed paste');
      if (terminal.modes.mouseTrackingMode !== 'none') note('mouse reports');
      for (let row = 0; row < active.length; row += 1) {
        const left = LEFT.exec(active.getLine(row)?.translateToString(true) ?? '');
        if (left !== null) note(`${JSON.stringify(left[0])} on the screen`);
      }
      return faults;
    },
  };
};
