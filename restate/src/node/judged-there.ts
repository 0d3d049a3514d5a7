import type { Equipment, Tool } from 'pawl/engine';
import type { SessionStore } from '../session/session-store.js';

/** Tools whose inputs are judged where the workspace is: paths mean something only there. */
export function judgedThere(
  tools: Equipment['tools'],
  sessionId: string,
  node: string,
  store: SessionStore,
): Equipment['tools'] {
  const judged = [...tools].map(([name, tool]): [string, Tool] => {
    const judge: Tool['judge'] = (input, workspace) =>
      store.call({
        service: `Tools-${node}`,
        handler: 'judge',
        parameter: { sessionId, tool: name, input, workspace },
      });
    return [name, { ...tool, judge }];
  });
  return new Map(judged);
}
