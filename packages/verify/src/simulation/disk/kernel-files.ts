/** What the kernel tells of the simulated computer; the lock of a journal reads it. */
let boots = 1;
let started = 0;

/** The process that asks from now on; tells it from earlier ones with its pid. */
export const runProcess = (life: number): void => {
  started = life;
};

/** A new simulation begins. */
export const startComputer = (): void => {
  boots = 1;
};

/** After a power cut the computer starts again. */
export const bootAgain = (): void => {
  boots += 1;
};

/** Undefined for what is not simulated. */
export const kernelFile = (operation: string, path: unknown): string | undefined => {
  if (path === '/etc/machine-id') return 'simulated';
  if (typeof path !== 'string' || !path.startsWith('/proc/')) return undefined;
  if (operation === 'readFile' && path.endsWith('/boot_id')) return `boot-${boots}`;
  if (operation === 'readFile' && path.endsWith('/stat')) return `1 (node) ${'0 '.repeat(19)}${started}`;
  if (operation === 'readlink' && path.includes('/ns/'))
    return `${path.slice(path.lastIndexOf('/') + 1)}:[1]`;
  return undefined;
};
