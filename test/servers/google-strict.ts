import { demandPicture, demandWeight } from './pictures.js';
import {
  demand,
  demandFields,
  demandList,
  demandObject,
  demandText,
  faultOf,
  type Loose,
} from './strict.js';

/**
 * What Google's generative language API rejects, as it does for its third generation of models, and a little more.
 *
 * 1. As many function responses as calls, in the turn right behind them.
 * 2. The first call of every reply since the user last said something has the signature that this model gave it, or
 *    the one that stands for none.
 * 3. No field that the wire does not know.
 * 4. Pictures are the user's, or stand in a function response; no request has too many bytes.
 */

const BODY = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig'];
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** It takes no GIF. */
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/webp', 'image/heic', 'image/heif'];
const REQUEST_BYTES_MAX = 20 * 1024 * 1024;

/** What the server gave as this model. */
export type Signatures = ReadonlySet<string>;

const checkInline = (part: Loose, at: string): void => {
  demandFields(part, ['inlineData'], at);
  demandObject(part.inlineData, `${at}.inlineData`);
  demandFields(part.inlineData, ['mimeType', 'data'], `${at}.inlineData`);
  demandPicture(part.inlineData.mimeType, part.inlineData.data, IMAGE_TYPES, `${at}.inlineData`);
};

const checkResponse = (response: unknown, at: string): void => {
  demandObject(response, at);
  demandFields(response, ['id', 'name', 'response', 'parts'], at);
  demandObject(response.response, `${at}.response`);
  if (response.parts === undefined) return;
  demandList(response.parts, `${at}.parts`);
  for (const [index, part] of response.parts.entries()) checkInline(part, `${at}.parts.${index}`);
};

const checkPart = (part: Loose, role: unknown, signatures: Signatures, at: string): void => {
  const { thoughtSignature: signature } = part;
  demand(
    signature === undefined || signature === NO_SIGNATURE || signatures.has(String(signature)),
    `${at}.thoughtSignature: Thought signature is not valid.`,
  );
  demand(
    signature === undefined || role === 'model',
    `${at}.thoughtSignature: the user has no thoughts`,
  );
  if (part.functionCall !== undefined) {
    demandFields(part, ['functionCall', 'thoughtSignature'], at);
    demandObject(part.functionCall, `${at}.functionCall`);
    demandFields(part.functionCall, ['id', 'name', 'args'], `${at}.functionCall`);
    demandText(part.functionCall.name, `${at}.functionCall.name`);
    demandObject(part.functionCall.args, `${at}.functionCall.args`);
  } else if (part.functionResponse !== undefined) {
    demandFields(part, ['functionResponse'], at);
    checkResponse(part.functionResponse, `${at}.functionResponse`);
  } else if (part.inlineData !== undefined) {
    demand(role === 'user', `${at}.inlineData: the model shows no pictures`);
    checkInline(part, at);
  } else {
    demandFields(part, ['text', 'thought', 'thoughtSignature'], at);
    demandText(part.text, `${at}.text`);
  }
};

type Content = { readonly role: unknown; readonly parts: readonly Loose[] };

const readContent = (content: Loose, signatures: Signatures, at: string): Content => {
  demandFields(content, ['role', 'parts'], at);
  const { role, parts } = content;
  demand(role === 'user' || role === 'model', `${at}.role: Please use a valid role: user, model.`);
  demandList(parts, `${at}.parts`);
  for (const [index, part] of parts.entries())
    checkPart(part, role, signatures, `${at}.parts.${index}`);
  return { role, parts };
};

const namesIn = (
  { parts }: Content,
  kind: 'functionCall' | 'functionResponse',
): readonly string[] =>
  parts.flatMap((part) => {
    const found = part[kind];
    return found === undefined ? [] : [`${(found as Loose).name} ${(found as Loose).id}`]; // checked by checkPart
  });

const checkPairs = (contents: readonly Content[]): void => {
  for (const [index, content] of contents.entries()) {
    const calls =
      contents[index - 1]?.role === 'model'
        ? namesIn(contents[index - 1] ?? content, 'functionCall')
        : [];
    const answers = namesIn(content, 'functionResponse');
    demand(
      calls.join() === answers.join(),
      `contents.${index}: the number of function response parts should be equal to the number of function call parts: ${calls.join()} / ${answers.join()}`,
    );
  }
  const last = contents.at(-1);
  demand(last?.role === 'user', 'contents: the last word is the user’s');
};

const checkSignatures = (contents: readonly Content[]): void => {
  const start = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.some((part) => part.text),
  );
  for (const { parts } of contents.slice(start + 1)) {
    const first = parts.find((part) => part.functionCall !== undefined);
    demand(
      first === undefined || first.thoughtSignature !== undefined,
      'Function call is missing a thought_signature in functionCall parts.',
    );
  }
};

const checkTools = (tools: unknown): void => {
  if (tools === undefined) return;
  demandList(tools, 'tools');
  for (const { functionDeclarations } of tools) {
    demandList(functionDeclarations, 'tools.functionDeclarations');
    for (const tool of functionDeclarations) {
      demandFields(
        tool,
        ['name', 'description', 'parametersJsonSchema'],
        'tools.functionDeclarations',
      );
      demandText(tool.name, 'tools.functionDeclarations.name');
    }
  }
};

const checkInstructions = (instructions: unknown): void => {
  if (instructions === undefined) return;
  demandObject(instructions, 'systemInstruction');
  demandFields(instructions, ['parts'], 'systemInstruction');
  demandList(instructions.parts, 'systemInstruction.parts');
  for (const part of instructions.parts) {
    demandFields(part, ['text'], 'systemInstruction.parts');
    demandText(part.text, 'systemInstruction.parts.text');
  }
};

/** What is wrong with a request body, or null. */
export const findFault = (body: unknown, signatures: Signatures = new Set()): string | null =>
  faultOf(() => {
    demandObject(body, 'body');
    demandFields(body, BODY, 'body');
    demandWeight(body, REQUEST_BYTES_MAX);
    demandObject(body.generationConfig, 'generationConfig');
    demandFields(body.generationConfig, ['maxOutputTokens', 'thinkingConfig'], 'generationConfig');
    checkInstructions(body.systemInstruction);
    checkTools(body.tools);
    demandList(body.contents, 'contents');
    const contents = body.contents.map((content, index) =>
      readContent(content, signatures, `contents.${index}`),
    );
    demand(contents[0]?.role === 'user', 'contents.0.role: the user begins');
    checkPairs(contents);
    checkSignatures(contents);
  });
