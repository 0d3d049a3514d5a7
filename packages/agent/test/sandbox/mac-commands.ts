import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type CommandRequest, startCommand } from '../../src/command/command.js';
import { createCommandSandbox } from '../../src/command/command-sandbox.js';
import { endMarked } from '../../src/command/end-processes.js';
import { readUserPlaces } from '../../src/secrets/user-places.js';

/** Runs commands in the fence of macOS, and prints what came of each. Arguments: the workspace, a folder for the session, and `stop`: to stop one command. */

const [workspace = '', folder = '', stops] = process.argv.slice(2);
const { PATH, NETRC, XDG_CONFIG_HOME } = process.env;
const environment = { PATH, NETRC, XDG_CONFIG_HOME, HOME: folder };
const sessionFolder = path.join(folder, `${process.pid}-a`);
const sandbox = createCommandSandbox({
  ...{ workspace, environment, sessionFolder },
  probe: async () => ({
    kind: 'works',
    features: { locksMounts: false, disablesNamespaces: false },
  }),
  userPlaces: readUserPlaces(environment),
  sessionId: 'one',
  outlives: true,
});

const run = async (command: string, more: Partial<CommandRequest> = {}): Promise<void> => {
  const running = startCommand({
    sandbox: async () => sandbox,
    ...{ level: 'workspace', fresh: false, program: 'bash', command, workspace },
    ...{ ownEnvironment: environment, environment: { GREETING: "it's\n$HOME" }, deadlineMs: null },
    record: { call: command, marker: 'none', job: null },
    progress: () => stops && running.stop(),
    ...more,
  });
  const { how, leftovers, notes } = await running.ended;
  console.log(JSON.stringify({ how, leftovers, notes, text: running.output.text() }));
};

if (stops) {
  await run('echo begun; sleep 1000');
  console.log(JSON.stringify(await endMarked('none')));
  await sandbox.close();
  process.exit();
}

await run('echo "$HOME $TMPDIR $PWD"; echo "$GREETING"; echo kept >$HOME/file; exit 3');
await run('cat $HOME/file; sleep 1000 & echo left');
await run('ls -A $HOME/file; mkdir $TMPDIR/a; echo >$TMPDIR/a/b', { fresh: true });
await run('ls -l /dev/fd/ 2>&1 | wc -l; cat', { level: 'reads' });
await run('kill -9 $$');
// A command that the launcher did not start has another name.
console.log(JSON.stringify(readdirSync(path.join(sessionFolder, 'commands'))));
await sandbox.close();
