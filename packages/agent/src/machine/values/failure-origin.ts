import type { ModelErrorKind } from '../event.js';

export type FailureKind = ModelErrorKind | 'input' | 'tools' | 'compaction';

/** The source of a failure, as seeds 001 and 002 name it: the model, a tool, or input and output. */
export type FailureOrigin = 'llm' | 'tool' | 'io';

export const originOf = (error: FailureKind): FailureOrigin => {
  switch (error) {
    case 'tools':
      return 'tool';
    case 'input':
      return 'io';
    case 'compaction':
    case 'rateLimited':
    case 'overloaded':
    case 'unreachable':
    case 'timeout':
    case 'contextOverflow':
    case 'auth':
    case 'badRequest':
    case 'quotaExhausted':
    case 'refused':
    case 'malformed':
      return 'llm';
    default:
      return error satisfies never;
  }
};
