/** Characters that people, grammars and bash may read differently. */

const ODD: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/[^\P{Cc}\t\n]/u, 'a control character'],
  [/[^\P{Zs} ]/u, 'a space that bash treats as a letter'],
  [/[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/u, 'an invisible character'],
  [/\p{Surrogate}/u, 'half of a character'],
];

/** Emoji may contain invisible characters that join and colour them. Those are allowed. */
const EMOJI = /\p{Extended_Pictographic}[\u{fe0f}\u{200d}]*/gu;

const codeOf = (char: string): string =>
  `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Describes the first such character; null if there is none. */
export const oddCharacter = (text: string): string | null => {
  const plain = text.replace(EMOJI, '');
  for (const [pattern, name] of ODD) {
    const found = pattern.exec(plain);
    if (found !== null) return `${name} (${codeOf(found[0])})`;
  }
  return null;
};
