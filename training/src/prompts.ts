/** Features of all prompts, extracted once by the code that serves. */
import { PLAIN_SETTING, type Cluster } from '@signalbox/router-core/clusters';
import { createFeatureExtractor, type PromptFeatures } from '@signalbox/router-core/features';
import type { Outcome } from './outcomes.js';

export interface Prompt {
  readonly outcome: Outcome;
  readonly features: PromptFeatures;
  readonly cluster: Cluster;
}

export function preparePrompts(outcomes: readonly Outcome[]): Prompt[] {
  const extract = createFeatureExtractor();
  return outcomes.map((outcome) => {
    const { cluster, buckets, words, shape } = extract(outcome.prompt, PLAIN_SETTING);
    return { outcome, cluster, features: { cluster, buckets: buckets.slice(), words: words.slice(), shape } };
  });
}
