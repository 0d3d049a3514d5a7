import assert from 'node:assert/strict';
import { test } from 'node:test';
import { providers } from '../../src/config/providers.js';
import { hosted } from '../../src/models/addresses.js';

test('the variables of providers are those that the models read', () => {
  for (const [name, { keys, urlVariable }] of Object.entries(hosted)) {
    const known = providers.find((provider) => provider.name === name);
    assert.deepEqual([known?.keyVariables, known?.urlVariable], [keys, urlVariable], name);
  }
});
