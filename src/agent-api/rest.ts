import type { State } from '../agent/state.js';
import type { LocalRuntime } from '../runtime/runtime.js';

/** Nothing happens in such a state until the user acts. */
const isIdle = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';

/** Resolves at rest. The watcher is set before the state is looked at, so that no rest is missed. */
export const waitForRest = async (
  runtime: LocalRuntime,
  id: string,
  ended: Promise<void>,
): Promise<State> => {
  let unwatch = (): void => undefined;
  const resting = new Promise<State>((resolve) => {
    unwatch = runtime.watch(id, ({ state }) => {
      if (isIdle(state)) resolve(state);
    });
  });
  const { state } = await runtime.state(id);
  const over = ended.then(() => Promise.reject(new Error(`session ${id} has ended`)));
  return Promise.race([isIdle(state) ? state : resting, over]).finally(unwatch);
};
