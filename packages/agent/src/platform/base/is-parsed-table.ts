/** An object that a text in TOML, JSON or YAML holds: no list, and no date. */
export type ParsedTable = Readonly<Record<string, unknown>>;

export const isTable = (value: unknown): value is ParsedTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
