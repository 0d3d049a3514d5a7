/** The clocks of the process, which production code may ask besides the one it is given. */
export type ProcessClocks = { wallNow(): number; steadyNow(): number };

let clocks: ProcessClocks | null = null;

/** From now on the clocks of the process are these; null: the real ones. */
export const useClocks = (given: ProcessClocks | null): void => {
  clocks = given;
};

/** Replaces the clocks of the process. Returns a function that puts them back. */
export const simulateClocks = (): (() => void) => {
  const { now } = Date;
  const steady = performance.now.bind(performance);
  Date.now = () => clocks?.wallNow() ?? now();
  performance.now = () => clocks?.steadyNow() ?? steady();
  return () => {
    Date.now = now;
    Reflect.deleteProperty(performance, 'now');
  };
};
