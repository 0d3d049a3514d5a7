import { readFileSync, statSync } from 'node:fs';

/**
 * Judges by owner and mode who could have created or changed a file: us, the system, or another user.
 *
 * Windows has no numeric owners, so every owner counts as ours there.
 */

export type Owned = { readonly uid: number; readonly gid: number; readonly mode: number };

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
/** Groups of administrators that own parts of the search path: Debian's /usr/local, Homebrew, Nix. */
const ADMINISTRATORS = new Set(['root', 'wheel', 'admin', 'sudo', 'nixbld', 'linuxbrew']);
/** On macOS every user is in `staff`; on Debian only administrators of /usr/local are. */
const STAFF = 'staff';

/** Effective user id; null on Windows. */
const ownUserId = (): number | null => process.geteuid?.() ?? null;

const ownerOf = (place: string): readonly number[] => {
  const status = statSync(place, { throwIfNoEntry: false });
  return status === undefined ? [] : [status.uid];
};

let system: ReadonlySet<number> | null = null;

/**
 * Whether a user id is the system's. Usually that is root. In a user namespace root may appear as another number, so
 * the owners of `/` and `/usr` count too.
 */
const isSystem = (uid: number): boolean => {
  system ??= new Set([0, ...ownerOf('/'), ...ownerOf('/usr')]);
  return system.has(uid);
};

/** Whether something belongs to us or to the system. */
export const isOwnOrSystem = ({ uid }: Pick<Owned, 'uid'>): boolean => {
  const own = ownUserId();
  return own === null || uid === own || isSystem(uid);
};

let groups: ReadonlyMap<number, string> | null = null;

const groupName = (gid: number): string => {
  if (groups === null) {
    let table = '';
    try {
      table = readFileSync('/etc/group', 'utf8');
    } catch {
      // no table: no group is known to be one of administrators
    }
    groups = new Map(
      table.split('\n').map((line) => {
        const [name = '', , number = ''] = line.split(':');
        return [Number(number), name] as const;
      }),
    );
  }
  return groups.get(gid) ?? '';
};

/**
 * Other users who may write. `administrators`: a group that runs the machine. `sticky`: everybody may add entries to
 * the folder, but nobody may replace those of others. A group with the user's own number counts as the user alone.
 */
export type Writers = 'none' | 'administrators' | 'sticky' | 'others';

export const otherWriters = ({ uid, gid, mode }: Owned): Writers => {
  const own = ownUserId();
  if (own === null) return 'none';
  const open = (mode & OTHERS_WRITE) !== 0;
  const shared = (mode & GROUP_WRITES) !== 0 && gid !== 0 && !(gid === own && gid === process.getegid?.());
  if (!open && !shared) return 'none';
  if ((mode & STICKY) !== 0 && isOwnOrSystem({ uid })) return 'sticky';
  if (open) return 'others';
  const name = groupName(gid);
  const runsMachine = ADMINISTRATORS.has(name) || (name === STAFF && process.platform !== 'darwin');
  return runsMachine ? 'administrators' : 'others';
};
