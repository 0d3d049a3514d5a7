/**
 * What a fence, the sandbox around one command, is to the code that starts commands, whatever the
 * system makes it of: bubblewrap.ts for Linux, seatbelt.ts for macOS.
 */

import type { ProgramPath } from '../../platform/find-program.js';
import type { HostView, Mount } from './host.js';
import type { SessionFolders } from './session-folders.js';

/** The places of a command, and what it may do there. */
export type FenceContents = {
  readonly host: HostView;
  readonly folders: SessionFolders;
  /** The user's tools, the workspace, its repository, and the read-only parts of the workspace. */
  readonly mounts: readonly Mount[];
  /** Paths inside the mounts that the command must not see. */
  readonly masked: readonly string[];
  /** Protected files of the workspace that it may write: the user allowed that. */
  readonly allowed: readonly string[];
  readonly network: boolean;
  readonly isHomeWritable: boolean;
  /** The folder that the command starts in. */
  readonly workspace: string;
};

/** A program that makes a fence, and its arguments up to the command line inside. */
export type FenceProgram = {
  readonly program: ProgramPath;
  readonly words: readonly string[];
  /** Arguments after the last mount: the launcher adds one of its own before them. */
  readonly seals: readonly string[];
};
