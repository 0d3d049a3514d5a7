import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offerSkills } from '../../src/extensions/skills/load-skills.js';
import type { PromptFile } from '../../src/extensions/skills/prompt-file.js';

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

test('each skill has one line with its name and description', () => {
  const { section, warning } = offerSkills([skill('a', 'About a.'), skill('b', 'About b.')]);
  assert.match(section ?? '', /^# Skills\n/);
  assert.match(section ?? '', /\n- a: About a\.\n- b: About b\.$/);
  assert.equal(warning, '');
});

/** Lengths of the descriptions in a section. */
const lengthsIn = (section: string | null): readonly number[] =>
  (section ?? '').split('\n').flatMap((line) => /^- [^:]+: (.*)$/.exec(line)?.[1]?.length ?? []);

test('long descriptions share the room: the longest are cut first, and a warning says so', () => {
  const short = Array.from({ length: 30 }, (_, at) => skill(`a${at}`, 'y'.repeat(100)));
  const long = Array.from({ length: 40 }, (_, at) => skill(`b${at}`, 'x'.repeat(1_024)));
  const { skills, section, warning } = offerSkills([...short, ...long]);
  assert.equal(skills.length, 70);
  assert.ok((section ?? '').length <= 16_000);
  const lengths = lengthsIn(section);
  assert.deepEqual(lengths.slice(0, 30), Array(30).fill(100));
  assert.ok(
    lengths.slice(30).every((length) => length > 300),
    lengths.join(),
  );
  assert.match(warning, /^The descriptions of 40 skills are cut to 3\d\d characters, /);
});

for (const count of [50, 100, 200, 205, 10_000]) {
  test(`of ${count} skills with long descriptions none that is listed has less than 60 characters`, () => {
    const many = Array.from({ length: count }, (_, at) =>
      skill(`skill-number-${at}`, 'x'.repeat(1_024)),
    );
    const { skills, section, warning } = offerSkills(many);
    assert.ok((section ?? '').length <= 16_000);
    const lengths = lengthsIn(section);
    assert.equal(lengths.length, skills.length);
    assert.ok(Math.min(...lengths) >= 60, lengths.join());
    assert.ok((section ?? '').length > 15_000, 'the room is used');
    const omitted = count - skills.length;
    assert.equal(
      warning.includes(`; ${omitted} more can only be used by their /name.`),
      omitted > 0,
      warning,
    );
    assert.equal((section ?? '').includes(`\n${omitted} more are not listed.`), omitted > 0);
  });
}

test('where long names fill the room, whole skills are left out', () => {
  const name = (at: number): string => `${'n'.repeat(120)}${at}`;
  const { skills, section } = offerSkills(
    Array.from({ length: 200 }, (_, at) => skill(name(at), 'x'.repeat(90))),
  );
  assert.ok(skills.length > 70 && skills.length < 100, String(skills.length));
  assert.ok((section ?? '').length <= 16_000);
  assert.ok(Math.min(...lengthsIn(section)) >= 60);
});

test("with too many skills the user's are left out first", () => {
  const place = { folder: '/mine', owner: 'user', kind: 'skill', within: null } as const;
  const mine = Array.from({ length: 150 }, (_, at) => skill(`a${at}`, 'x', { place }));
  const theirs = Array.from({ length: 150 }, (_, at) => skill(`b${at}`, 'x'));
  const { skills } = offerSkills([...mine, ...theirs]);
  assert.equal(skills.filter(({ name }) => name.startsWith('b')).length, 150);
  assert.equal(skills.length, 200);
});
