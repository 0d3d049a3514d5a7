import { fileJournals } from '@pawl/agent/journal/file-store';
import { plural } from '@pawl/agent/platform/base/plural';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import type { Header } from '@pawl/agent/ports/journal';
import { formatWhen, type Look, lookOf, paint } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { wrapWords } from '@pawl/terminal/width';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { endingOfError, exitCodes } from '../../exit-codes.js';
import { usageStop } from '../../flags.js';
import { findInfo, storedBlobs } from '../../sessions/stored-sessions.js';
import { formatDuration, formatTotal } from '../figures/figure-texts.js';
import {
  compareSessions,
  type PartingEvent,
  type SessionComparison,
  type SessionRest,
  type SessionSource,
} from './compare-sessions.js';
import { fieldLines, hanging } from './difference-text.js';

/** `pawl diff`: where two stored sessions part, what differs there, and what follows from it in each. */

type Headers = { readonly a: Header; readonly b: Header };

const kinshipText = ({ a, b }: Headers): string => {
  if (a.sessionId === b.sessionId) return 'A and B are the same session.';
  if (b.parent?.sessionId === a.sessionId) return `B is a fork of A: it copied A up to seq ${b.parent.seq}.`;
  if (a.parent?.sessionId === b.sessionId) return `A is a fork of B: it copied B up to seq ${a.parent.seq}.`;
  if (a.parent !== null && a.parent.sessionId === b.parent?.sessionId)
    return `A and B are forks of ${a.parent.sessionId}: A copied it up to seq ${a.parent.seq}, B up to seq ${b.parent.seq}.`;
  return '';
};

const isEqual = ({ parting, settings }: SessionComparison): boolean =>
  parting.a === null && parting.b === null && settings.length === 0;

const commonText = ({ a, b }: SessionComparison['common']): string => {
  if (a === 0 && b === 0) return 'They have no event in common.';
  return a === b ? `The same up to seq ${a}.` : `The same up to seq ${a} of A and seq ${b} of B.`;
};

/** What ends the common part: a difference, the end of one session, or damage. */
const endText = ({ parting: { a, b }, rest, common, settings }: SessionComparison): string => {
  if (a !== null && b !== null) return `${commonText(common)} Then they part:`;
  const names = (['a', 'b'] as const).filter(
    (name) => rest[name].damage !== null && (name === 'a' ? a : b) === null,
  );
  if (names.length > 0)
    return `${commonText(common)} There ${names.map((name) => name.toUpperCase()).join(' and ')} ${names.length === 1 ? 'is' : 'are'} damaged.`;
  if (a !== null) return `${commonText(common)} There B ends, and A goes on:`;
  if (b !== null) return `${commonText(common)} There A ends, and B goes on:`;
  const entries = common.a === common.b ? plural(common.a, 'event') : `${common.a} and ${common.b} events`;
  return settings.length === 0
    ? `Equal: all of their ${entries}.`
    : `Their ${entries} are equal, but not their settings.`;
};

const eventText = (event: PartingEvent | null): Safe => {
  if (event === null) return safe`has no further event`;
  const states = event.before === event.after ? `in ${event.after}` : `${event.before} → ${event.after}`;
  return makeSafe(`seq ${event.seq} ${event.type}, ${states}`);
};

const endedText = ({ ended, state, damage }: SessionRest): string => {
  const rest = ended === null ? 'never came to rest' : `last turn: ${ended}`;
  return `${rest}; ${damage === null ? `now ${state}` : `damaged after ${state}`}`;
};

const restText = (rest: SessionRest): Safe => {
  const { events, turns, requests, tools, usage, activeMs } = rest;
  const calls = tools.filter(({ calls: count }) => count > 0);
  const named = calls.map(({ tool, calls: count }) => (count === 1 ? tool : `${tool} ×${count}`));
  const parts = [
    makeSafe(plural(events, 'event')),
    makeSafe(turns === 0 ? 'no new turn' : plural(turns, 'new turn')),
    makeSafe(plural(requests.length, 'request')),
    makeSafe(named.length === 0 ? 'no tools' : named.join(', ').replace(/\s+/g, ' ')),
    formatTotal(usage),
    safe`${formatDuration(activeMs)} of work`,
    makeSafe(endedText(rest)),
  ];
  return joinSafe(parts, safe` · `);
};

const notesOf = ({ headers, durationsOnly }: SessionComparison): readonly string[] => [
  ...(headers.length === 0 ? [] : [`Also different, and not counted: ${headers.join(', ')}.`]),
  ...(durationsOnly === 0
    ? []
    : [`Not counted: ${plural(durationsOnly, 'output')} of commands with other durations.`]),
];

/** The comparison for people, in lines that fit the window. */
export const diffText = (look: Look, headers: Headers, compared: SessionComparison): Safe => {
  const columns = Math.max(20, look.columns);
  const wrapped = (text: string): readonly Safe[] => wrapWords(makeSafe(text), columns);
  const sides = (tell: (name: 'a' | 'b') => Safe): readonly Safe[] => [
    ...hanging(safe`A  `, wrapWords(tell('a'), columns - 3)),
    ...hanging(safe`B  `, wrapWords(tell('b'), columns - 3)),
  ];
  const title = (text: string): Safe => paint(look, 'bold', makeSafe(text));
  const head = sides((name) => {
    const { sessionId, createdAt, settings, workspace } = headers[name];
    return makeSafe(
      `${sessionId} · ${formatWhen(createdAt)} · ${settings.model} · ${workspace}`.replace(/\s+/g, ' '),
    );
  });
  const kinship = kinshipText(headers);
  const { parting, settings, fields, rest } = compared;
  const parts = parting.a !== null || parting.b !== null;
  const blocks: readonly (readonly Safe[])[] = [
    [...head, ...(kinship === '' ? [] : wrapped(kinship))],
    settings.length === 0 ? [] : [title('Settings at the start'), ...fieldLines(look, settings)],
    [
      ...wrapped(endText(compared)).map((row) => paint(look, 'bold', row)),
      ...(parts ? sides((name) => eventText(parting[name])) : []),
    ],
    fields.length === 0 ? [] : [title('What differs'), ...fieldLines(look, fields)],
    parts ? [title('From there on'), ...sides((name) => restText(rest[name]))] : [],
    notesOf(compared).flatMap(wrapped),
  ];
  const shown = blocks.filter((lines) => lines.length > 0).map((lines) => joinSafe(lines, safe`\n`));
  return joinSafe(shown, safe`\n\n`);
};

const jsonOf = (headers: Headers, compared: SessionComparison): object => {
  const sideOf = (name: 'a' | 'b'): object => {
    const { sessionId, createdAt, workspace, parent, settings } = headers[name];
    const { damage, ...rest } = compared.rest[name];
    return {
      sessionId,
      createdAt,
      workspace,
      parent,
      model: settings.model,
      common: compared.common[name],
      parting: compared.parting[name],
      rest: { ...rest, damage: damage?.message ?? null },
    };
  };
  const { settings, headers: otherHeaders, fields, durationsOnly } = compared;
  return {
    equal: isEqual(compared),
    a: sideOf('a'),
    b: sideOf('b'),
    fields,
    settings,
    headers: otherHeaders,
    durationsOnly,
  };
};

const sourceOf = async (given: string): Promise<SessionSource> => {
  const { sessionId, kind } = await findInfo(given);
  if (kind !== 'agent') throw usageStop('pawl diff compares sessions of the agent, not runs of pawl ask.');
  const store = fileJournals({ folder: stateFolder(process.env) });
  const { header } = await store.replay(sessionId, { at: 0 });
  return {
    header: { ...header, sessionId },
    entries: store.read(sessionId),
    blob: (sha256) => storedBlobs().get(sha256),
  };
};

/** Exit code 0 for equal sessions, 1 for different ones, that of damaged journals if one could not be read to its end. */
export const diffSessions = async (givenA: string, givenB: string, json: boolean): Promise<number> => {
  const [a, b] = [await sourceOf(givenA), await sourceOf(givenB)];
  const compared = await compareSessions(a, b);
  const headers = { a: a.header, b: b.header };
  if (json) writeJson(jsonOf(headers, compared));
  else writeOut(safe`${diffText(lookOf(process.stdout, process.env), headers, compared)}\n`);
  const damages = [compared.rest.a.damage, compared.rest.b.damage].filter((damage) => damage !== null);
  for (const damage of damages) writeError(makeSafe(`pawl: ${endingOfError(damage).message}\n`));
  if (damages.length > 0) return exitCodes.badInput;
  return isEqual(compared) ? exitCodes.done : exitCodes.taskFailed;
};
