import type { ServerAnswer, ServerQuestion } from './server-question.js';

/** Asks the user one question of a server after the other. */

/** Resolves with null if the question can't be asked here. */
export type AskUserOrNot = (question: ServerQuestion, signal: AbortSignal) => Promise<ServerAnswer | null>;

export type ServerAsker = {
  ask: AskUserOrNot;
  /** Who asks the user from now on. */
  use(ask: AskUserOrNot): void;
};

export const createServerAsker = (): ServerAsker => {
  let current: AskUserOrNot | null = null;
  let before: Promise<unknown> = Promise.resolve();
  return {
    ask(question, signal) {
      const asked = before.then(() => {
        if (signal.aborted) return { action: 'cancel' } as const;
        return current === null ? null : current(question, signal);
      });
      before = asked.catch(() => undefined); // whoever has asked gets the fault
      return asked;
    },
    use(ask) {
      current = ask;
    },
  };
};
