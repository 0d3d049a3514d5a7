import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** All that is in the workspace but its `.git`: kinds, modes, targets and contents. */
export const tree = (folder: string): string => {
  const lines: string[] = [];
  const visit = (place: Buffer, name: string): void => {
    const status = lstatSync(place);
    const mode = (status.mode & 0o7777).toString(8);
    if (status.isSymbolicLink()) lines.push(`${name} -> ${readlinkSync(place, 'latin1')}`);
    else if (status.isDirectory()) {
      const count = lines.length;
      for (const one of readdirSync(place, { encoding: 'buffer' }))
        if (name !== '' || one.toString() !== '.git')
          visit(Buffer.concat([place, Buffer.from('/'), one]), `${name}/${one.toString('latin1')}`);
      // A folder without a file in it or below it is nobody's work.
      if (name !== '' && lines.length > count) lines.push(`${name}/ ${mode}`);
    } else
      lines.push(
        `${name} ${mode} ${createHash('sha256').update(readFileSync(place)).digest('hex')}`,
      );
  };
  visit(Buffer.from(folder), '');
  return lines.sort().join('\n');
};
