/** A Bedrock credential is an API key or an AWS key pair, recognised by its form. */

export type BedrockCredential =
  | { readonly kind: 'api-key'; readonly key: string }
  | { readonly kind: 'key-pair'; readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken: string | undefined };

/** `id:secret` or `id:secret:session` is a key pair; anything else is an API key. None of the parts can contain a colon. */
export function readCredential(text: string): BedrockCredential {
  const [accessKeyId = '', secretAccessKey, sessionToken] = text.split(':');
  return secretAccessKey === undefined ? { kind: 'api-key', key: text } : { kind: 'key-pair', accessKeyId, secretAccessKey, sessionToken };
}
