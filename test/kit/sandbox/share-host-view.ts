import { type HostView, viewHost } from '../../../packages/agent/src/command/sandbox/host.js';

/** One view of the machine for many sandboxes: to inspect it for each takes longer than most commands. */
export const shareHostView = (): (() => HostView) => {
  let view: HostView | null = null;
  return () => {
    view ??= viewHost();
    return view;
  };
};
