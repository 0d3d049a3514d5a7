/** Reads a review as JSON from stdin; prints its findings as annotations, and the summary of the job. */

import { appendFileSync, readFileSync } from 'node:fs';

const { summary, findings } = JSON.parse(readFileSync(0, 'utf8'));

// https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
const escapeText = (text) =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
const escapeProperty = (text) => escapeText(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

for (const { file, line, severity, comment } of findings)
  console.log(`::${severity} file=${escapeProperty(file)},line=${line}::${escapeText(comment)}`);

const rows = findings.map(({ file, line, comment }) => `- \`${file}:${line}\` ${comment}`);
const { GITHUB_STEP_SUMMARY } = process.env;
if (GITHUB_STEP_SUMMARY)
  appendFileSync(GITHUB_STEP_SUMMARY, `## Review\n\n${[summary, '', ...rows].join('\n')}\n`);
