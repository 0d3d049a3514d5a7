import {
  count,
  faultIn,
  finite,
  nullable,
  object,
  optional,
  type Shape,
  shapeFault,
  text,
  trimmed,
} from '@pawl/machine/kernel/shape';
import type { Header } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import type { Recorded } from '../format/line-codec.js';
import { damaged } from '../journal-error.js';
import { type JournaledMachine, versionIn } from '../journaled-machine.js';
import { refuseNewer } from './fold.js';

/**
 * Checks what a journal says, in addition to its checksums: anybody can compute those.
 *
 * The shape of each header is checked. Settings and events are checked in journals that came from elsewhere, since those of
 * this state folder were checked when they were written. Unknown fields pass: nothing reads them.
 */

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Settings of any machine: the model is shown in lists. */
const anySettings: Shape<Header<MachineTypes>['settings']> = {
  check(value) {
    if (!isObject(value)) return shapeFault(value, 'an object');
    const fault = text.check(Reflect.get(value, 'model'));
    if (fault !== null) return { ...fault, path: ['model'] };
    const question: unknown = Reflect.get(value, 'question');
    return question === undefined || typeof question === 'string'
      ? null
      : { ...shapeFault(question, 'a text'), path: ['question'] };
  },
};

/** The fields of a header that lists and openings read. */
type ReadFields = Pick<
  Header<MachineTypes>,
  'sessionId' | 'createdAt' | 'workspace' | 'parent' | 'startedBy' | 'settings' | 'instructions' | 'tools'
>;

const headerShape: Shape<ReadFields> = object<ReadFields>({
  sessionId: text,
  createdAt: finite,
  workspace: text,
  parent: nullable(object<NonNullable<Header['parent']>>({ sessionId: text, seq: count })),
  startedBy: optional(
    object<NonNullable<Header['startedBy']>>({ sessionId: text, batchId: text, callId: text }),
  ),
  settings: anySettings,
  instructions: text,
  tools: text,
});

/** Describes what is wrong with a header of any machine; null if nothing is. */
export const faultInHeader = (header: unknown): string | null =>
  faultIn(headerShape, trimmed(headerShape, header), 'the header');

/** Throws `damaged` if the settings of a journal from elsewhere are none of this machine, `newerVersion` if it is of a later one. */
export const checkHeader = <M extends MachineTypes>(
  path: string,
  machine: Pick<JournaledMachine<M>, 'faultIn' | 'version'>,
  header: Header<M>,
): void => {
  refuseNewer({ path, machine }, versionIn(header));
  const why = machine.faultIn?.settings(header.settings) ?? null;
  if (why !== null) throw damaged(path, { line: 1, seq: 0 }, `its settings are odd: ${why}`);
};

/**
 * Throws `damaged` at the first entry of a journal from elsewhere that is no event of this machine, `newerVersion` where a
 * later one took it over.
 */
export const checkRecords = <M extends MachineTypes>(
  path: string,
  machine: Pick<JournaledMachine<M>, 'faultIn' | 'version' | 'upgradeIn'>,
  records: readonly Recorded<M>[],
): void => {
  if (machine.faultIn === undefined) return;
  for (const { entry } of records) {
    const why = machine.faultIn.event(entry.event);
    // The event of a take-over is read first, so that what a later machine wrote is not called damage.
    if (isObject(entry.event) && why === null)
      refuseNewer({ path, machine }, machine.upgradeIn?.(entry.event) ?? 0);
    if (why === null) continue;
    const { seq } = entry;
    throw damaged(path, { line: seq + 1, seq: seq - 1 }, `it is no event of this machine: ${why}`);
  }
};
