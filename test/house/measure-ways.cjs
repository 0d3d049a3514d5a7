'use strict';
// Loaded before the program: measures which functions run between two moments, with V8's precise coverage.
const http = require('node:http');
const { Session } = require('node:inspector');
const { writeFileSync } = require('node:fs');
const path = require('node:path');

const { WAYS_FOLDER: folder = '.' } = process.env;
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** Functions that ran since the last call; the count begins anew. The answer is there when `post` returns. */
const takeFunctions = () => {
  let found = [];
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error) throw error;
    found = coverage.result
      .filter(({ url }) => url.endsWith('/program.mjs'))
      .flatMap(({ functions }) => functions)
      .filter(({ ranges: [whole] }) => whole.count > 0)
      .map(({ functionName, ranges: [whole] }) => ({
        name: functionName,
        start: whole.startOffset,
      }));
  });
  return found;
};

let count = 0;
const save = (name) => {
  count += 1;
  writeFileSync(path.join(folder, `${count}-${name}.json`), JSON.stringify(takeFunctions()));
};

const isEnter = (event, chunk) => event === 'data' && String(chunk).includes('\r');

const { emit } = process.stdin;
process.stdin.emit = function emitAndMeasure(event, chunk, ...rest) {
  if (isEnter(event, chunk)) save('before-enter');
  return emit.call(this, event, chunk, ...rest);
};

const { request } = http;
http.request = (...parts) => {
  const made = request(...parts);
  if (String(parts[0]?.method ?? parts[1]?.method).toUpperCase() === 'POST') save('request');
  return made;
};

process.on('exit', () => save('exit'));
