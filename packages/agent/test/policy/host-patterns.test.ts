import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isHostPattern,
  isPrivateAddress,
  isPrivateHost,
  matchesHost,
} from '../../src/policy/patterns.js';

const privateAddresses =
  '0.0.0.0 10.1.2.3 127.0.0.1 127.9.9.9 100.64.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.168.0.1 192.0.0.8 192.0.2.1 198.18.0.1 198.19.0.1 224.0.0.1 255.255.255.255 ' +
  ':: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 ff02::1 ::ffff:10.0.0.1 ::ffff:7f00:1 ::10.0.0.1 64:ff9b::10.0.0.1 2002:a00:1:: 4000::1 1000::1 ::ffff:10.200.0.1 ::1234:808:808 64:1::808:808 64:ff9b:1:a00:0:100:808:808';
const publicAddresses =
  '1.1.1.1 8.8.8.8 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.167.0.1 192.169.0.1 198.20.0.1 223.255.255.255 8.100.0.1 169.1.1.1 8.254.0.1 8.168.0.1 8.0.1.1 192.0.9.1 8.18.0.1 2606:4700::1111 2001:db8::1 64:ff9b::8.8.8.8 ::ffff:8.8.8.8 2002:808:808:: 2001:db8:1:2:3:4:5:6 ::8.8.8.8 2001:ff9b::a00:1 2000::1 3fff::1';

for (const address of privateAddresses.split(' ')) {
  test(`${address} is private`, () => assert.equal(isPrivateAddress(address), true));
}
for (const address of publicAddresses.split(' ')) {
  test(`${address} is not private`, () => assert.equal(isPrivateAddress(address), false));
}
for (const name of [
  'example.com',
  '1.2.3',
  '1.2.3.256',
  '1.2.3.4.5',
  'a1.2.3.4',
  '0x1.2.3.4',
  '1.2.3.0x4',
  'a:b',
  '',
  '1:2:3',
  '::1::',
  'z::1',
  '::1z',
]) {
  test(`"${name}" is no address`, () => assert.equal(isPrivateAddress(name), null));
}

const hosts: readonly (readonly [host: string, isPrivate: boolean])[] = [
  ['example.com', false],
  ['example.com:8080', false],
  ['localhost', true],
  ['localhost:3000', true],
  ['localhost.', true],
  ['a.localhost', true],
  ['printer', true],
  ['printer.local', true],
  ['home.arpa', true],
  ['router.home.arpa', true],
  ['myhome.arpa', false],
  ['db.internal:5432', true],
  ['notlocalhost.com', false],
  ['localhost.example.com', false],
  ['127.0.0.1:80', true],
  ['[::1]', true],
  ['[::1]:8080', true],
  ['[2606:4700::1111]', false],
  // Brackets stand around an address, or it is none: what can't be read is not let out.
  ['2606[:4700::a', true],
  ['[2606:4700]::a', true],
  ['8.8.8.8', false],
];
for (const [host, isPrivate] of hosts) {
  test(`${host} is ${isPrivate ? '' : 'not '}private`, () =>
    assert.equal(isPrivateHost(host), isPrivate));
}

const patterns: readonly (readonly [pattern: string, fits: string, doesNot: string])[] = [
  ['example.com', 'example.com example.com:8080', 'a.example.com example.com.evil.org'],
  ['Example.com', 'example.com', 'example.org'],
  ['example.com:8080', 'example.com:8080', 'example.com example.com:80'],
  ['*.example.com', 'a.example.com b.a.example.com:1', 'example.com badexample.com'],
  ['*', 'example.com localhost:1', ''],
  ['evil.com', 'evil.com. evil.com.:8080', 'evil.com.org.'],
  ['*.evil.com', 'a.evil.com.', 'evil.com.'],
  ['*:8080', 'example.com:8080 [::1]:8080', 'example.com example.com:18080'],
  ['[::1]', '[::1] [::1]:8080', '[::2]'],
];
for (const [pattern, fits, doesNot] of patterns) {
  test(`${pattern} means ${fits}, not ${doesNot}`, () => {
    const tried = `${fits} ${doesNot}`.trim().split(' ');
    assert.deepEqual(
      tried.filter((host) => matchesHost(pattern, host)),
      fits.split(' '),
    );
  });
}

test('a pattern with the port that no host has, since it is the default, is refused', () => {
  assert.ok(isHostPattern('example.com:8443') && isHostPattern('*:4430'));
  for (const pattern of ['example.com:443', '*.example.com:80', '*:443'])
    assert.ok(!isHostPattern(pattern), pattern);
});
