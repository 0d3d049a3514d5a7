/**
 * Steps per second of the seven-state chart, each candidate in a process of its own, in
 * alternation.
 */

import { deepStrictEqual } from 'node:assert';
import { type Ending, type PlayTurn, turnOf } from './chart/chart.js';
import { median } from './figures.js';
import { inOwnProcess } from './own-process.js';

const candidates = ['switch', 'kernel', 'xstate actor', 'xstate transition()'] as const;
type Candidate = (typeof candidates)[number];

const load = async (candidate: Candidate): Promise<PlayTurn> => {
  switch (candidate) {
    case 'switch':
      return (await import('./chart/switch.js')).playTurn;
    case 'kernel':
      return (await import('./chart/kernel.js')).playTurn;
    case 'xstate actor':
      return (await import('./chart/xstate.js')).playActor;
    case 'xstate transition()':
      return (await import('./chart/xstate.js')).playTransition;
    default:
      return candidate satisfies never;
  }
};

/** Runs in the child: CPU time of the process, so that other work on the machine counts less. */
const measure = async (
  candidate: Candidate,
): Promise<{ readonly perSecond: number; readonly ending: Ending }> => {
  const playTurn = await load(candidate);
  const events = turnOf();
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
  const playFor = (budgetMs: number): number => {
    const start = cpuMs();
    let turns = 0;
    while (cpuMs() - start < budgetMs) {
      for (let index = 0; index < 20; index++) playTurn(events);
      turns += 20;
    }
    return (turns * events.length) / ((cpuMs() - start) / 1_000);
  };
  playFor(400);
  return { perSecond: playFor(1_200), ending: playTurn(events) };
};

/** The table of candidates: steps per second (median of `rounds`) and the ratio to our kernel. */
export const benchSteps = async (rounds = 5): Promise<string> => {
  const results = new Map<Candidate, { readonly perSecond: number; readonly ending: Ending }[]>();
  for (let round = 0; round < rounds; round++) {
    for (const candidate of candidates) {
      const result = await inOwnProcess<{ perSecond: number; ending: Ending }>(
        'bench/steps.ts',
        candidate,
      );
      results.set(candidate, [...(results.get(candidate) ?? []), result]);
    }
  }
  const endings = [...results.values()].flat().map((result) => result.ending);
  for (const ending of endings)
    deepStrictEqual(ending, endings[0], 'the candidates do not end alike');
  const speed = (candidate: Candidate) =>
    median((results.get(candidate) ?? []).map((result) => result.perSecond));
  const own = speed('kernel');
  const rows = candidates.map((candidate) => {
    const perSecond = speed(candidate);
    return `| ${candidate} | ${(perSecond / 1e6).toFixed(3)} | ${(own / perSecond).toFixed(2)} |`;
  });
  const [ending] = endings;
  return [
    '| candidate | million steps a CPU second | our kernel is … times as fast |',
    '|---|--:|--:|',
    ...rows,
    '',
    `All end alike: ${ending?.state}, ${ending?.messages.length} messages, ${ending?.actions} actions. Median of ${rounds} runs.`,
  ].join('\n');
};

const [, , own, candidate] = process.argv;
if (own === '--own-process') {
  const known = candidates.find((name) => name === candidate);
  if (known === undefined) throw new Error(`unknown candidate: ${candidate}`);
  process.stdout.write(JSON.stringify(await measure(known)));
}
