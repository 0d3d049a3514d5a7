/** Clean-up duties for the exit of this program. */

const duties = new Set<() => void>();

const doAll = (): void => {
  for (const duty of duties) duty();
};

/** Registers a synchronous duty; the returned function cancels it. */
export const atExit = (duty: () => void): (() => void) => {
  if (duties.size === 0) process.once('exit', doAll);
  duties.add(duty);
  return () => {
    duties.delete(duty);
    if (duties.size === 0) process.off('exit', doAll);
  };
};
