/**
 * `pawl diff`: where two stored sessions part, what differs there, and what follows from it in
 * each. compare-sessions.ts compares; this file shows the result.
 *
 * From top to bottom: the comparison as text and as JSON; `diffSessions`; and fields with different
 * values as lines.
 */

import { fileJournals } from '@pawl/agent/journal/file-store';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import type { Header } from '@pawl/agent/ports/journal';
import type { Json } from '@pawl/machine/kernel/shape';
import {
  countColumns,
  cutLine,
  detectLook,
  formatDuration,
  type Look,
  paint,
  wrapWords,
} from '@pawl/terminal/paint';
import { joinSafe, makeSafe, type Safe, safe, safeJson } from '@pawl/terminal/safe-text';
import { writeError, writeJson, writeOut } from '@pawl/terminal/write';
import { errorEnding, exitCodes } from '../process/exit-codes.js';
import { headLine } from '../sessions/session-text.js';
import { findInfo, storedBlobs } from '../sessions/stored-sessions.js';
import { usageStop } from '../settings/flags.js';
import {
  compareSessions,
  type FieldDifference,
  type PartingEvent,
  type SessionComparison,
  type SessionRest,
  type SessionSource,
} from './compare-sessions.js';
import { formatTotal } from './figures.js';

type Headers = { readonly a: Header; readonly b: Header };

/** Which of them is a fork of the other; empty if none is. */
const kinshipText = ({ a, b }: Headers): string => {
  if (a.sessionId === b.sessionId) return 'A and B are the same session.';
  if (b.parent?.sessionId === a.sessionId)
    return `B is a fork of A: it copied A up to seq ${b.parent.seq}.`;
  if (a.parent?.sessionId === b.sessionId)
    return `A is a fork of B: it copied B up to seq ${a.parent.seq}.`;
  if (a.parent !== null && a.parent.sessionId === b.parent?.sessionId)
    return (
      `A and B are forks of ${a.parent.sessionId}: A copied it up to seq ${a.parent.seq}, B up ` +
      `to seq ${b.parent.seq}.`
    );
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
    return (
      `${commonText(common)} There ${names.map((name) => name.toUpperCase()).join(' and ')} ` +
      `${names.length === 1 ? 'is' : 'are'} damaged.`
    );
  if (a !== null) return `${commonText(common)} There B ends, and A goes on:`;
  if (b !== null) return `${commonText(common)} There A ends, and B goes on:`;
  const entries =
    common.a === common.b ? plural(common.a, 'event') : `${common.a} and ${common.b} events`;
  return settings.length === 0
    ? `Equal: all of their ${entries}.`
    : `Their ${entries} are equal, but not their settings.`;
};

const eventText = (event: PartingEvent | null): Safe => {
  if (event === null) return safe`has no further event`;
  const states =
    event.before === event.after ? `in ${event.after}` : `${event.before} → ${event.after}`;
  return makeSafe(`seq ${event.seq} ${event.type}, ${states}`);
};

const endedText = ({ ended, state, damage }: SessionRest): string => {
  const rest = ended === null ? 'no turn ended' : `last turn: ${ended}`;
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

const comparisonNotes = ({ headers, durationsOnly }: SessionComparison): readonly string[] => [
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
  const head = sides((name) => headLine(headers[name]));
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
    comparisonNotes(compared).flatMap(wrapped),
  ];
  const shown = blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => joinSafe(lines, safe`\n`));
  return joinSafe(shown, safe`\n\n`);
};

const comparisonJson = (headers: Headers, compared: SessionComparison): object => {
  const describeSide = (name: 'a' | 'b'): object => {
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
    a: describeSide('a'),
    b: describeSide('b'),
    fields,
    settings,
    headers: otherHeaders,
    durationsOnly,
  };
};

const openSource = async (id: string): Promise<SessionSource> => {
  const { sessionId, kind } = await findInfo(id);
  if (kind !== 'agent')
    throw usageStop('pawl diff compares sessions of the agent, not runs of pawl ask.');
  const store = fileJournals({ folder: stateFolder(process.env) });
  const { header } = await store.replay(sessionId, { at: 0 }); // reads the header alone
  return {
    // the name of the file counts: a journal copied by hand has the id of the original inside
    header: { ...header, sessionId },
    entries: store.read(sessionId),
    blob: (sha256) => storedBlobs().get(sha256),
  };
};

/**
 * Exit code 0 for equal sessions, 1 for different ones, that of damaged journals if one could not
 * be read to its end.
 */
export const diffSessions = async (idA: string, idB: string, json: boolean): Promise<number> => {
  const [a, b] = [await openSource(idA), await openSource(idB)];
  const compared = await compareSessions(a, b);
  const headers = { a: a.header, b: b.header };
  if (json) writeJson(comparisonJson(headers, compared));
  else writeOut(safe`${diffText(detectLook(process.stdout, process.env), headers, compared)}\n`);
  const damages = [compared.rest.a.damage, compared.rest.b.damage].filter(
    (damage) => damage !== null,
  );
  for (const damage of damages) writeError(makeSafe(`pawl: ${errorEnding(damage).message}\n`));
  if (damages.length > 0) return exitCodes.badInput;
  return isEqual(compared) ? exitCodes.done : exitCodes.taskFailed;
};

// Fields with different values, as lines that fit the window.

const FIELDS_SHOWN = 8;
/** Characters before the difference that a cut text still shows, as a share of its line. */
const LEAD_SHARE = 0.3;

type Texts = { readonly a: string; readonly b: string };

/** UTF-16 units before the first difference; never in the middle of a character. */
const sameStart = ({ a, b }: Texts): number => {
  const end = Math.min(a.length, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  // the second half of a character of two units
  const isLow = (text: string): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
  return at > 0 && (isLow(a) || isLow(b)) ? at - 1 : at;
};

/** A text as JSON that fits `columns`, cut around the place `at`. Hidden characters are escaped. */
const textAround = (text: string, at: number, columns: number): Safe => {
  const from = text.length <= columns - 2 ? 0 : Math.max(0, at - Math.floor(columns * LEAD_SHARE));
  const begin = (text.charCodeAt(from) & 0xfc00) === 0xdc00 ? from + 1 : from;
  const json = safeJson(text.slice(begin, begin + columns));
  const lead = begin > 0 ? safe`…` : safe``;
  const isCut = begin + columns < text.length;
  return cutLine(isCut ? safe`${lead}${json.slice(0, -1)}…` : safe`${lead}${json}`, columns);
};

const valueText = (value: Json | undefined, at: number, columns: number): Safe => {
  if (value === undefined) return safe`(absent)`;
  return typeof value === 'string'
    ? textAround(value, at, columns)
    : cutLine(safeJson(value), columns);
};

const differenceLines = (look: Look, { field, a, b }: FieldDifference): readonly Safe[] => {
  const columns = Math.max(20, look.columns);
  const at = typeof a === 'string' && typeof b === 'string' ? sameStart({ a, b }) : 0;
  return [
    ...wrapWords(makeSafe(field), columns - 2).map((row) => safe`  ${row}`),
    safe`    ${paint(look, 'red', safe`A ${valueText(a, at, columns - 6)}`)}`,
    safe`    ${paint(look, 'green', safe`B ${valueText(b, at, columns - 6)}`)}`,
  ];
};

/**
 * An event of a reply has its calls twice: in the message, and judged, with facts for permissions.
 * The latter repeat what the message says: they are left out where the message differs
 * already.
 */
const isRepeated = ({ field }: FieldDifference): boolean =>
  /^calls\[\d+\]\.(?:input|facts|title)/.test(field);

const fieldLines = (look: Look, fields: readonly FieldDifference[]): readonly Safe[] => {
  const inMessage = fields.some(({ field }) => field.startsWith('message.'));
  const shownFields = fields.filter((one) => !(inMessage && isRepeated(one)));
  const more = shownFields.length - FIELDS_SHOWN;
  const lines = shownFields.slice(0, FIELDS_SHOWN).flatMap((one) => differenceLines(look, one));
  if (more <= 0) return lines;
  const note = cutLine(safe`  … ${more} more: --json has all of them`, Math.max(20, look.columns));
  return [...lines, paint(look, 'dim', note)];
};

/** The rows with a mark before the first; the others are indented by its width. */
const hanging = (mark: Safe, rows: readonly Safe[]): readonly Safe[] =>
  rows.map((row, index) =>
    index === 0 ? safe`${mark}${row}` : safe`${safe` `.repeat(countColumns(mark))}${row}`,
  );
