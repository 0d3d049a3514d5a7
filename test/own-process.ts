/**
 * A test file that imports this has a process of its own: what it tests starts programs or threads, changes the process, or
 * needs a fresh one (scripts/test-runner/tier.ts).
 */
export {};
