/**
 * The last request to the model up to the selected entry, part by part. A provider's cache can keep
 * the beginning that is equal in the request before it: that is shown apart from the rest.
 */

import { firstCharacters, groupDigits } from '@pawl/agent/platform/text';
import { moneyText, percentText } from '../model/figure-text.js';
import {
  type RequestPart,
  requestAt,
  type SharedPrefix,
  sharedPrefix,
} from '../model/sent-request.js';
import { make, seqLink } from './elements.js';
import type { PageState, Panel } from './page-state.js';

/** Only the last parts are shown. */
const PARTS_AT_ONCE = 60;

/** A text of megabytes would stop the page. */
const CHARACTERS_MAX = 100_000;

const shortened = (text: string): string =>
  text.length <= CHARACTERS_MAX
    ? text
    : `${firstCharacters(text, CHARACTERS_MAX)}\n… ${groupDigits(text.length - CHARACTERS_MAX)} characters more`;

/** A part of the request: closed if it is as in the request before. */
const partView = (
  { title, text }: RequestPart,
  index: number,
  { parts, characters }: SharedPrefix,
): HTMLElement => {
  const isShared = index < parts;
  const shared = isShared ? text : index === parts ? text.slice(0, characters) : '';
  const fresh = shortened(text.slice(shared.length));
  const state = isShared ? 'as before' : shared === '' ? 'new' : 'new from the mark on';
  return make(
    'details',
    { class: `request-part${isShared ? ' kept' : ''}`, open: !isShared },
    make(
      'summary',
      {},
      title,
      make('span', { class: 'tag' }, state),
      make('span', { class: 'faint' }, ` ${groupDigits(text.length)} characters`),
    ),
    make(
      'pre',
      { class: 'code', tabindex: 0 },
      ...(shared === '' ? [] : [make('span', { class: 'kept' }, shortened(shared))]),
      ...(fresh === '' ? [] : [make('span', { class: 'fresh' }, fresh)]),
    ),
  );
};

export const requestPanel = (pageState: PageState): Panel => {
  const element = make('section', { class: 'request' });
  /** A key of what is drawn: the entry, and whether usage is known. */
  let drawn = -1;
  return {
    element,
    render() {
      const { history, session, seq } = pageState;
      const request = requestAt(history, session.prompt, seq);
      if (request === null) {
        drawn = -1;
        element.replaceChildren(
          make('h2', {}, 'Request'),
          make('p', { class: 'faint' }, 'No request was sent to a model up to here.'),
        );
        return;
      }
      const figures = history.figures.requests.find(({ id }) => id === request.requestId);
      const usage = figures?.usage ?? null;
      // The figures of a request change when its reply comes.
      const key = request.seq * 2 + (usage === null ? 0 : 1);
      if (key === drawn) return;
      drawn = key;
      const earlier = requestAt(history, session.prompt, request.seq - 1);
      const shared = sharedPrefix(earlier, request);
      const prompt =
        usage === null ? 0 : usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
      const paid =
        usage === null
          ? 'No usage was reported so far.'
          : `The provider counted ${groupDigits(prompt)} tokens, ` +
            `${percentText(prompt === 0 ? null : usage.cacheReadTokens / prompt)} of them from ` +
            `its cache: ${moneyText(usage.costUsd)}.`;
      const hidden = request.parts.length - PARTS_AT_ONCE;
      element.replaceChildren(
        make(
          'h2',
          {},
          `Request ${request.requestId} to ${request.model}, after `,
          seqLink(request.seq, (to) => pageState.go(to)),
        ),
        make(
          'p',
          {},
          `${groupDigits(shared.sharedBytes)} of ${groupDigits(shared.bytes)} bytes ` +
            `(${percentText(shared.bytes === 0 ? null : shared.sharedBytes / shared.bytes)}) ` +
            `begin as in the request before: a cache can keep that much. ${paid}`,
        ),
        ...(hidden > 0
          ? [
              make(
                'p',
                { class: 'faint' },
                `The first ${hidden} parts are not shown here; pawl show ${pageState.id} ` +
                  `--at ${request.seq} --request prints all.`,
              ),
            ]
          : []),
        ...request.parts
          .map((part, index) => (index < hidden ? null : partView(part, index, shared)))
          .filter((view) => view !== null),
      );
    },
  };
};
