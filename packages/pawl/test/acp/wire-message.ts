/** A message of the protocol as it comes from the agent, of any kind. */

export type Message = {
  readonly jsonrpc?: string;
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
};

export class AgentError extends Error {
  readonly code: number;
  readonly details: unknown;

  constructor(error: NonNullable<Message['error']>) {
    super(error.message);
    this.code = error.code;
    this.details = error.data;
  }
}
