/** The questions that a project's files raise, for an editor: the same as in a terminal, with options instead of keys. */

import { openTrust, type TrustStore } from '@pawl/agent/extensions/trust';
import { stateFolder } from '@pawl/agent/platform/environment';
import { ALLOW } from '@pawl/terminal/questions';
import {
  hookSource,
  LEVEL_ANSWERS,
  meaningOf,
  type OpenQuestion,
  questionOf,
  serverSource,
  settleExecutables,
  storeAnswer,
} from '../sessions/project-trust.js';
import type { TrustChoice, TrustQuestion } from './acp-host.js';

const LEVELS_MEANING =
  'In the sandbox it reads this folder and has no network, unless you allow that too. As you, outside the sandbox, it can do all that you can.';

const LEVEL_NAMES: Readonly<Record<string, string>> = {
  y: 'Allow in the sandbox',
  w: 'Allow in the sandbox, with network',
  o: 'Allow as you, outside the sandbox',
};

const choicesOf = ({ executable }: OpenQuestion): readonly TrustChoice[] => {
  const yes = executable.levels === undefined ? ALLOW : LEVEL_ANSWERS;
  return [
    ...yes.map(({ key }): TrustChoice => {
      const name = executable.levels === undefined ? 'Allow' : (LEVEL_NAMES[key] ?? key);
      return { id: key, name: `${name}, until its text changes`, kind: 'allow_always' };
    }),
    { id: 'later', name: 'Not now', kind: 'reject_once' },
    { id: 'no', name: 'Never run this text', kind: 'reject_always' },
  ];
};

const editorQuestion = async (
  trust: TrustStore,
  workspace: string,
  open: OpenQuestion,
): Promise<TrustQuestion> => {
  const { executable } = open;
  const { title, content, kind, yes = ALLOW } = await questionOf(open);
  return {
    title,
    content,
    kind,
    choices: choicesOf(open),
    meaning:
      executable.levels === undefined ? meaningOf(executable) : `${LEVELS_MEANING} ${meaningOf(executable)}`,
    async answer(id) {
      const given = id === 'no' ? 'no' : (yes.find(({ key }) => key === id) ?? 'later');
      const said = await storeAnswer(trust, workspace, executable, given);
      return { said, isAllowed: typeof given === 'object' };
    },
  };
};

export const editorTrustQuestions = async (
  workspace: string,
  warn: (text: string) => void,
): Promise<readonly TrustQuestion[]> => {
  const trust = openTrust(stateFolder(process.env), warn);
  const { open } = await settleExecutables(trust, workspace, [serverSource, hookSource]);
  return Promise.all(open.map((one) => editorQuestion(trust, workspace, one)));
};
