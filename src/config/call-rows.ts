import { row, type Setting, wholeNumber, words } from './setting.js';

/** Settings of model calls: requests, retries and waiting times. Part of the table. */

/** Range for a project. A shorter time would repeat calls at the user's cost, a longer one would wait for a dead model. */
const WAITED_MS = [1_000, 3_600_000] as const;

export const ofCalls: readonly Setting[] = [
  row({
    key: 'effort',
    kind: words('auto', 'low', 'medium', 'high'),
    project: 'tighten',
    flag: '--effort <level>',
    builtIn: 'auto',
    tightest: 'medium',
    help: 'how much the model is to think, where it can be told: low, medium, high or auto (default: as it sees fit)',
  }),
  row({
    key: 'reasoning_summaries',
    kind: words('off', 'on'),
    project: 'tighten',
    flag: null,
    builtIn: 'on',
    tightest: 'on',
    frozen: false,
    help: 'whether providers are asked for summaries of the thoughts of a model: on or off (an account that is refused them is asked without)',
  }),
  row({
    key: 'max_retries',
    kind: wholeNumber,
    project: 'tighten',
    flag: null,
    builtIn: '8',
    tightest: 8,
    frozen: false,
    help: 'how often a failed model call is tried again',
  }),
  row({
    key: 'retry_ms',
    kind: wholeNumber,
    project: 'no',
    flag: null,
    builtIn: '1000',
    frozen: false,
    help: 'how long the first retry waits; each further one waits twice as long, up to a minute, and up to a quarter more by chance',
  }),
  row({
    key: 'first_byte_ms',
    kind: wholeNumber,
    project: 'raise',
    flag: null,
    builtIn: '120000',
    tightest: 120_000,
    projectRange: WAITED_MS,
    frozen: false,
    help: 'how long a model may take to begin: raise it for slow local models',
  }),
  row({
    key: 'silence_ms',
    kind: wholeNumber,
    project: 'raise',
    flag: null,
    builtIn: '90000',
    tightest: 90_000,
    projectRange: WAITED_MS,
    frozen: false,
    help: 'how long a model may go silent in a reply',
  }),
];
