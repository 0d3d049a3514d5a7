import type { ProcessEnvironment } from '../base/process-environment-type.js';
import { searchPrograms } from './find-program.js';
import { startProgram } from './start-program.js';

/**
 * Opens an address in the user's browser, where there is a screen. A convenience: the address is also printed, so faults
 * are ignored.
 */
export const openBrowser = (address: string, environment: ProcessEnvironment, workspace: string): void => {
  const isMac = process.platform === 'darwin';
  if (!isMac && !environment.DISPLAY && !environment.WAYLAND_DISPLAY) return;
  const opener = searchPrograms({ environment, workspace }).find(isMac ? 'open' : 'xdg-open');
  if (opener === null) return;
  const child = startProgram(opener, [address], {
    cwd: '/',
    env: { ...environment },
    detached: true,
    stdio: 'ignore',
  });
  child.once('error', () => undefined); // the address stands in the terminal
  child.unref();
};
