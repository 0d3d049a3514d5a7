import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'smol-toml';
import { parseConfig } from '../../src/settings/configuration.js';

const read = (text: string): readonly string[] => {
  const { values, faults } = parseConfig(text, (toml) => parse(toml));
  return [
    ...values.map(
      ({ setting, value, line }) => `${line} ${setting.key} = ${JSON.stringify(value)}`,
    ),
    ...faults.map(({ line, text: why }) => `${line} ! ${why}`),
  ];
};

type Row = { readonly given: string; readonly text: string; readonly then: readonly string[] };

const good: readonly Row[] = [
  { given: 'an empty file', text: '', then: [] },
  { given: 'a comment alone', text: '# nothing yet\n', then: [] },
  { given: 'a number', text: 'max_usd = 0.5', then: ['1 max_usd = 0.5'] },
  {
    given: 'a list of hosts, and one as a text',
    text: 'allow_hosts = ["Example.com", "*.example.org"]\n\nmax_usd = 1',
    then: ['1 allow_hosts = "example.com,*.example.org"', '3 max_usd = 1'],
  },
  {
    given: 'a table after comments',
    text: '\n# for questions\n[ask]\n\nmax_depth = 2 # deep',
    then: ['5 ask.max_depth = 2'],
  },
  {
    given: 'a table written in one line, dotted, and quoted',
    text: 'ask = { max_depth = 2, environment = "quickjs" }\n"max_usd" = 1\nproviders.openai.base_url = "http://a/v1"',
    then: [
      '1 ask.max_depth = 2',
      '1 ask.environment = "quickjs"',
      '2 max_usd = 1',
      '3 providers.openai.base_url = "http://a/v1"',
    ],
  },
  {
    given: 'a value of several lines',
    text: 'max_usd = 1\n\nmodel = """\\\n  anthropic/\\\n  one"""\nhooks = "never"',
    then: ['1 max_usd = 1', '3 model = "anthropic/one"', '6 hooks = "never"'],
  },
  {
    given: 'every type',
    text: 'explore = false\npreset = "plan"\nmax_rounds = 3\nmodel = "openai/gpt"\n[providers.anthropic]\nbase_url = "https://a.example"\napi_key_file = "~/keys/one"',
    then: [
      '1 explore = false',
      '2 preset = "plan"',
      '3 max_rounds = 3',
      '4 model = "openai/gpt"',
      '6 providers.anthropic.base_url = "https://a.example"',
      '7 providers.anthropic.api_key_file = "~/keys/one"',
    ],
  },
];

const bad: readonly Row[] = [
  {
    given: 'a folder that no path of a workspace is equal to',
    text: '[folder."/me/p/".rules]\nallow = ["git diff"]',
    then: ['1 ! write this folder as it is named: [folder."/me/p".rules]'],
  },
  {
    given: 'a name with a slip',
    text: 'max_usd = 1\nmax_round = 3',
    then: ['1 max_usd = 1', '2 ! there is no setting max_round. Did you mean max_rounds?'],
  },
  {
    given: 'a provider with a slip',
    text: '[providers.antropic]\nbase_url = "http://a"',
    then: [
      '1 ! providers.antropic is no provider that Pawl knows. Did you mean providers.anthropic? ' +
        'A provider of your own with such a name says its api: api = "chat-completions".',
    ],
  },
  {
    given: 'a name that is like no other',
    text: 'colours = "many"',
    then: ['1 ! there is no setting colours. pawl config lists them.'],
  },
  {
    given: 'a table that is a value',
    text: 'ask = 1',
    then: ['1 ! ask is a table: [ask]'],
  },
  {
    given: 'a name that every object has',
    text: '[__proto__]\nmax_usd = 1\n[constructor]\nname = "x"',
    then: [
      '1 ! there is no setting __proto__. pawl config lists them.',
      '3 ! there is no setting constructor. pawl config lists them.',
    ],
  },
  {
    given: 'several faults at once',
    text: 'preset = "free"\nmax_usd = "1"\nmax_rounds = 1.5\nexplore = "yes"',
    then: [
      '1 ! preset is one of "plan", "careful", "ci", "auto", "full", not "free".',
      '2 ! max_usd is a number above zero, without quotes, not "1".',
      '3 ! max_rounds is a whole number above zero, without quotes, not 1.5.',
      '4 ! explore is true or false, without quotes, not "yes".',
    ],
  },
  {
    given: 'numbers that are no amounts',
    text: 'max_usd = 0\nmax_tokens = -1\nmax_minutes = inf\nmax_rounds = nan',
    then: [
      '1 ! max_usd is a number above zero, without quotes, not 0.',
      '2 ! max_tokens is a whole number above zero, without quotes, not -1.',
      '3 ! max_minutes is a number above zero, without quotes, not Infinity.',
      '4 ! max_rounds is a whole number above zero, without quotes, not NaN.',
    ],
  },
  {
    given: 'values of another type',
    text: 'model = 5\nhooks = [\n  "never"\n]\nmax_usd = 2026-01-01\nmax_tokens = { a = 1 }',
    then: [
      '1 ! model is a text in quotes, not 5.',
      '2 ! hooks is one of "never", "mutatingOk", "mutating", "always", not a list.',
      '5 ! max_usd is a number above zero, without quotes, not a date.',
      '6 ! max_tokens is a whole number above zero, without quotes, not a table.',
    ],
  },
  {
    given: 'texts of another form',
    text: 'model = "sonnet"\n[providers.openai]\nbase_url = "file:///etc"\napi_key_file = "keys/one"',
    then: [
      '1 ! model is written "provider/name".',
      '3 ! providers.openai.base_url is an http or https URL: "http://127.0.0.1:8080/v1".',
      '4 ! providers.openai.api_key_file is the whole path of a file: "/…" or "~/…".',
    ],
  },
  {
    given: 'hosts that are none',
    text: 'allow_hosts = ["https://example.com/"]\nmax_rounds = 3',
    then: [
      '2 max_rounds = 3',
      '1 ! allow_hosts is a list of hosts without scheme, path and default port: ["example.com", "*.example.org"].',
    ],
  },
  {
    given: 'a value that is missing',
    text: 'max_usd = 1\nmodel =\n',
    then: [
      '2 ! this is no TOML: invalid value. A line reads: name = "text", name = 1 or name = true.',
    ],
  },
  {
    given: 'a name twice',
    text: 'max_usd = 1\nmax_usd = 2',
    then: [
      '2 ! this is no TOML: trying to redefine an already defined table or value. A line reads: name = "text", name = 1 or name = true.',
    ],
  },
];

for (const { given, text, then } of good) {
  test(`a config file: ${given} is read, with its line`, () => assert.deepEqual(read(text), then));
}
for (const { given, text, then } of bad) {
  test(`a config file: ${given} is a fault that says where it is and what to write`, () =>
    assert.deepEqual(read(text), then));
}

const SECRET = 'sk-ant-api03-0123456789-abcdefghijklmnop';
for (const text of [
  `api_key = "${SECRET}"`,
  `ANTHROPIC_API_KEY = "${SECRET}"`,
  `[providers.anthropic]\napi_key = "${SECRET}"`,
  `[providers.anthropic]\napi_key_file = "${SECRET}"`,
  `model = "${SECRET}"`,
  `preset = "${SECRET}"`,
  `max_usd = "${SECRET}"`,
  `openai_token = "${SECRET}"`,
  `api_key = "${SECRET}`,
  `api_key = ${SECRET}`,
]) {
  test(`a key is taken nowhere, and not repeated: ${JSON.stringify(text.replace(SECRET, '…'))}`, () => {
    const { values, faults } = parseConfig(text, (toml) => parse(toml));
    assert.deepEqual([values.length, faults.length], [0, 1]);
    assert.doesNotMatch(JSON.stringify(faults), /sk-ant/);
  });
}
