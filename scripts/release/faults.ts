/** Reasons that prevent a release. */

export type Release = {
  /** The text of package.json. */
  readonly manifest: string;
  readonly changelog: string;
  /** The tag that is published; null before there is one. */
  readonly tag: string | null;
  /** Changed files according to git, one per line. */
  readonly changes: string;
};

type Manifest = {
  readonly version?: string;
  readonly repository?: unknown;
  readonly private?: boolean;
};

const VERSION = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

/** The text below the heading "## NAME", up to the next one; null without such a heading. */
const sectionOf = (changelog: string, name: string): string | null => {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find(
    (section) => section.slice(0, section.indexOf('\n')).split(' ')[0] === name,
  );
  return found === undefined ? null : found.slice(found.indexOf('\n')).trim();
};

export const releaseFaults = ({
  manifest,
  changelog,
  tag,
  changes,
}: Release): readonly string[] => {
  const { version = '', repository, private: isPrivate } = JSON.parse(manifest) as Manifest; // npm checks its shape
  const notes = sectionOf(changelog, version);
  const faults = [
    [!VERSION.test(version), `package.json: '${version}' is no version such as 1.2.3`],
    [isPrivate === true, 'package.json: it is private, npm will refuse it'],
    [
      repository === undefined,
      'package.json: it names no repository; provenance needs the one that the workflow runs in',
    ],
    [notes === null || notes === '', `CHANGELOG.md: nothing stands under '## ${version}'`],
    [
      new RegExp(`^## ${version} \\(unreleased\\)`, 'm').test(changelog),
      `CHANGELOG.md: '## ${version}' has no date`,
    ],
    [
      (sectionOf(changelog, 'Unreleased') ?? '') !== '',
      `CHANGELOG.md: move what stands under '## Unreleased' to '## ${version}'`,
    ],
    [tag !== null && tag !== `v${version}`, `the tag is ${tag}, package.json says ${version}`],
    [changes.trim() !== '', `uncommitted changes:\n${changes.trimEnd()}`],
  ] as const;
  return faults.filter(([isFault]) => isFault).map(([, text]) => text);
};
