/** What must not outlive this program: done when it exits by itself, unless it was called off before. */

const duties = new Set<() => void>();

const doAll = (): void => {
  for (const duty of duties) duty();
};

/** Registers a duty, which may not wait for anything; the returned function calls it off. */
export const atExit = (duty: () => void): (() => void) => {
  if (duties.size === 0) process.once('exit', doAll);
  duties.add(duty);
  return () => {
    duties.delete(duty);
    if (duties.size === 0) process.off('exit', doAll);
  };
};
