/**
 * For tests of how much work something is: a busy machine gives a process little of its time, so what passes on the clock
 * says nothing. Gives the CPU time of this process since the call, in ms.
 */
export const watchCpu = (): (() => number) => {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
};
