/**
 * Host patterns of rules.
 *
 * 1. A host is in the form of a parsed URL: lower case, with its port unless it is the default, IPv4 as four numbers,
 *    IPv6 in brackets.
 * 2. A private host (a private address, or a name that only a private network knows) is allowed only by its exact name,
 *    never by a pattern.
 */

const portOf = /:\d+$/;

/** The host without its port and without brackets. */
const hostnameOf = (host: string): string => host.replace(portOf, '').replace(/^\[|\]$/g, '');

const privateV4 = ([a = 0, b = 0, c = 0]: readonly number[]): boolean =>
  a === 0 ||
  a === 10 ||
  a === 127 ||
  a >= 224 ||
  (a === 100 && b >= 64 && b < 128) ||
  (a === 169 && b === 254) ||
  (a === 172 && b >= 16 && b < 32) ||
  (a === 192 && ((b === 0 && c <= 2) || b === 168)) ||
  (a === 198 && (b === 18 || b === 19));

const readV4 = (text: string): readonly number[] | null => {
  if (!/^\d+\.\d+\.\d+\.\d+$/.test(text)) return null;
  const numbers = text.split('.').map(Number);
  return numbers.every((number) => number < 256) ? numbers : null;
};

/** Rewrites an IPv6 address that ends in IPv4 notation to plain groups. */
const withoutV4 = (address: string): string => {
  const groupsEnd = address.lastIndexOf(':') + 1;
  const tail = readV4(address.slice(groupsEnd));
  if (tail === null) return address;
  const [a = 0, b = 0, c = 0, d = 0] = tail;
  return `${address.slice(0, groupsEnd)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
};

/** The eight groups of an IPv6 address; null for other texts. */
const readV6 = (text: string): readonly number[] | null => {
  const [address = ''] = text.split('%');
  const plain = withoutV4(address);
  if (!/^[\da-f:]*:[\da-f:]*$/i.test(plain)) return null;
  const [before = '', after, more] = plain.split('::');
  if (more !== undefined) return null;
  const groups = (part: string): readonly number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(before), groups(after ?? '')];
  const missing = after === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const all = [...first, ...Array.from({ length: missing }, () => 0), ...last];
  return all.length === 8 ? all : null;
};

/** The IPv4 address inside one of IPv6: mapped, translated (64:ff9b::), 6to4. */
const insideV6 = (groups: readonly number[]): readonly number[] | null => {
  const v4 = (high = 0, low = 0): readonly number[] => [high >> 8, high & 255, low >> 8, low & 255];
  const [first, second] = groups;
  const zeros = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0);
  if (zeros(0, 5) && (groups[5] === 0xffff || groups[5] === 0)) return v4(groups[6], groups[7]);
  if (first === 0x64 && second === 0xff9b) return v4(groups[6], groups[7]);
  return first === 0x2002 ? v4(groups[1], groups[2]) : null;
};

/** Whether an IPv6 address is private: everything outside 2000::/3 is local, multicast or unassigned. */
const privateV6 = (groups: readonly number[]): boolean => {
  const inside = insideV6(groups);
  if (inside !== null) return privateV4(inside);
  const [first = 0] = groups;
  return first < 0x2000 || first > 0x3fff;
};

/** Whether an IP address is private; null for texts that are not an address. */
export const isPrivateAddress = (address: string): boolean | null => {
  const v4 = readV4(address);
  if (v4 !== null) return privateV4(v4);
  const v6 = address.includes(':') ? readV6(address) : null;
  return v6 === null ? null : privateV6(v6);
};

const PRIVATE_NAME = /(^|\.)(localhost|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

/** Whether a host is private (rule 2). */
export const isPrivateHost = (host: string): boolean => {
  const name = hostnameOf(host).replace(/\.$/, '');
  const address = isPrivateAddress(name);
  if (address !== null) return address;
  return !name.includes('.') || PRIVATE_NAME.test(name);
};

/**
 * Whether a pattern matches the host: `example.com` with any port, `example.com:8080` with this port, `*.example.com`
 * every subdomain, `*` every host.
 */
export const matchesHost = (pattern: string, host: string): boolean => {
  const wanted = pattern.toLowerCase();
  const named = portOf.test(wanted) ? host : host.replace(portOf, '');
  if (wanted === '*' || wanted === named) return true;
  return wanted.startsWith('*.') && named.endsWith(wanted.slice(1));
};

const PATTERN = /^(\*|(\*\.)?[a-z\d_-]+(\.[a-z\d_-]+)*|\[[\da-f:.]+\])(:\d{1,5})?$/i;

/** Whether a text is a host pattern: without scheme, user and path. */
export const isHostPattern = (text: string): boolean => PATTERN.test(text);
