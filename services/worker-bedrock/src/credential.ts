/** What a Bedrock credential is, told by its form: an API key, or an AWS key pair. */

export type BedrockCredential =
  | { readonly kind: 'api-key'; readonly key: string }
  | { readonly kind: 'key-pair'; readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken: string | undefined };

/** `id:secret` or `id:secret:session`; anything else is an API key. None of the parts can hold a colon. */
export function readCredential(text: string): BedrockCredential {
  const [accessKeyId = '', secretAccessKey, sessionToken] = text.split(':');
  return secretAccessKey === undefined ? { kind: 'api-key', key: text } : { kind: 'key-pair', accessKeyId, secretAccessKey, sessionToken };
}
