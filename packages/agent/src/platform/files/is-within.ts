import path from 'node:path';

/** Whether a path is `outer` or lies below it. Pass absolute real paths, since only their text is compared. */
export const isWithin = (inner: string, outer: string): boolean => {
  const relative = path.relative(outer, inner);
  return (
    relative === '' ||
    (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
  );
};
