/**
 * Checks the syntax of a file that a tool has written, so that the model hears of a slip early.
 *
 * 1. The text is parsed, never run: data and JavaScript by libraries here, Python by the user's own
 *    Python in the sandbox.
 * 2. Nothing is said of a file that is fine, that had the same fault before the session changed it
 *    (perhaps it is a dialect), of a template in YAML, or of what can't be checked: a call never
 *    fails by it.
 *
 * JavaScript is in script-syntax.ts.
 */

import type { SessionSandbox } from '../command/session-sandbox.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { findProgram } from '../platform/find-program.js';
import { runProgram } from '../platform/run-program.js';
import { cut } from '../platform/text.js';
import type { ToolContext, ToolOutcome } from '../ports/tool.js';
import { showPath } from './define-tool.js';
import { decodeFile, editableText, loadFile } from './files.js';

/** What is wrong with a text, in one line; null if nothing is. Rejects if that can't be said. */
type Check = (text: string, file: string) => Promise<string | null>;

/** Larger files are not checked: most of them are generated, and each check takes time. */
const CHARACTERS_MAX = 500_000;
const FINDING_CHARACTERS_MAX = 300;

/** An error's message in one line. */
const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim();

/** Loaded with the first script: the parser is large. */
const scripts = () => import('./script-syntax.js');

// ---- Data ----

/** Files with comments and commas at ends, whatever their name says. */
const LOOSE_JSON =
  /(?:^|\/)(?:\.(?:vscode\/|devcontainer\/|(?:eslint|babel|swc)rc)|[jt]sconfig|devcontainer|(?:turbo|deno)\.)|\.json[c5]$/i;

const checkJson: Check = async (text, file) => {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    if (LOOSE_JSON.test(file)) return (await scripts()).checkExpression(text);
    // the message quotes the place or has an offset
    const message = messageOf(error);
    const offset = /at position (\d+)/.exec(message)?.[1];
    if (offset === undefined) return message;
    const line = text.slice(0, Number(offset)).split('\n').length;
    return `${message.replace(/ in JSON at position.*/, '')}, in line ${line}`;
  }
};

const checkYaml: Check = async (text) => {
  if (/(^|[^$])\{[{%]/m.test(text)) return null; // a template of Helm or Jinja
  const { DEFAULT_SCHEMA, loadAll, Type, YAMLException } = await import('js-yaml');
  const kinds = ['scalar', 'sequence', 'mapping'] as const;
  // multi: a tag with this beginning, so that no tag is unknown: `!Ref`, `!!python/name:…`
  const anyTag = kinds.map((kind) => new Type('', { kind, multi: true }));
  try {
    loadAll(text, () => undefined, { schema: DEFAULT_SCHEMA.extend(anyTag) });
    return null;
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    return `${error.reason}, in line ${(error.mark?.line ?? 0) + 1}`;
  }
};

const checkToml: Check = async (text) => {
  const { parse, TomlError } = await import('smol-toml');
  try {
    parse(text);
    return null;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '');
    return `${reason}, in line ${error.line}`;
  }
};

// ---- Python ----

/** Prints the first fault of the text on its standard input. */
const PYTHON_PROGRAM = [
  'import ast, sys',
  'try: ast.parse(sys.stdin.buffer.read())',
  'except SyntaxError as e:',
  '  v = sys.version_info',
  '  print(f"{e.msg}, in line {e.lineno} (Python {v[0]}.{v[1]})")',
].join('\n');
const PYTHON_BYTES_MAX = 4_096;

export type SyntaxCheckOptions = {
  readonly sandbox: SessionSandbox;
  readonly environment: ProcessEnvironment;
  /** A slower program says nothing; in ms. Default: 300. */
  readonly deadlineMs?: number;
};

type CheckContext = Pick<ToolContext, 'workspace' | 'sandbox' | 'signal'>;

/** A check by the Python of the machine, which sees the text alone (`-I`). */
const pythonCheck =
  ({ sandbox, environment, deadlineMs = 300 }: SyntaxCheckOptions, context: CheckContext): Check =>
  async (text) => {
    const { workspace, signal } = context;
    const python = findProgram('python3', { environment, workspace });
    if (python === null) return null;
    const commands = await sandbox.of(workspace);
    const prepared = await commands.prepare({
      level: context.sandbox === 'off' ? 'off' : 'read-only',
      environment: {},
      canBeGuarded: true,
      program: python,
      words: ['-I', '-c', PYTHON_PROGRAM],
    });
    const running = runProgram({
      ...prepared,
      title: 'python3',
      input: text,
      bytesMax: PYTHON_BYTES_MAX,
      atMax: 'cut',
      deadlineMs,
      signal,
    });
    prepared.started(); // closes our copies of its `descriptors`, which the program has inherited
    try {
      const { output } = await running;
      return output.toString('utf8').trim() || null;
    } finally {
      await prepared.finish();
    }
  };

// ---- The finding in the result ----

const checkFor = (
  file: string,
  options: SyntaxCheckOptions,
  context: CheckContext,
): Check | null => {
  if (/\.(json[5c]?|webmanifest)$/i.test(file)) return checkJson;
  if (/\.ya?ml$/i.test(file)) return checkYaml;
  if (/\.toml$/i.test(file)) return checkToml;
  if (/\.([cm]?[jt]s|[jt]sx)$/i.test(file))
    return async (text) => (await scripts()).checkScript(text, file);
  return /\.pyi?$/i.test(file) ? pythonCheck(options, context) : null;
};

/** The words of a finding without its place. */
const wordsOf = (finding: string): string => finding.replace(/\d+/g, '0');

/**
 * What is wrong with a file that the session wrote; null if nothing is, or if it was as wrong
 * before the session changed it.
 */
const findFault = async (
  real: string,
  options: SyntaxCheckOptions,
  context: ToolContext,
): Promise<string | null> => {
  const check = checkFor(real, options, context);
  const write = context.files.ownWrite?.(real);
  if (check === null || write === undefined) return null;
  const { after, text: textBefore } = write;
  const loaded = await loadFile(real);
  if (loaded.kind !== 'file' || loaded.sha256 !== after) return null;
  const text = editableText(decodeFile(loaded.bytes));
  if (text === undefined || text.length > CHARACTERS_MAX) return null;
  const finding = await check(text, real);
  if (finding === null || textBefore === undefined) return finding;
  const earlier = await check(textBefore, real);
  return earlier !== null && wordsOf(earlier) === wordsOf(finding) ? null : finding;
};

/** The outcome of a call that wrote a file, with what is wrong with its syntax. It has one path. */
export const noteSyntax = async (
  outcome: ToolOutcome,
  options: SyntaxCheckOptions,
  context: ToolContext,
): Promise<ToolOutcome> => {
  const [real] = context.paths;
  if (outcome.status !== 'ok' || real === undefined) return outcome;
  // a check that can't be made says nothing: the file is written
  const finding = await findFault(real, options, context).catch(() => null);
  if (finding === null) return outcome;
  const shown = showPath(real, context.workspace);
  const line = `[${shown} has a syntax error: ${cut(finding, FINDING_CHARACTERS_MAX)}]`;
  return { ...outcome, text: `${outcome.text}\n${line}` };
};
