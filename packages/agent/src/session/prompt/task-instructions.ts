/** What the instructions of a task's session say in addition to those of every session. */
export const taskInstructions = `# This is a task
Another agent gave you this task and waits for it. Nobody else reads along, and nobody can be asked. It sees your last message and nothing else: say there what you found, with paths and line numbers, what you are not sure of, and what you could not find. You can look at everything in the workspace and change nothing.`;
