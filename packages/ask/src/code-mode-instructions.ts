/**
 * System instructions for models in code mode, in which a model answers by writing programs
 * (cells). A cell may call models itself: a sub-call, plain or (if `recursive`) a run with cells
 * of its own.
 */

type CodeModeFacts = {
  readonly language: 'javascript' | 'python';
  /** `yes`: a sub-call can run in a separate environment. */
  readonly recursive: 'yes' | 'no';
  /** Time limit of a program, without its sub-calls. */
  readonly cellDeadlineMs: number;
  /** Maximum characters of output that the model gets back. */
  readonly outputMax: number;
  /** Models that a call can name; the instructions list them if there are several. */
  readonly models: readonly string[];
  /** `on`: the model answers with FINAL in a reply; `off`: with the answer record. */
  readonly finalForms: 'on' | 'off';
};

/** What the languages say differently. */
type Words = {
  readonly name: string;
  readonly look: string;
  readonly named: string;
  readonly submit: string;
};

const words: Readonly<Record<CodeModeFacts['language'], Words>> = {
  javascript: {
    name: 'JavaScript',
    look: 'print(context.length, context.slice(0, 500))',
    named: 'an object: names["a.txt"] is a text, Object.keys(names) are all names',
    submit: 'answer.content = result; answer.ready = true',
  },
  python: {
    name: 'Python',
    look: 'print(len(context), context[:500])',
    named: 'a dict: names["a.txt"] is a text, list(names) are all names',
    submit: 'answer["content"] = result; answer["ready"] = True',
  },
};

const fenced = (code: string): string => `\`\`\`repl\n${code}\n\`\`\``;

const recursion: Readonly<Record<CodeModeFacts['recursive'], string>> = {
  yes:
    '- rlm_query(prompt), rlm_query_batched(prompts): as above, but each prompt goes to one ' +
    'like you, with an environment whose `context` is that prompt. For parts that are too ' +
    'large or too hard for one reading; slower and dearer.',
  no: '- rlm_query and rlm_query_batched do the same here.',
};

const modelWords = ({ models }: CodeModeFacts): string =>
  models.length < 2 ? '' : `\n- All of them take a model as last argument: ${models.join(', ')}.`;

type AnswerWords = { readonly how: string; readonly where: string; readonly example: string };

const recordAnswer = (submit: string): AnswerWords => ({
  how: '- answer: your answer. Set its content, then set ready; the run ends with that cell.',
  where: 'Submit it in the next program:',
  example: fenced(submit),
});

const finalAnswer: AnswerWords = {
  how:
    '- Your answer is no variable: FINAL(text) in your reply, at the start of a line and ' +
    'outside of a fence, is the answer; FINAL_VAR(name) answers with a variable. The run ends ' +
    'with that reply, after its program.',
  where: 'Give it in the next reply:',
  example: 'FINAL_VAR(result)',
};

/** Instructions for the root run, and for each child run with an environment. At most 4 kB. */
export const codeModeInstructions = (facts: CodeModeFacts): string => {
  const { name, look, named, submit } = words[facts.language];
  const answerWords = facts.finalForms === 'on' ? finalAnswer : recordAnswer(submit);
  return `You answer a question about material that is too large to be read at once. It lies in the variable \`context\` of a ${name} environment; you never see it whole. You direct the work, you do not do it yourself: programs search and count, other models read, you decide what comes next.

# The environment
Each reply has exactly one program, in a fence tagged repl:
${fenced(look)}
It runs, and the next message says what it printed and which variables there are. Only what you print comes back, at most ${facts.outputMax} characters of it; the variable last_output holds all of the last output. Variables last from program to program, also when one fails. A program has ${facts.cellDeadlineMs / 1_000} s of its own; the time of calls to models does not count. There are no files, no network and no packages to install.
- context: the text, or a list of texts if there are several inputs.
- names: the inputs by name, ${named}. Names of files are paths.
- llm_query(prompt): another model's reply, as text. It knows the prompt and nothing else. Call it plainly, without await.
- llm_query_batched(prompts): the replies to a list of prompts, asked at the same time, in the same order.
${recursion[facts.recursive]}${modelWords(facts)}
- A call that fails returns a text that begins with "Error: ". Look for it before you use a reply.
- show_vars(): the variables you have made.
${answerWords.how}

# How to work
1. Look before anything else: size, beginning, end, samples from the middle, the shape of a line. Don't answer before you have looked.
2. Then plan the next iterations in a sentence or two.
3. Where plain search, parsing, counting or sorting settles the matter, do that: it is exact, and free.
4. Where meaning must be judged (classify, compare, extract, summarise, verify), let other models read. Keep to two limits: about 100,000 characters in a prompt, and about 20 prompts in a batch. A few full prompts are better than many small ones. Give each a clean piece, say what to do with it, and ask for a short answer in a fixed form, one line for each item, so that a program can read it. Cut pieces where lines or records end, and let programs put the results together.
5. Keep your own window small: print counts, samples and results, not material.
6. Check: every piece answered, no errors among the replies, numbers that add up.
7. Print the candidate for the answer and look at it. ${answerWords.where}
${answerWords.example}
If iterations run out, submit the best that you have.
`;
};

/** Instructions for a plain sub-call: a model that gets one prompt and no environment. */
export const subcallInstructions =
  'A program asks you, and a program reads your reply. Do what the prompt says, with what is ' +
  'in it, and reply with just what it asks for, in the form it asks for: no greeting, no ' +
  'explanation, no questions. If the prompt lacks what is needed, say so in one line.\n';
