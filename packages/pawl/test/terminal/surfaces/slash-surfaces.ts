import { rmSync, writeFileSync } from 'node:fs';
import { Composer } from '@pawl/terminal/composer';
import { createLiveArea } from '@pawl/terminal/live-area';
import { warningText } from '@pawl/terminal/paint';
import { runCommand } from '../../../src/interactive/slash-commands.js';
import { banner, otherSessionNote, resumedNotes } from '../../../src/interactive/start-texts.js';
import { InteractiveView } from '../../../src/interactive/view.js';
import { openFromFlags } from '../../../src/sessions/open-session.js';
import { commandChoices, readTypedInput } from '../../../src/sessions/typed-input.js';
import { fakeClock } from '../../../src/testing.js';
import type { Hostile } from './hostile.js';
import type { Out, Surface } from './surface.js';

/** A real session in whose window every slash command is given hostile words, and that is greeted again afterwards. */

const nothing = (): void => undefined;

const open = async (hostile: Hostile, size: number, more: { readonly resume?: string } = {}) => {
  const replies = [
    {
      text: hostile.text(size / 4),
      calls: [{ tool: hostile.text(30), rawInput: hostile.text(50) }],
    },
  ];
  writeFileSync(
    'script.json',
    JSON.stringify({ replies: [...replies, { text: hostile.text(size / 4) }] }),
  );
  const flags = { model: 'scripted/script.json' };
  return { flags, opened: await openFromFlags(flags, 'terminal', { warn: nothing, ...more }) };
};

const show = async (hostile: Hostile, out: Out, size: number): Promise<void> => {
  const { flags, opened } = await open(hostile, size);
  const { session, settings } = opened;
  await session.send({ type: 'UserInput', text: hostile.text(size / 4), mode: 'steer' });
  await session.idle();
  const rule = { kind: 'host', pattern: hostile.text(80), decision: 'allow' } as const;
  const writtenRules = [{ ...rule, origin: hostile.text(80), from: 'folder' as const }];
  await session.send({ type: 'SettingsChanged', patch: { writtenRules } });
  const clock = fakeClock(1_000_000);
  const area = createLiveArea({
    write: out.write,
    size: () => ({ columns: 100, rows: 30 }),
    clock,
    reflow: 'all',
  });
  const composer = new Composer({ commands: commandChoices, files: async () => [] }, nothing);
  const wishes = {
    say: nothing,
    cancel: nothing,
    answer: nothing,
    allowInFolder: nothing,
    runCommand: nothing,
    pastePicture: nothing,
    nextPreset: () => undefined,
    openList: nothing,
    suspend: nothing,
    end: nothing,
    stopUserCommand: () => false,
    keepUnsent: () => undefined,
    withoutShellOutput: (texts: readonly string[]) => texts,
  };
  const state = await session.state();
  const parts = { area, look: out.look, clock, composer, rows: () => 30 };
  const view = new InteractiveView(parts, wishes, state);
  const context = {
    session,
    workspace: settings.workspace,
    flags,
    look: out.look,
    view,
    paste: async () => undefined,
    hasWork: () => false,
    move: async () => view.setLeaving(false), // it stays here
    quit: nothing,
    detach: async () => undefined,
    typedText: (text: string) => text,
    takeBackText: (text: string) => text,
    servers: {
      reconnect: async () => undefined,
      status: async () => [
        {
          name: 'docs',
          connection: { kind: 'failed' as const, why: hostile.text(300) },
          tools: [hostile.text(80)],
          declined: 1,
        },
      ],
    },
    prompts: {
      tools: [],
      section: '',
      mentions: () => [],
      expands: () => false,
      expand: async (text: string) => ({ text, fault: null }),
      choices: [{ text: hostile.name(), about: hostile.text(300) }],
    },
  };
  view.print(banner(out.look, { ...opened, resumed: { recent: null } }));
  view.print(resumedNotes(out.look, state));
  view.print(await otherSessionNote(out.look, settings.workspace, 'another', true));
  view.print(warningText(hostile.text(200)));
  for (const { text: name } of commandChoices) {
    for (const words of [
      '',
      hostile.text(80),
      `session`,
      'docs',
      `revoke ${hostile.text(9)}`,
      `/tmp/${hostile.name()}/x`,
    ]) {
      const wish = readTypedInput(`/${name} ${words}`, 'steer');
      if (wish.kind !== 'command') continue;
      let runs = true;
      const ended = runCommand(context, wish.name, wish.words.replaceAll('\0', '')).finally(() => {
        runs = false;
      });
      while (runs) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        clock.advance(5_000);
        view.interrupt(); // closes a list
      }
      await ended;
    }
  }
  area.clear();
  await session.close();
  rmSync('script.json');
};

export const slashSurfaces: readonly Surface[] = [
  {
    name: 'window: slash commands and the greeting',
    covers: [
      ...['slash-commands', 'session-commands', 'rewind-commands', 'permissions'].map(
        (name) => `packages/pawl/src/interactive/${name}.ts`,
      ),
      'packages/pawl/src/interactive/view.ts',
    ],
    slash: commandChoices.map(({ text }) => text),
    show,
  },
];
