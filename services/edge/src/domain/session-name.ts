/** The name under which routing recognizes a conversation and stores its decisions. Nothing of the conversation can be read from it. */
import { createHmac, hash } from 'node:crypto';

/**
 * 32 hex characters, made from the client's id of the conversation, or without one from its opening text. The same on every
 * edge with this pepper. Without the pepper nobody can find the text or id by guessing, or see that two accounts used the same.
 */
export type SessionNames = (accountId: string, sessionId: string | undefined, opening: string) => string;

export function createSessionNames(pepper: string): SessionNames {
  // A key derived for this purpose only. Its 64 characters fill the first block of the hash.
  const key = createHmac('sha256', pepper).update('session names').digest('hex');
  // Cheaper than an HMAC, since every request waits for it: one hash with a secret prefix. Its weakness, the length extension,
  // needs the whole digest, and only half of it is kept. The length of the account's id marks where the client's text
  // begins, so that no two accounts hash the same input.
  return (accountId, sessionId, opening) => hash('sha256', `${key}${accountId.length}:${accountId}${sessionId === undefined ? 'opening' : 'session'}:${sessionId ?? opening}`, 'hex').slice(0, 32);
}
