/** An arrow of the table: frozen, made once, the same object in every step that takes it. */
export type Edge = {
  readonly id: string;
  readonly from: string;
  /** null: taken without an event. */
  readonly event: string | null;
  /** The guard's name; empty where there is none. */
  readonly when: string;
  readonly to: string;
  /** The move's name. */
  readonly then: string;
};
