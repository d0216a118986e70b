import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isInNetwork, parseAddress, parseNetwork, specialRangeOf, type SpecialRange } from './address.js';

const rangeOf = (text: string): SpecialRange | undefined => {
  const bytes = parseAddress(text);
  if (bytes === undefined) throw new Error(`not an address: ${text}`);
  return specialRangeOf(bytes);
};

/** First and last address of each range, and the neighbours outside (undefined = public). */
const EDGES: readonly (readonly [string, string, SpecialRange, readonly (readonly [string, SpecialRange | undefined])[]])[] = [
  ['0.0.0.0', '0.255.255.255', 'unspecified', [['1.0.0.0', undefined]]],
  [
    '10.0.0.0',
    '10.255.255.255',
    'private',
    [
      ['9.255.255.255', undefined],
      ['11.0.0.0', undefined],
    ],
  ],
  [
    '100.64.0.0',
    '100.127.255.255',
    'cgnat',
    [
      ['100.63.255.255', undefined],
      ['100.128.0.0', undefined],
    ],
  ],
  [
    '127.0.0.0',
    '127.255.255.255',
    'loopback',
    [
      ['126.255.255.255', undefined],
      ['128.0.0.0', undefined],
    ],
  ],
  [
    '169.254.0.0',
    '169.254.255.255',
    'link-local',
    [
      ['169.253.255.255', undefined],
      ['169.255.0.0', undefined],
    ],
  ],
  [
    '172.16.0.0',
    '172.31.255.255',
    'private',
    [
      ['172.15.255.255', undefined],
      ['172.32.0.0', undefined],
    ],
  ],
  [
    '192.0.0.0',
    '192.0.0.255',
    'reserved',
    [
      ['191.255.255.255', undefined],
      ['192.0.1.0', undefined],
    ],
  ],
  [
    '192.0.2.0',
    '192.0.2.255',
    'documentation',
    [
      ['192.0.1.255', undefined],
      ['192.0.3.0', undefined],
    ],
  ],
  [
    '192.88.99.0',
    '192.88.99.255',
    'embedded-ipv4',
    [
      ['192.88.98.255', undefined],
      ['192.88.100.0', undefined],
    ],
  ],
  [
    '192.168.0.0',
    '192.168.255.255',
    'private',
    [
      ['192.167.255.255', undefined],
      ['192.169.0.0', undefined],
    ],
  ],
  [
    '198.18.0.0',
    '198.19.255.255',
    'benchmarking',
    [
      ['198.17.255.255', undefined],
      ['198.20.0.0', undefined],
    ],
  ],
  [
    '198.51.100.0',
    '198.51.100.255',
    'documentation',
    [
      ['198.51.99.255', undefined],
      ['198.51.101.0', undefined],
    ],
  ],
  [
    '203.0.113.0',
    '203.0.113.255',
    'documentation',
    [
      ['203.0.112.255', undefined],
      ['203.0.114.0', undefined],
    ],
  ],
  [
    '224.0.0.0',
    '239.255.255.255',
    'multicast',
    [
      ['223.255.255.255', undefined],
      ['240.0.0.0', 'reserved'],
    ],
  ],
  ['240.0.0.0', '255.255.255.255', 'reserved', []],
  ['::2', '::ffff:ffff', 'embedded-ipv4', []],
  [
    '::ffff:0.0.0.0',
    '::ffff:255.255.255.255',
    'embedded-ipv4',
    [
      ['::fffe:ffff:ffff', 'reserved'],
      ['::1:0:0:0', 'reserved'],
    ],
  ],
  ['::ffff:0:0.0.0.0', '::ffff:0:255.255.255.255', 'embedded-ipv4', []],
  [
    '64:ff9b::',
    '64:ff9b::ffff:ffff',
    'embedded-ipv4',
    [
      ['64:ff9a:ffff::', 'reserved'],
      ['64:ff9b:0:0:0:1::', 'reserved'],
    ],
  ],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'embedded-ipv4', [['64:ff9b:2::', 'reserved']]],
  ['100::', '100::ffff:ffff:ffff:ffff', 'reserved', []],
  [
    '2001::',
    '2001:0:ffff:ffff:ffff:ffff:ffff:ffff',
    'embedded-ipv4',
    [
      ['2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined],
      ['2001:1::', 'reserved'],
    ],
  ],
  ['2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff', 'benchmarking', []],
  ['2001:1::1', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved', [['2001:200::', undefined]]],
  [
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    'documentation',
    [
      ['2001:db7:ffff::', undefined],
      ['2001:db9::', undefined],
    ],
  ],
  [
    '2002::',
    '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    'embedded-ipv4',
    [
      ['2001:ffff::', undefined],
      ['2003::', undefined],
    ],
  ],
  [
    '3fff::',
    '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    'documentation',
    [
      ['3ffe:ffff::', undefined],
      ['3fff:1000::', undefined],
    ],
  ],
  ['4000::', '5f00::1', 'reserved', [['3fff:ffff::', undefined]]],
  [
    'fc00::',
    'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    'private',
    [
      ['fbff::', 'reserved'],
      ['fe00::', 'reserved'],
    ],
  ],
  [
    'fe80::',
    'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    'link-local',
    [
      ['fe7f::', 'reserved'],
      ['fec0::', 'private'],
    ],
  ],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'private', []],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'multicast', []],
  ['2a00::5efe:10.0.0.1', '2a00::200:5efe:10.0.0.1', 'embedded-ipv4', []],
];

describe('special ranges', () => {
  test.each(EDGES)('%s to %s is %s, and its neighbours are not', (first, last, range, neighbours) => {
    expect([rangeOf(first), rangeOf(last)]).toEqual([range, range]);
    expect(neighbours.map(([address]) => [address, rangeOf(address)])).toEqual(neighbours);
  });

  test.each([
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    '::169.254.169.254',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::ffff:0:100.100.100.200',
    '64:ff9b::169.254.170.2',
    '64:ff9b:1:a9fe:a9:fe00::',
    '64:ff9b:1:a9:fe:a9fe::',
    '64:ff9b:1::a9:fea9:fe00:0',
    '64:ff9b:1::169.254.169.254',
    '2002:a9fe:a9fe::1',
    '2001:0:4136:e378:8000:63bf:5601:5601',
    '2a00::5efe:169.254.169.254',
  ])('%s is metadata', (address) => {
    expect(rangeOf(address)).toBe('metadata');
  });

  test.each([
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['::127.0.0.1', 'embedded-ipv4'],
    ['::ffff:127.0.0.1', 'embedded-ipv4'],
    ['::ffff:7f00:1', 'embedded-ipv4'],
    ['::FFFF:8.8.8.8', 'embedded-ipv4'],
    ['64:ff9b::10.0.0.1', 'embedded-ipv4'],
    ['2002:7f00:1::', 'embedded-ipv4'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'embedded-ipv4'],
  ])('%s is %s', (address, range) => {
    expect(rangeOf(address)).toBe(range);
  });

  test.each(['1.1.1.1', '8.8.8.8', '93.184.215.14', '168.63.129.15', '2606:4700:4700::1111', '2a00:1450:4001:80e::200e', '2001:4860:4860::8888'])(
    '%s is public',
    (address) => {
      expect(rangeOf(address)).toBeUndefined();
    },
  );

  test('no address outside global unicast is public, and every IPv6 form of an IPv4 address is refused', () => {
    const groups = fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(groups, (all) => {
        const range = rangeOf(all.map((group) => group.toString(16)).join(':'));
        if ((all[0] ?? 0) >> 13 !== 1) expect(range).toBeDefined();
      }),
    );
    fc.assert(
      fc.property(fc.ipV4(), (v4) => {
        for (const prefix of ['::', '::ffff:', '::ffff:0:', '64:ff9b::', '64:ff9b:1::', '2a00::5efe:']) expect(rangeOf(prefix + v4)).toBeDefined();
      }),
    );
  });
});

describe('addresses', () => {
  test.each(['', '1.2.3', '01.2.3.4', '0x7f.0.0.1', '256.1.1.1', '1.2.3.4.5', ' 1.2.3.4', 'fe80::1%eth0', '1::2::3', '12345::', 'localhost', '[::1]'])(
    '%j is none',
    (text) => {
      expect(parseAddress(text)).toBeUndefined();
    },
  );

  test('every spelling of an IPv6 address gives the same bytes', () => {
    const expected = parseAddress('2a00:0:0:1:0:0:a00:1');
    for (const text of ['2a00::1:0:0:a00:1', '2a00:0:0:1::a00:1', '2A00:0000:0000:0001:0000:0000:0A00:0001', '2a00::1:0:0:10.0.0.1'])
      expect(parseAddress(text)).toEqual(expected);
  });

  test.each([
    ['10.1.2.3', '10.0.0.0/8', true],
    ['11.0.0.0', '10.0.0.0/8', false],
    ['10.63.255.255', '10.0.0.0/10', true],
    ['10.64.0.0', '10.0.0.0/10', false],
    ['8.8.8.8', '0.0.0.0/0', true],
    ['::1', '0.0.0.0/0', false],
    ['1.2.3.4', '1.2.3.4', true],
    ['fd12::9', 'fd00::/8', true],
  ])('%s in %s: %s', (address, network, isIn) => {
    const [bytes, range] = [parseAddress(address), parseNetwork(network)];
    expect(bytes !== undefined && range !== undefined && isInNetwork(bytes, range)).toBe(isIn);
  });

  test.each(['10.0.0.1/8', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'x/8'])('%s is no network', (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });
});
