import { hookStories } from './stories/hooks.js';
import { replyStories } from './stories/replies.js';
import { toolStories } from './stories/tools.js';
import { userStories } from './stories/user.js';
import type { Story } from './story.js';

export const allStories: readonly Story[] = [
  ...replyStories,
  ...toolStories,
  ...userStories,
  ...hookStories,
];
