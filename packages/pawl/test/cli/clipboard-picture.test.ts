import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { readClipboard } from '../../src/interactive/paste-picture.js';

/** Programs that read the clipboard: real processes, made up for the test. */

const PICTURE = makePng(3);

type Given = {
  readonly platform?: NodeJS.Platform;
  readonly display?: NodeJS.ProcessEnv;
  /** Bodies of shell scripts by the program's name; `$PICTURE` is a file with one. */
  readonly programs: Readonly<Record<string, string>>;
  readonly aborted?: true;
};

const WAYLAND = { WAYLAND_DISPLAY: 'wayland-0' };
const X11 = { DISPLAY: ':0' };
const SHOW = 'exec /bin/cat "$PICTURE"';

const ask = (context: TestContext, given: Given): Promise<Buffer> => {
  const { platform = 'linux', display = X11, programs, aborted } = given;
  const folder = temporaryFolder(context, 'clipboard');
  for (const name of ['bin', 'project']) mkdirSync(path.join(folder, name));
  const picture = path.join(folder, 'clip.png');
  writeFileSync(picture, PICTURE);
  for (const [name, body] of Object.entries(programs))
    writeFileSync(
      path.join(folder, name.includes('/') ? name : `bin/${name}`),
      `#!/bin/sh\nPICTURE='${picture}'\n${body}\n`,
      {
        mode: 0o700,
      },
    );
  const PATH = `${folder}/project:${folder}/bin`;
  return readClipboard({
    platform,
    environment: { PATH, HOME: folder, ANTHROPIC_API_KEY: 'secret', ...display },
    workspace: path.join(folder, 'project'),
    signal: aborted ? AbortSignal.abort() : new AbortController().signal,
    deadlineMs: 60_000,
  });
};

const hex = PICTURE.toString('hex').toUpperCase();

const found: readonly (readonly [string, Given])[] = [
  [
    'xclip is asked for a PNG',
    { programs: { xclip: `[ "$*" = '-selection clipboard -t image/png -o' ] && ${SHOW}` } },
  ],
  [
    'wl-paste is asked for a PNG',
    { display: WAYLAND, programs: { 'wl-paste': `[ "$*" = '--type image/png' ] && ${SHOW}` } },
  ],
  [
    'Wayland goes first',
    { display: { ...WAYLAND, ...X11 }, programs: { 'wl-paste': SHOW, xclip: 'exit 1' } },
  ],
  [
    'what is not installed is passed over',
    { display: { ...WAYLAND, ...X11 }, programs: { xclip: SHOW } },
  ],
  [
    'macOS: pngpaste',
    { platform: 'darwin', display: {}, programs: { pngpaste: `[ "$*" = - ] && ${SHOW}` } },
  ],
  [
    'macOS: osascript prints letters',
    { platform: 'darwin', display: {}, programs: { osascript: `echo '«data PNGf${hex}»'` } },
  ],
  [
    'macOS goes before a display of X11',
    { platform: 'darwin', display: X11, programs: { xclip: 'exit 1', pngpaste: SHOW } },
  ],
  [
    'no key of a provider is handed on',
    { programs: { xclip: `[ -z "$ANTHROPIC_API_KEY" ] && [ "$DISPLAY" = :0 ] && ${SHOW}` } },
  ],
  [
    'a program of the workspace is not run',
    { programs: { 'project/xclip': 'exit 1', xclip: SHOW } },
  ],
];

for (const [title, given] of found) {
  test(`${title}: the picture comes to the byte`, async (context) =>
    assert.deepEqual(await ask(context, given), PICTURE));
}

const refused: readonly (readonly [string, Given, RegExp])[] = [
  [
    'no display',
    { display: {}, programs: { xclip: SHOW } },
    /^there is no access to a clipboard.*DISPLAY is set$/,
  ],
  [
    'nothing is installed',
    { display: { ...WAYLAND, ...X11 }, programs: {} },
    /^the clipboard can't be read without wl-clipboard or xclip, which is not installed$/,
  ],
  [
    'text in the clipboard',
    { programs: { xclip: 'echo "Error: target image/png not available" >&2; exit 1' } },
    /^xclip finds no picture in the clipboard \(Error: target image\/png not available\)$/,
  ],
  [
    'a program that fails on its way',
    { programs: { xclip: '/bin/cat "$PICTURE"; exit 1' } },
    /^xclip finds no picture in the clipboard$/,
  ],
  [
    'a program that prints nothing',
    { programs: { xclip: 'exit 0' } },
    /^xclip finds no picture in the clipboard$/,
  ],
  [
    'osascript prints something else',
    { platform: 'darwin', display: {}, programs: { osascript: 'echo hello' } },
    /^osascript finds no picture/,
  ],
  [
    'more than any picture has',
    { programs: { xclip: 'exec /usr/bin/head -c 40000001 /dev/zero' } },
    /^xclip printed more than 40000000 bytes/,
  ],
  ['nobody waits any more', { programs: { xclip: SHOW }, aborted: true }, /^xclip was stopped$/],
];

for (const [title, given, why] of refused) {
  test(`${title}: it is said that there is none, and why`, async (context) => {
    await assert.rejects(ask(context, given), (error: Error) => {
      assert.match(error.message, why);
      return true;
    });
  });
}
