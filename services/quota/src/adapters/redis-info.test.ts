import { expect, test } from '@jest/globals';
import { readInfo } from './redis-info.js';

test.each<[string, ReturnType<typeof readInfo>]>([
  ['# Server\r\nrun_id:abc\r\n# Memory\r\nmaxmemory:100\r\nmaxmemory_human:100B\r\nmaxmemory_policy:volatile-lru\r\n# Replication\r\nrole:master\r\n', { runId: 'abc', isReplica: false, isNode: false, eviction: { policy: 'volatile-lru', bytes: 100 } }],
  ['run_id:abc\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\nrole:slave\r\n', { runId: 'abc', isReplica: true, isNode: false, eviction: undefined }],
  ['run_id:abc\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n', { runId: 'abc', isReplica: false, isNode: false, eviction: undefined }],
  ['run_id:abc\r\nrole:master\r\n# Cluster\r\ncluster_enabled:1\r\n', { runId: 'abc', isReplica: false, isNode: true, eviction: undefined }],
  ['', { runId: 'unnamed', isReplica: false, isNode: false, eviction: undefined }],
])('%j', (text, info) => {
  expect(readInfo(text)).toEqual(info);
});
