/**
 * Arrows of the machine that no configuration takes, by id, each with its reason. A reason for an arrow that is taken is
 * a fault of the check, just as an arrow that is not taken and has none.
 */
export const unreached: Readonly<Record<string, string>> = {};
