import { row, type Setting, wholeNumber, words } from './setting.js';

/** Settings of model calls: requests, retries and waiting times. Part of the table. */

/** Range for a project. A shorter time would repeat calls at the user's cost, a longer one would wait for a dead model. */
const WAITED_MS = [1_000, 3_600_000] as const;

export const modelCallSettings: readonly Setting[] = [
  row({
    key: 'effort',
    kind: words('auto', 'low', 'medium', 'high'),
    project: 'tighten',
    flag: '--effort <level>',
    builtIn: 'auto',
    tightest: 'medium',
    help: 'how much the model should think, if it can be told: low, medium, high or auto (default: the model decides)',
  }),
  row({
    key: 'reasoning_summaries',
    kind: words('off', 'on'),
    project: 'tighten',
    flag: null,
    builtIn: 'on',
    tightest: 'on',
    frozen: false,
    help: "ask providers for summaries of the model's reasoning: on or off (if an account may not have them, requests continue without)",
  }),
  row({
    key: 'max_retries',
    kind: wholeNumber,
    project: 'tighten',
    flag: null,
    builtIn: '8',
    tightest: 8,
    frozen: false,
    help: 'how often to retry a failed model call',
  }),
  row({
    key: 'retry_ms',
    kind: wholeNumber,
    project: 'no',
    flag: null,
    builtIn: '1000',
    frozen: false,
    help: 'wait before the first retry; each further wait is twice as long, up to a minute, plus a random part of up to a quarter',
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
    help: 'how long a model may take to start its reply; raise it for slow local models',
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
    help: 'how long a model may pause within a reply',
  }),
];
