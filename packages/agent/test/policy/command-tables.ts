import type { ParsedCommand, ShellFacts } from '../../src/policy/judged-call.js';
import type { Words } from '../../src/policy/programs/program.js';

/**
 * The commands of a table that get another answer. An entry is an answer and its commands:
 * `write => add a | commit`. Behind `;` a word may stand once for several: `stash: | push` for
 * `stash` and `stash push`. `~` is a blank in a word; one with `$` is known only when it runs.
 */
export const wrongIn = (
  table: string,
  answerTo: (form: string, answer: string) => string,
): readonly string[] =>
  table
    .split(/\n {2}(?! )/)
    .slice(1)
    .flatMap((entry) => {
      const [answer = '', groups = ''] = entry.replaceAll('\n   ', '').split(/ => ?(.*)/s);
      return groups.split(/ ; ?/).flatMap((group) => {
        const [, first = '', forms = ''] = /^(?:([a-z-]+):)?(.*)$/s.exec(group) ?? [];
        return forms.split(' |').flatMap((text) => {
          const form = `${first}${first === '' ? text.trimStart() : text}`;
          const got = answerTo(form, answer);
          return got === answer ? [] : [`${form}: ${got}, not ${answer}`];
        });
      });
    });

export const wordsOf = (text: string): Words =>
  text.split(' ').map((word) => (word.startsWith('$') ? null : word.replaceAll('~', ' ')));
export const gitWords = (form: string): Words => wordsOf(`git ${form}`);

export const commandOf = (words: Words): ParsedCommand => ({
  words,
  assignments: [],
  writes: [],
  program: `/usr/bin/${words[0]}`,
});
export const factsOf = (...commands: readonly Words[]): ShellFacts => ({
  commands: commands.map(commandOf),
  unclear: null,
});
