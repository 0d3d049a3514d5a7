import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stateMachine } from '../src/builder/builder.js';
import { markdownTable, mermaid } from '../src/kernel/diagrams.js';
import { door, type Notes, type Push } from './door.js';

/** What is known of a built machine without running it. */

describe('what is known of a built machine', () => {
  const isStrong = ({ force }: { readonly force: number }): boolean => force > 3;
  const bend = (_event: unknown, context: Notes): Notes => context;
  const machine = door()
    .state('Closed', { about: 'shut, but not locked' })
    .transition('Closed', 'Push', 'Open', { guard: isStrong, action: bend, label: 'hard' })
    .transition('Closed', 'Push', '*', { internal: true })
    .transition('Closed', 'Push', 'Broken')
    .transition('Open', 'Pull', 'Closed')
    .transition('Locked', 'Turn', 'Closed')
    .always('Open', 'Broken', {
      guard: function isRotten() {
        return false;
      },
    })
    .terminal('Broken')
    .build('Closed');

  it('are its edges, states and events, from which the pictures are made', () => {
    assert.deepEqual(machine.edges[0], {
      id: 'Closed/Push/0',
      from: 'Closed',
      event: 'Push',
      when: 'isStrong',
      to: 'Open',
      as: 'hard',
      then: 'bend',
      kind: 'go',
    });
    assert.deepEqual(Object.keys(machine.states), ['Closed', 'Open', 'Broken', 'Locked']);
    assert.equal(machine.states.Closed, 'shut, but not locked');
    assert.deepEqual(Object.keys(machine.events), ['Push', 'Pull', 'Turn']);
    assert.equal(
      mermaid(machine),
      [
        'stateDiagram-v2',
        '  [*] --> Closed',
        '  Closed --> Open: Push',
        '  Closed --> Broken: Push',
        '  Open --> Closed: Pull',
        '  Open --> Broken: [isRotten]',
        '  Locked --> Closed: Turn',
        '  Broken --> [*]',
      ].join('\n'),
    );
    assert.deepEqual(machine.ignored, []);
    assert.match(
      markdownTable(machine),
      /^\| Closed \| Push \| isStrong \| Open \(hard\) \| bend \|$/m,
    );
    assert.doesNotMatch(markdownTable(machine), /\0/);
  });

  it('is a report of states out of reach, pairs without a transition, and transitions in the shadow of another', () => {
    assert.deepEqual(machine.report.unreachable, ['Locked']);
    assert.deepEqual(
      machine.report.missing.map(({ state, event }) => `${state} ${event}`),
      ['Closed Pull', 'Closed Turn', 'Open Push', 'Open Turn', 'Locked Push', 'Locked Pull'],
    );
    assert.deepEqual(
      machine.report.shadowed.map(({ edge, behind }) => [edge.id, behind.id]),
      [['Closed/Push/2', 'Closed/Push/1']],
    );
  });

  it('is a report that counts transitions from anywhere, and no pair of a state that never rests', () => {
    const other = door()
      .transition('*', ['Push', 'Kick'], 'Open')
      .transition('Closed', 'Push', 'Locked')
      .transition('Closed', 'Pull', '*', { guard: () => true })
      .transition('Closed', 'Pull', 'Open', { guard: () => true })
      .always('Locked', 'Broken')
      .build('Closed');
    assert.deepEqual(other.transient, ['Locked']);
    assert.deepEqual(other.report.unreachable, []);
    assert.deepEqual(
      other.report.missing.map(({ state, event }) => `${state} ${event}`),
      ['Open Pull', 'Broken Pull'],
    );
    assert.deepEqual(
      other.report.shadowed.map(({ edge, behind }) => [edge.from, edge.to, behind.to]),
      [['Closed', 'Open', 'Locked']],
    );
  });

  it('is a report that finds states which only lead to each other', () => {
    const island = door()
      .transition('Closed', 'Push', 'Open')
      .transition('Locked', 'Turn', 'Broken')
      .transition('Broken', 'Turn', 'Locked')
      .build('Closed');
    assert.deepEqual(island.report.unreachable, ['Locked', 'Broken']);
  });

  it('are the names that were given to functions, and not those of the fields they stand in', () => {
    const guardian = (): boolean => true;
    const reaction = (_event: unknown, context: Notes): Notes => context;
    const lifeguard = (): boolean => true;
    const actionable = (_event: unknown, context: Notes): Notes => context;
    const { edges } = door()
      .transition('Closed', 'Push', 'Open', { guard: guardian, action: reaction })
      .transition('Closed', 'Pull', 'Open', { guard: lifeguard, action: actionable })
      .transition('Closed', 'Turn', 'Open', {
        guard: () => true,
        action: (_event, context) => context,
      })
      .build('Closed');
    assert.deepEqual(
      edges.map(({ when, then }) => [when, then]),
      [
        ['guardian', 'reaction'],
        ['lifeguard', 'actionable'],
        ['guard', ''],
      ],
    );
  });

  it('knows a state by whatever name it has, even none', () => {
    const unnamed = stateMachine<'' | 'Open', Push, Notes>()
      .transition('*', 'Push', 'Open')
      .build('');
    assert.deepEqual(
      unnamed.edges.map(({ id }) => id),
      ['/Push/0', 'Open/Push/0'],
    );
  });

  it('is where one may go from a state', () => {
    assert.deepEqual(machine.legalFrom('Closed'), ['Closed', 'Open', 'Broken']);
    assert.deepEqual(machine.legalFrom('Broken'), []);
  });
});
