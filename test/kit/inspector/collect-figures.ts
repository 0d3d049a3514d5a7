import type { Header } from '../../../packages/agent/src/ports/journal.js';
import {
  FigureCollector,
  type FigureStep,
} from '../../../packages/inspector/src/figures/collect-figures.js';
import type { SessionFigures } from '../../../packages/inspector/src/figures/session-figures.js';

/** The figures of the steps of a journal, or of some of its first ones. */
export const collectFigures = (
  header: Pick<Header, 'parent'>,
  steps: Iterable<FigureStep>,
): SessionFigures => {
  const collector = new FigureCollector(header);
  for (const step of steps) collector.see(step);
  return collector.figures();
};
