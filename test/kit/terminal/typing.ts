import type { Key } from '../../../packages/terminal/src/keys.js';

/** Keys by short names: `C-a`, `A-b`, `S-enter`, `left`; anything in quotes is typed. */
export const keyOf = (short: string): Key => {
  const typed = /^'(.*)'$/s.exec(short);
  const modifiers = {
    control: typed === null && short.includes('C-'),
    alt: typed === null && short.includes('A-'),
    shift: typed === null && short.includes('S-'),
  };
  return typed === null
    ? { name: short.replace(/^(?:[CAS]-)+/, ''), text: '', ...modifiers }
    : { name: '', text: typed[1] ?? '', ...modifiers };
};
