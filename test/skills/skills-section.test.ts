import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PromptFile } from '../../src/skills/prompt-file.js';
import { offerSkills } from '../../src/skills/skills-section.js';

const skill = (name: string, description: string, more: Partial<PromptFile> = {}): PromptFile => ({
  kind: 'skill',
  name,
  description,
  hint: '',
  file: `/skills/${name}/SKILL.md`,
  offered: 'toModel',
  place: { folder: '/skills', owner: 'project', kind: 'skill', within: null },
  ...more,
});

test('without skills nothing is said', () => {
  const hidden = skill('a', 'x', { offered: 'toUser' });
  assert.deepEqual(offerSkills([hidden]), { skills: [], section: null, warning: '' });
});

test('each skill has one line with its name, description and file', () => {
  const { section, warning } = offerSkills([skill('a', 'About a.'), skill('b', 'About b.')]);
  assert.match(section ?? '', /^# Skills\n/);
  assert.match(
    section ?? '',
    /\n- a: About a\. \(\/skills\/a\/SKILL\.md\)\n- b: About b\. \(\/skills\/b\/SKILL\.md\)$/,
  );
  assert.equal(warning, '');
});

test('many skills and long descriptions are cut to a fixed size, with a warning', () => {
  const many = Array.from({ length: 40 }, (_, at) => skill(`s${at}`, 'x'.repeat(1_024)));
  const cut = offerSkills(many);
  assert.equal(cut.skills.length, 40);
  assert.ok((cut.section ?? '').length <= 16_000);
  assert.match(cut.warning, /cut to 300 characters/);
  const hundreds = Array.from({ length: 10_000 }, (_, at) => skill(`s${at}`, 'x'.repeat(1_024)));
  const fewer = offerSkills(hundreds);
  assert.ok(fewer.skills.length > 100 && fewer.skills.length <= 200, String(fewer.skills.length));
  assert.ok((fewer.section ?? '').length <= 16_000);
  assert.match(fewer.warning, /9800 more can only be used by their \/name/);
  const long = offerSkills(
    Array.from({ length: 200 }, (_, at) => skill(`s${at}`, 'x', { file: `/${'y'.repeat(3_000)}/${at}` })),
  );
  assert.ok((long.section ?? '').length <= 16_000 && long.skills.length > 0);
});

test("with too many skills the user's are left out first", () => {
  const place = { folder: '/mine', owner: 'user', kind: 'skill', within: null } as const;
  const mine = Array.from({ length: 150 }, (_, at) => skill(`a${at}`, 'x', { place }));
  const theirs = Array.from({ length: 150 }, (_, at) => skill(`b${at}`, 'x'));
  const { skills } = offerSkills([...mine, ...theirs]);
  assert.equal(skills.filter(({ name }) => name.startsWith('b')).length, 150);
  assert.equal(skills.length, 200);
});
