import { afterEach, expect, jest, test } from '@jest/globals';
import { bookedRow, madeAtSeconds } from './booked.js';

afterEach(() => void jest.restoreAllMocks());

const ID = 'chatcmpl-01KDVDNA00K6F97558SR10X360';
const asked: string[] = [];
const answer = (ids: readonly string[], hasMore = false): void => {
  asked.length = 0;
  jest.spyOn(globalThis, 'fetch').mockImplementation((path) => {
    asked.push(String(path));
    return Promise.resolve(new Response(JSON.stringify(asked.length > 1 ? { id: ID } : { data: ids.map((id) => ({ id })), has_more: hasMore }), { status: 200 }));
  });
};
const { signal } = new AbortController();

test('an id tells when it was made, and one of another form nothing', () => {
  expect([madeAtSeconds(ID), madeAtSeconds('chatcmpl-1')]).toEqual([1_767_225_600, undefined]);
});

test('a request is looked for among the latest, where one that is not booked yet is no failure', async () => {
  answer(['chatcmpl-other', ID]);
  expect(await bookedRow(ID, signal)).toEqual({ id: ID });
  expect(asked).toEqual(['/api/requests?from=1767225540&limit=100']);
  answer(['chatcmpl-other']);
  await expect(bookedRow(ID, signal)).rejects.toMatchObject({ status: 404 });
  expect(asked).toHaveLength(1);
});

test('behind a page of others it is asked for itself', async () => {
  answer(['chatcmpl-other'], true);
  expect(await bookedRow(ID, signal)).toEqual({ id: ID });
  expect(asked[1]).toBe(`/api/requests/${ID}`);
});
