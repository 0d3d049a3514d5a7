/**
 * Programs of the scripted root model, one per reply: inspect, group, ask about distinct items,
 * combine, submit. They do the tasks of tasks.ts. A program binds names that the next one uses.
 */

import { classNames, type TaskName } from './tasks.js';

export type Language = 'javascript' | 'python';

const NEEDLE_ASKED = 'Which number does one of these lines give for the harbour of';
const CLASSIFY = `Classify each question by what it asks for: ${classNames.join(', ')}. Reply with one line for each: its number and the class.`;

/** The programs of one language, as texts. */
type Programs = {
  readonly find: (harbour: string) => readonly string[];
  /** Binds `classes`, the class of each distinct question. */
  readonly classify: readonly string[];
  /** Binds `candidate`. */
  readonly aggregate: string;
  readonly pairs: string;
  readonly look: string;
  readonly submit: string;
};

const javascript: Programs = {
  look: 'print(context.length, context.slice(0, 200), context.slice(-100));',
  find: (harbour) => [
    'const found = context.match(/^.*secret number.*$/gm);\nprint(found.length);',
    `const candidate = llm_query("${NEEDLE_ASKED} ${harbour}?\\n" + found.join("\\n"));\nprint(candidate);`,
  ],
  classify: [
    `const entries = context.trimEnd().split("\\n").map((line) => line.split(" | "));
const distinct = [...new Set(entries.map(([, , text]) => text))].sort();
print(entries.length, distinct.length, distinct.slice(0, 3));`,
    `const prompts = [];
for (let at = 0; at < distinct.length; at += 16)
  prompts.push("${CLASSIFY}\\n" + distinct.slice(at, at + 16).map((text, place) => (place + 1) + ". " + text).join("\\n"));
const classes = new Map();
llm_query_batched(prompts).forEach((reply, part) => {
  for (const line of reply.split("\\n")) {
    const [number, name] = line.split(" ");
    classes.set(distinct[part * 16 + Number(number) - 1], name);
  }
});
print(prompts.length, distinct.filter((text) => !classes.has(text)).length);`,
  ],
  aggregate: `const counts = new Map();
for (const [, , text] of entries) counts.set(classes.get(text), (counts.get(classes.get(text)) ?? 0) + 1);
const candidate = ${JSON.stringify(classNames)}.map((name) => name + ": " + (counts.get(name) ?? 0)).join(", ");
print(candidate);`,
  pairs: `const numbers = new Map();
const groups = new Map();
for (const [day, user, text] of entries) {
  if (!numbers.has(user)) numbers.set(user, numbers.size);
  const key = day + classes.get(text);
  if (!groups.has(key)) groups.set(key, new Set());
  groups.get(key).add(numbers.get(user));
}
const found = new Set();
for (const group of groups.values())
  for (const one of group) for (const other of group) if (one < other) found.add(one * numbers.size + other);
const candidate = found.size;
print(candidate);`,
  submit: 'answer.content = String(candidate);\nanswer.ready = true;',
};

const python: Programs = {
  look: 'print(len(context), context[:200], context[-100:])',
  find: (harbour) => [
    'import re\nfound = re.findall(r"^.*secret number.*$", context, re.M)\nprint(len(found))',
    `candidate = llm_query("${NEEDLE_ASKED} ${harbour}?\\n" + "\\n".join(found))\nprint(candidate)`,
  ],
  classify: [
    `entries = [line.split(" | ") for line in context.rstrip().split("\\n")]
distinct = sorted({text for _, _, text in entries})
print(len(entries), len(distinct), distinct[:3])`,
    `prompts = ["${CLASSIFY}\\n" + "\\n".join(f"{place + 1}. {text}" for place, text in enumerate(distinct[at:at + 16]))
  for at in range(0, len(distinct), 16)]
classes = {}
for part, reply in enumerate(llm_query_batched(prompts)):
  for line in reply.split("\\n"):
    number, name = line.split(" ")
    classes[distinct[part * 16 + int(number) - 1]] = name
print(len(prompts), sum(text not in classes for text in distinct))`,
  ],
  aggregate: `from collections import Counter
counts = Counter(classes[text] for _, _, text in entries)
candidate = ", ".join(f"{name}: {counts[name]}" for name in ${JSON.stringify(classNames)})
print(candidate)`,
  pairs: `numbers, groups = {}, {}
for day, user, text in entries:
  number = numbers.setdefault(user, len(numbers))
  groups.setdefault((day, classes[text]), set()).add(number)
found = set()
for group in groups.values():
  found.update((one, other) for one in group for other in group if one < other)
candidate = len(found)
print(candidate)`,
  submit: 'answer["content"] = str(candidate)\nanswer["ready"] = True',
};

const languages: Readonly<Record<Language, Programs>> = { javascript, python };

/** The programs that answer a task, in order. `harbour`: the one that is asked about, of `find`. */
export const programsFor = (
  task: TaskName,
  language: Language,
  harbour: string,
): readonly string[] => {
  const { look, find, classify, submit, ...last } = languages[language];
  const middle = task === 'find' ? find(harbour) : [...classify, last[task]];
  return [look, ...middle, submit];
};
