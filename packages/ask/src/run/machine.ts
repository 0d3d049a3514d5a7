import { codeMachine } from './state-and-event-names.js';
import { table } from './table.js';

/** Code mode of one run: pure, total, never throws. */
export const codeMode = codeMachine(table);
