/**
 * Values with one thing wrong: what a program without types, a broken tool or a hostile model hands over.
 *
 * Reproducible: the same seed gives the same values.
 */

/** A number from 0 to 1, the next one with each call. */
export type Random = () => number;

/** mulberry32. */
export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

export const pick = <T>(random: Random, items: readonly T[]): T => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined && items.length === 0) throw new Error('there is nothing to pick from');
  return item as T; // inside the list
};

const nested = (depth: number, leaf: unknown): unknown => {
  let value = leaf;
  for (let index = 0; index < depth; index++) value = index % 2 === 0 ? [value] : { value };
  return value;
};

const circle = (): unknown => {
  const value: Record<string, unknown> = { text: 'round' };
  value.self = value;
  return value;
};

const thrower = (): unknown => ({
  get type(): string {
    throw new Error('a getter that throws');
  },
  get text(): string {
    throw new RangeError('another');
  },
});

const revoked = (): unknown => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

/** More and more often than it seems: each level holds the one below it twice. */
const doubling = (): unknown => {
  let value: unknown = 'leaf';
  for (let level = 0; level < 40; level++) value = [value, value];
  return value;
};

const hollow = (): unknown => Object.create(null);

/** Wrong in every place, or in most. */
const WRONG: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => Number.NaN,
  () => -1,
  () => -0,
  () => 0.5,
  () => 1e308,
  () => -1e308,
  () => Number.POSITIVE_INFINITY,
  () => Number.NEGATIVE_INFINITY,
  () => Number.MAX_SAFE_INTEGER,
  () => '',
  () => 'x'.repeat(200_000),
  () => '__proto__',
  () => 'constructor',
  () => 'toString',
  () => 'nothing of the kind',
  () => '\u0000\ud800\u202e',
  () => true,
  () => false,
  () => [],
  () => ({}),
  () => [undefined],
  () => new Array(1_000_000),
  () =>
    JSON.parse('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}}}'),
  () => nested(3_000, 1),
  () => nested(50_000, 1),
  () => 1n,
  () => Symbol('odd'),
  () => () => 'a function',
  () => new Date(Number.NaN),
  () => new Map([['text', 'in a map']]),
  () => new Proxy({}, { get: () => 'whatever one asks for' }),
  () => ({ toJSON: () => 'something else' }),
  () => ({
    toJSON: () => {
      throw new Error('not to be written');
    },
  }),
  circle,
  thrower,
  revoked,
  doubling,
  hollow,
];

/** A value that is wrong nearly everywhere. */
export const rubbish = (random: Random): unknown => pick(random, WRONG)();

type Place = readonly (string | number)[];

/** The places in a value of plain data, the whole first. */
const placesIn = (value: unknown, at: Place = []): readonly Place[] => {
  if (typeof value !== 'object' || value === null) return [at];
  const inner = Object.entries(value).flatMap(([key, held]) =>
    placesIn(held, [...at, Array.isArray(value) ? Number(key) : key]),
  );
  return [at, ...inner];
};

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

/** A copy with `change` done at a place; what lies beside the way is shared. */
const changeAt = (
  value: unknown,
  [key, ...rest]: Place,
  change: (held: unknown) => unknown,
): unknown => {
  if (key === undefined) return change(value);
  if (isList(value))
    return value.map((held, index) => (index === key ? changeAt(held, rest, change) : held));
  const held = { ...(value as Record<string | number, unknown>) }; // a place leads through objects
  held[key] = changeAt(held[key], rest, change);
  return held;
};

/** The value with something wrong at one of its places: replaced, left out, added to, or all of it. */
export const mutate = (random: Random, value: unknown): unknown => {
  const place = pick(random, placesIn(value));
  const roll = random();
  const last = place.at(-1);
  if (roll < 0.1 && typeof last === 'string') {
    return changeAt(value, place.slice(0, -1), (held) => {
      const { [last]: _, ...others } = held as Record<string, unknown>;
      return others;
    });
  }
  if (roll < 0.2) {
    return changeAt(value, place, (held) =>
      typeof held === 'object' && held !== null && !isList(held)
        ? { ...held, [pick(random, ['__proto__', 'extra', 'at', 'type'])]: rubbish(random) }
        : rubbish(random),
    );
  }
  return changeAt(value, place, () => rubbish(random));
};
