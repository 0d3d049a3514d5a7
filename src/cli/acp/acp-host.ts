import type { AcpHost } from '../../acp/host.js';
import { knownModels } from '../../models/catalogue.js';
import { keyIn } from '../../models/endpoints.js';
import { providerOfModel } from '../../providers/provider-table.js';
import { endingOfError, exitCodes } from '../exit-codes.js';
import type { RunFlags } from '../flags.js';
import { packageVersion } from '../package-folder.js';
import { openFromFlags } from '../sessions/open-session.js';
import { recordedSettings, storedJournals } from '../sessions/stored-sessions.js';
import { storedSessionFlags } from './acp-flags.js';
import { editorCommands, runEditorCommand } from './editor-commands.js';

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
    const wanted =
      resume === null ? flags : storedSessionFlags(flags, (await recordedSettings(resume)).model);
    const more = { watcher, warn, servers, ...(resume === null ? {} : { resume }) };
    return openFromFlags({ ...wanted, workspace }, 'editor', more);
  },
  runCommand: (session, name, words) => runEditorCommand(session, flags, name, words),
  describeError(error) {
    const { exit, reason, message } = endingOfError(error);
    return { kind: exit === exitCodes.configuration ? 'configuration' : 'other', reason, message };
  },
});
