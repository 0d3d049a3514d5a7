import { after, before, describe } from 'node:test';
import { STORY, storeTrace } from '../../../test/kit/inspector/stored-session.js';
import { type Inspected, inspect } from './inspected-page.js';
import { checkSessions } from './session-checks.js';
import { checkStory } from './story-checks.js';
import { checkTrial } from './trial-checks.js';

/** The page in a real browser, which all of these tests share. */
describe('the page of the inspector', () => {
  const hooks: (() => Promise<void>)[] = [];
  const scope = { after: (hook: () => Promise<void>): void => void hooks.push(hook) };
  let opened: Inspected;
  const inspected = (): Inspected => opened;

  before(async () => {
    opened = await inspect(scope);
    await storeTrace(opened.folder, 'story', STORY);
  });
  after(async () => {
    for (const hook of hooks) await hook();
  });

  checkStory(inspected);
  checkTrial(inspected);
  checkSessions(inspected);
});
