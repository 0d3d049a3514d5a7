/** A command can't be fenced. `message` gives the reason, for people and for the model. */
export class SandboxRefusal extends Error {}
