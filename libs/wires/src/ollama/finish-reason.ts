/** Why Ollama was done, as ours. */
import type { FinishReason } from '../canonical.js';

/** A model was loaded or put away, and nothing was asked of it. */
export function isNoAnswer(reason: string): boolean {
  return reason === 'load' || reason === 'unload';
}

/** Unknown reasons are `stop`. */
export function mapDoneReason(reason: string): FinishReason {
  return reason === 'length' ? 'length' : 'stop';
}
