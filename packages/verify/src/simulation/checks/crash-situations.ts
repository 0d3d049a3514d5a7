import type { Life } from '../process-life.js';

/** What was going on when a life crashed. */
const meetCalls = ({ world }: Life): void => {
  for (const { isStarted, isCompleted, effects, approval } of world.calls.values()) {
    if (approval === 'asked') world.meet('crash while an approval is open');
    if (!isStarted || isCompleted) continue;
    world.meet(effects === 0 ? 'crash between intent and effect' : 'crash between effect and result');
  }
};

export const meetCrash = (life: Life): void => {
  const { world, state, doing } = life;
  if (doing === 'creating') world.meet('crash while the session is created');
  if (doing === 'opening') world.meet('crash while the session is opened');
  meetCalls(life);
  switch (state?.name) {
    case 'CallingLlm':
      world.meet('crash while the model is called');
      break;
    case 'Error':
      world.meet('crash while waiting to retry');
      break;
    case 'Compacting':
      world.meet('crash while compacting');
      break;
    case 'PostToolsHook':
      world.meet(state.phase === 'AutoCommitting' ? 'crash while committing' : 'crash while a hook runs');
      break;
    case 'WaitingForUserInput':
      world.meet('crash at rest');
      break;
    default:
      break;
  }
};
