import { aliveIn, CHAIN, CONDITION, LIST, LOGIC, type Survivor } from './survivor.js';

/**
 * Mutants that no test catches, each with its reason (survivor.ts): in the samples of the journal,
 * the tools, the runtime and the workspace.
 */
export const samples: readonly Survivor[] = [
  ...aliveIn('packages/agent/src/journal/file-store.ts', [
    [
      'Equivalent: to close a file that is closed does nothing.',
      ['BooleanLiteral', 'false', 'true'],
    ],
  ]),
  ...aliveIn('packages/agent/src/journal/codec.ts', [
    [
      'Only a matter of speed: no batch is valid JSON then, so each is decoded line by line.',
      [
        'ArrowFunction',
        '(check: string | null): number => (check === null ? 0 : CHECK.length + CHECK_LENGTH + 1)',
        '() => undefined',
      ],
    ],
  ]),
  ...aliveIn('packages/agent/src/journal/reader.ts', [
    [
      'Equivalent: the line gets the good lines before it in front, which hold no zero byte; a line without an end stands alone.',
      [LOGIC, 'ends[index - 1] ?? start - 1', 'ends[index - 1] && start - 1'],
    ],
  ]),
  ...aliveIn('packages/agent/src/journal/transfer.ts', [
    ['Equivalent: no blob has this name.', [LIST, '[]', '["Stryker was here"]']],
  ]),
  ...aliveIn('packages/agent/src/journal/writer.ts', [
    [
      'Only a matter of speed: how often a touched file is read again.',
      ['AssignmentOperator', 'reads += 1', 'reads -= 1'],
    ],
  ]),
  ...aliveIn('packages/agent/src/tools/file-search.ts', [
    [
      'Equivalent: picomatch escapes these brackets itself. 13,000 random globs gave the same answers.',
      [LOGIC, "pair === '[' || pair === ']'", "pair === '[' && pair === ']'"],
    ],
  ]),
  ...aliveIn('packages/agent/src/tools/file-search.ts', [
    [
      'Equivalent: a signal aborts once, and the listener is removed at the end.',
      ['BooleanLiteral', 'true', 'false'],
    ],
  ]),
  ...aliveIn('packages/agent/src/tools/edit/lines.ts', [
    ['Equivalent: no blank stands before the beginning.', [CONDITION, 'end > 0', 'true']],
  ]),
  ...aliveIn('packages/agent/src/tools/html-to-markdown.ts', [
    [
      'Equivalent: the group takes part in every match.',
      [
        CHAIN,
        String.raw`/<title\b[^>]*>([^<]*)<\/title/i.exec(html)?.[1]?.trim`,
        String.raw`/<title\b[^>]*>([^<]*)<\/title/i.exec(html)?.[1].trim`,
      ],
    ],
  ]),
  ...aliveIn('packages/agent/src/session/compaction.ts', [
    [
      'Equivalent: no conversation begins with a reply, and an empty one fits.',
      [
        LOGIC,
        "first === undefined || first.role === 'assistant'",
        "first === undefined && first.role === 'assistant'",
      ],
    ],
  ]),
  ...aliveIn('packages/agent/src/session/compaction.ts', [
    ['Equivalent: only texts have an origin.', [CONDITION, "part.type === 'text'", 'true']],
  ]),
  ...aliveIn('packages/agent/src/session/model-call.ts', [
    [
      'Only a matter of memory: promises that are settled stay in the set.',
      ['ArrowFunction', '() => void this.#held.delete(held)', '() => undefined'],
    ],
  ]),
  ...aliveIn('packages/agent/src/session/after-tool-hooks.ts', [
    [
      'Equivalent: without a usage to book the request throws, and its caller takes that for no text, too.',
      [CONDITION, "ending.type === 'aborted'", 'false'],
    ],
  ]),
  ...aliveIn('packages/agent/src/workspace/auto-commit.ts', [
    [
      'Only the words `, not signed`, and only for a value that Git refuses.',
      ['Regex', '/^(true|yes|on|1)$/i', '/^(true|yes|on|1)/i'],
    ],
  ]),
];
