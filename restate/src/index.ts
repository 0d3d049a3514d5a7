/** `@pawl/restate`: Pawl's sessions on Restate. Start nodes with `startNode`, use them with `createRestateRuntime`. */
