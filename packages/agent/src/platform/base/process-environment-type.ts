/** Environment variables by name, as in `process.env`. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>;
