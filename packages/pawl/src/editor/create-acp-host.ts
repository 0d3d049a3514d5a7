import { knownModels } from '@pawl/agent/models/catalogue';
import { keyIn } from '@pawl/agent/models/endpoint-and-key';
import { providerOfModel } from '@pawl/agent/models/provider-table';
import { endingOfError, exitCodes } from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import { packageVersion } from '../package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { storedJournals } from '../sessions/stored-sessions.js';
import { newSessionFlags, storedSessionFlags } from './acp-flags.js';
import { editorCommands, runEditorCommand } from './editor-commands.js';
import type { AcpHost } from './host-interface.js';

/** Opens sessions for an editor, from flags and configuration. */

/** The known models of providers that there is a key for. */
const usableModels = (): readonly string[] =>
  knownModels().filter((id) => {
    const provider = providerOfModel(id);
    return provider !== undefined && keyIn(process.env, provider.keyVariables) !== null;
  });

export const createHost = (flags: RunFlags): AcpHost => ({
  version: packageVersion(),
  journals: storedJournals(),
  commands: editorCommands,
  models: usableModels,
  async open({ workspace, resume, servers, watcher, warn }) {
    const wanted = { ...flags, workspace };
    if (resume === null) return openFromFlags(wanted, 'editor', { watcher, warn, servers });
    const { id, visit, accept, rights } = resume;
    return openFromFlags(wanted, 'editor', {
      watcher,
      warn,
      servers,
      resume: id,
      ...(visit === null ? {} : { visit }),
      ...(rights === undefined ? {} : { rights }),
      async flagsFor({ settings, origin }) {
        await accept(settings.workspace);
        return {
          ...(origin === 'own' ? storedSessionFlags(flags, settings.model) : newSessionFlags(flags)),
          workspace,
        };
      },
    });
  },
  async trustQuestions(workspace, warn) {
    const { editorTrustQuestions } = await import('../trust/editor-trust-questions.js');
    return editorTrustQuestions(workspace, warn);
  },
  runCommand: (session, name, words) => runEditorCommand(session, flags, name, words),
  describeError(error) {
    const { exit, reason, message } = endingOfError(error);
    return { kind: exit === exitCodes.configuration ? 'configuration' : 'other', reason, message };
  },
});
