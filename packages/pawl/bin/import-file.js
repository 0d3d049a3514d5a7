'use strict';
/**
 * Imports a module of the user. The program itself is a script that is run by hand, and Node's
 * import() would warn of it there.
 *
 * @param {string} url A file: URL.
 */
module.exports = (url) => import(url);
