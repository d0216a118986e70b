/** Writes messages of `application/vnd.amazon.eventstream` as a host does. */
import { crc32 } from 'node:zlib';

function uint(bytes: 2 | 4, value: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

/** Header of type 7, text. */
export function textHeader(name: string, value: string): Buffer {
  const text = Buffer.from(value);
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name), Buffer.of(7), uint(2, text.length), text]);
}

export function eventMessage(headers: Buffer, payload: Buffer | string): Buffer {
  const body = Buffer.from(payload);
  const prelude = Buffer.concat([uint(4, 16 + headers.length + body.length), uint(4, headers.length)]);
  const unsigned = Buffer.concat([prelude, uint(4, crc32(prelude)), headers, body]);
  return Buffer.concat([unsigned, uint(4, crc32(unsigned))]);
}

/** One event with a JSON payload. */
export function jsonEvent(type: string, payload: unknown): Buffer {
  return eventMessage(Buffer.concat([textHeader(':event-type', type), textHeader(':content-type', 'application/json'), textHeader(':message-type', 'event')]), JSON.stringify(payload));
}

export function exceptionEvent(type: string, message: string): Buffer {
  return eventMessage(Buffer.concat([textHeader(':exception-type', type), textHeader(':content-type', 'application/json'), textHeader(':message-type', 'exception')]), JSON.stringify({ message }));
}
