/** The name that routing knows a conversation by and keeps with its decisions. Nothing of the conversation can be read from it. */
import { createHmac, hash } from 'node:crypto';

/**
 * 32 hex characters for the client's own id of the conversation, or without one for its opening. Every edge with this pepper
 * gives the same. Whoever has no pepper cannot tell by trying which words or which id it is of, nor whether two accounts said alike.
 */
export type SessionNames = (accountId: string, sessionId: string | undefined, opening: string) => string;

export function createSessionNames(pepper: string): SessionNames {
  // Of no use for anything else that is made under the pepper, and the other way round. 64 characters: the first block of the hash is the key's alone.
  const key = createHmac('sha256', pepper).update('session names').digest('hex');
  // Every request waits for it: one hash behind a secret, where an HMAC is two and an object. What that lacks, that a digest
  // may be continued by who does not know the secret, needs the whole digest, and half of it is kept. The length of the account's id
  // says where what a client writes begins: no two accounts hash the same text.
  return (accountId, sessionId, opening) => hash('sha256', `${key}${accountId.length}:${accountId}${sessionId === undefined ? 'opening' : 'session'}:${sessionId ?? opening}`, 'hex').slice(0, 32);
}
