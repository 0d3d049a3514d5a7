/** The built page as one text: as the server sends it, and as a file with a session inside. */

import type { ExportedSession } from '../page-data-types.js';

/** Stands in the built page where a session can be put. Data, not code: it is never executed. */
const NO_SESSION = '<script type="application/json" id="exported">null</script>';
/** The part of the page's policy that lets it read from its server. */
const CONNECT_POLICY = "connect-src 'self'";

/**
 * JSON that can stand inside of a script element: no text of a session ends the element, and none
 * reorders what an editor shows of the file.
 */
const insideScript = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[<>&\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/**
 * The page with the session inside; it makes no request. Throws if `page` is not the built page.
 */
export const pageWithSession = (page: string, session: ExportedSession): string => {
  if (!page.includes(NO_SESSION) || !page.includes(CONNECT_POLICY))
    throw new Error('The page of the inspector is damaged: install Pawl again.');
  return page
    .replace(CONNECT_POLICY, () => "connect-src 'none'")
    .replace(NO_SESSION, () => NO_SESSION.replace('null', () => insideScript(session)));
};

/** The policy that the page itself demands, for the header of the server's answer. */
export const readPolicy = (page: string): string =>
  /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(page)?.[1] ??
  "default-src 'none'";
