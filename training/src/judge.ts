/** What a trained router says of prompts: quality and cost of each model, and whether the stronger is needed. */
import type { PromptFeatures } from '@signalbox/router-core/features';
import { createJudge } from '@signalbox/router-core/quality';
import type { QualityArtefact } from '@signalbox/router-core/quality-artefact';
import type { ListPrice, ModelsFile } from './outcomes.js';

export interface Judgement {
  /** Higher = needs the stronger model more: what the ablest model gains over the mean of the others. */
  readonly score: number;
  /** Probability of a good answer, by position of the model. */
  readonly quality: readonly number[];
  /** Expected USD, by position of the model. */
  readonly cost: readonly number[];
}

/** The catalog's ability for a name that was never measured: below the middle. */
const ABILITY_OF_UNKNOWN = 0.3;
const CHARACTERS_PER_TOKEN = 4;

/** Tokens of a prompt, as the data sets estimate them. */
export function promptTokensOf(prompt: string): number {
  return Math.max(1, Math.round(prompt.length / CHARACTERS_PER_TOKEN));
}

/** USD of an answer at list prices. */
export function costUsd(price: ListPrice, inputTokens: number, outputTokens: number): number {
  return (inputTokens * price.input + outputTokens * price.output) / 1e6;
}

function middlePrice({ prices }: ModelsFile): ListPrice {
  const middle = (values: readonly number[]): number => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? 1;
  return { input: middle(Object.values(prices).map((price) => price.input)), output: middle(Object.values(prices).map((price) => price.output)) };
}

/** What the ablest model gains over the mean of the others; 0 where there are none. */
function gainOfAblest(quality: readonly number[], abilities: readonly number[]): number {
  if (quality.length < 2) return 0;
  const ablest = quality[abilities.indexOf(Math.max(...abilities))] ?? 0;
  const sum = quality.reduce((total, value) => total + value, 0);
  return ablest - (sum - ablest) / (quality.length - 1);
}

/** Prepares judgements over `names`; an unknown name gets a middling price and a low ability. */
export function createPanelJudge(artefact: QualityArtefact, models: ModelsFile, names: readonly string[]): (features: PromptFeatures, inputTokens: number) => Judgement {
  const judge = createJudge(artefact, names.map((name) => ({ measured: name, ability: ABILITY_OF_UNKNOWN })));
  const fallback = middlePrice(models);
  const prices = names.map((name) => models.prices[name] ?? fallback);
  const { catalogAbility, models: measured } = artefact.header;
  const abilities = names.map((name) => measured.find((model) => model.name === name)?.ability ?? catalogAbility.offset + catalogAbility.slope * ABILITY_OF_UNKNOWN);
  // Where nothing tells these models apart, all that were measured do.
  const others = new Set(abilities).size > 1 ? undefined : createJudge(artefact, measured.map(({ name }) => ({ measured: name, ability: ABILITY_OF_UNKNOWN })));
  const abilitiesOfAll = measured.map(({ ability }) => ability);
  return (features, inputTokens) => {
    const { quality, outputTokens } = judge(features);
    const score = others === undefined ? gainOfAblest(quality, abilities) : gainOfAblest(others(features).quality, abilitiesOfAll);
    return { score, quality, cost: prices.map((price, i) => costUsd(price, inputTokens, outputTokens[i] ?? 0)) };
  };
}
