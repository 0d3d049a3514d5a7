import type { Bounds, Configuration, ReplyKind } from './configuration.js';
import { answer, fullAnswer, largestBatch, quietBounds, smallConfiguration } from './configuration-parts.js';

/** Configurations about model calls. */

const unreadable: ReplyKind = { message: null, stop: 'other' };

const everyReply: readonly ReplyKind[] = [
  answer,
  { text: 'yes', stop: 'maxTokens' },
  { text: 'yes', stop: 'refusal' },
  { text: 'yes', calls: 'E', stop: 'refusal' },
  { text: 'yes', stop: 'toolUse' },
  { stop: 'contentFilter' },
  { stop: 'maxTokens' },
  {},
  unreadable,
  { calls: 'RT' },
  { calls: 'NIR' },
  { calls: 'NI' },
  { text: 'yes', calls: 'IE', stop: 'maxTokens' },
];

const replies = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'replies',
      about: 'every kind of reply, empty ones asked for again, limits of rounds and of cut replies',
      replies: everyReply,
      streams: true,
    },
    { ...quietBounds, followUps: 0 },
    { emptyRetries: 1, limits: { rounds: 2, truncation: 2 } },
  );

const drain = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'drain',
      about: 'a provider that cannot abort',
      replies: [...everyReply.slice(0, 4), {}, unreadable],
      streams: true,
    },
    { ...quietBounds, crashes: bounds.crashes, late: bounds.late },
    { cancelMode: 'drain' },
  );

const time = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'time',
      about: 'a turn that takes too long',
      replies: [
        ...largestBatch({ ...bounds, reads: Math.min(bounds.reads, 1) }),
        answer,
        { text: 'yes', calls: 'R', spending: 'filling' },
      ],
      hooks: ['changed', 'veto'],
      streams: true,
      clockJumps: true,
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes, compactions: bounds.compactions },
    { limits: { timeMs: 60_000 } },
  );

const drainOutOfTime = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'drain out of time',
      about: 'the time limit meets a provider that cannot abort',
      replies: [answer, { text: 'yes', calls: 'R' }, {}],
      streams: true,
    },
    { ...quietBounds, followUps: 0, crashes: bounds.crashes },
    { cancelMode: 'drain', limits: { timeMs: 60_000 } },
  );

const compaction = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'compaction',
      about: 'windows that fill up, before a turn, in the middle, beyond; results that are too long',
      replies: [
        answer,
        fullAnswer,
        { calls: 'R' },
        { calls: 'R', spending: 'filling' },
        { calls: 'R', spending: 'overfull' },
      ],
      failures: ['passing', 'tooLong', 'waitTooLong'],
      outcomes: ['ok', 'long'],
    },
    {
      ...quietBounds,
      followUps: 0,
      crashes: bounds.crashes,
      late: bounds.late,
      compactions: bounds.compactions,
    },
  );

const policies = (bounds: Bounds): Configuration =>
  smallConfiguration(
    bounds,
    {
      name: 'policies',
      about: 'a turn that goes in circles, and the call that asks for its answer',
      replies: [answer, { calls: 'R' }, { calls: 'E' }],
      failures: ['passing', 'heldBack'],
      outcomes: ['ok', 'failed'],
    },
    { ...quietBounds, followUps: 0 },
    {
      atLimit: 'finish',
      userPolicy: 'ask',
      hooks: 'never',
      limits: { rounds: 3, repeats: 2, errors: 2, sameResults: 2 },
    },
  );

export const smallCallConfigurations = (bounds: Bounds): readonly Configuration[] =>
  [replies, drain, time, drainOutOfTime, compaction, policies].map((one) => one(bounds));
