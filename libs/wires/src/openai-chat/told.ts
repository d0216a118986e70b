import type { FinishReason, StreamSummary, Usage } from '../canonical.js';

/** What is known of the stream so far. */
export class Told implements StreamSummary {
  usage: Usage | undefined;
  promptUsage: Usage | undefined;
  usageUnreadable = false;
  finishReason: FinishReason | '' = '';
  outputBytes = 0;
  thoughtBytes = 0;
  contentSeen = false;
  isFinished = false;
  isComplete = false;
  systemFingerprint = '';
  serviceTier = '';
}
