import type { Setting, Value } from './setting.js';
import { settings } from './setting-table.js';

/** Resolves a setting: its value, the source that won, the sources that were overruled. */

export type Origin =
  | { readonly layer: 'user' | 'project'; readonly file: string; readonly line: number }
  | { readonly layer: 'environment'; readonly variable: string }
  | { readonly layer: 'flag'; readonly flag: string };

export type Given = { readonly setting: Setting; readonly value: Value; readonly origin: Origin };

export type Overruled = { readonly value: Value; readonly origin: Origin; readonly why: string };

export type Resolved = {
  readonly setting: Setting;
  /** null for the built-in value. */
  readonly value: Value | null;
  readonly origin: Origin | null;
  readonly overruled: readonly Overruled[];
};

/** From the weakest to the strongest layer. In the project's layer the nearest file comes last. */
export type Layers = {
  readonly user: readonly Given[];
  readonly project: readonly Given[];
  readonly environment: readonly Given[];
  readonly flags: readonly Given[];
};

const isAmong = (some: string, all: string): boolean =>
  some.split(',').every((host) => all.split(',').includes(host));

/** Negative if `one` is stricter than `other`. null means no limit. */
const compare = ({ kind }: Setting, one: Value, other: Value | null): number => {
  if (other === null) return -1;
  if (kind.type === 'hosts') return isAmong(String(one), String(other)) ? 0 : 1;
  if (kind.type === 'words') return kind.words.indexOf(String(one)) - kind.words.indexOf(String(other));
  return Number(one) - Number(other);
};

const looser: Readonly<Record<Setting['kind']['type'], string>> = {
  number: 'a project may only lower it',
  switch: 'a project may only switch it off',
  words: 'a project may only choose what is stricter',
  model: 'a project may only choose a model of the provider that is used anyway',
  hosts: 'a project may only name hosts that you have named',
  url: 'a project may not set it',
  file: 'a project may not set it',
  names: 'a project may not set it',
};

const providerOf = (model: Value): string => String(model).split('/')[0] ?? '';

const outOfRange = ({ projectRange }: Setting, value: Value): string | null => {
  const [least, most] = projectRange ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  if (Number(value) < least) return `a project may not go below ${least}`;
  return Number(value) > most ? `a project may not go above ${most}` : null;
};

/** Why a project's value is refused; null if it is accepted. */
const refusal = (
  setting: Setting,
  value: Value,
  current: Value | null,
  builtInModel: string,
): string | null => {
  const away = outOfRange(setting, value);
  if (away !== null) return away;
  switch (setting.project) {
    case 'free':
      return null;
    case 'no':
      return 'a project may not set it';
    case 'tighten':
      return compare(setting, value, current ?? setting.tightest) <= 0 ? null : looser[setting.kind.type];
    case 'raise':
      return compare(setting, value, current ?? setting.tightest) >= 0 ? null : 'a project may only raise it';
    case 'sameProvider': {
      const provider = providerOf(current ?? builtInModel);
      const isSame = providerOf(value) === provider && provider !== 'scripted';
      return isSame ? null : looser.model;
    }
    default:
      return setting.project satisfies never;
  }
};

type Winner = Pick<Given, 'value' | 'origin'>;

const resolveOne = (setting: Setting, layers: Layers, builtInModel: string): Resolved => {
  let now: Winner | null = null;
  const overruled: Overruled[] = [];
  const take = (given: Given, by: string): void => {
    if (now !== null) overruled.push({ ...now, why: by });
    now = { value: given.value, origin: given.origin };
  };
  const { user, project, environment, flags } = layers;
  const own = (list: readonly Given[]): readonly Given[] =>
    list.filter((given) => given.setting.key === setting.key);
  for (const given of own(user)) take(given, 'another file comes later');
  for (const given of own(project)) {
    const current = (now as Winner | null)?.value ?? null; // `take` assigns it, which the compiler does not see
    const why = refusal(setting, given.value, current, builtInModel);
    if (why === null)
      take(given, setting.project === 'raise' ? 'the project raises it' : 'the project is stricter');
    else overruled.push({ value: given.value, origin: given.origin, why });
  }
  for (const given of own(environment)) take(given, 'the environment wins over files');
  for (const given of own(flags)) take(given, 'flags win');
  const winner = now as Winner | null; // the same
  return { setting, value: winner?.value ?? null, origin: winner?.origin ?? null, overruled };
};

/** Every setting, in the order of the table. */
export const resolve = (layers: Layers, builtInModel: string): readonly Resolved[] =>
  settings.map((setting) => resolveOne(setting, layers, builtInModel));

/** Values that a project may never set. The user is told about them, but not about values that a stricter one overrules. */
export const refusedOf = (resolved: readonly Resolved[]): readonly (Overruled & { readonly key: string })[] =>
  resolved.flatMap(({ setting, overruled }) =>
    overruled
      .filter(({ origin, why }) => origin.layer === 'project' && why.startsWith('a project may'))
      .filter(() => setting.kind.type !== 'number')
      .map((one) => ({ ...one, key: setting.key })),
  );
