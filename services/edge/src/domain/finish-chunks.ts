/** Chunks that end choices of a stream. */

/** Indexes of the choices in a chunk. */
export const indexesOf = ({ choices }: { readonly choices: Uint8Array }): readonly number[] => (JSON.parse(Buffer.from(choices).toString('utf8')) as readonly { readonly index: number }[]).map(({ index }) => index);

export const finishChunk = (reason: string): Buffer => Buffer.from(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":${JSON.stringify(reason === '' || reason === 'error' ? 'stop' : reason)}}]`);
