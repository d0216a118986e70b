/** What a person says of themselves, found without a model: sentences in the first person of a few known kinds. */
import type { NewFact } from '../../domain/ports.js';

const TEXT_CHARS_MAX = 20_000;
const SENTENCE_CHARS_MAX = 300;
const FACTS_MAX = 20;

interface Kind {
  readonly pattern: RegExp;
  /** Facts of this topic replace each other: a person has one name. Absent = each sentence is its own. */
  readonly topic?: string;
}

/** The first that fits counts. Questions never do. */
const KINDS: readonly Kind[] = [
  { pattern: /^(?:please\s+)?(?:remember|note|keep in mind|don't forget|do not forget)(?:\s+that)?[\s:,]+\S/i },
  { pattern: /\bmy (?:full |first )?name is\s+\S|\bi am called\s+\S|\bcall me\s+\S/i, topic: 'name' },
  { pattern: /\bi(?:'m| am) \d{1,3} years old\b|\bmy birthday is\b|\bi was born\b/i, topic: 'age' },
  { pattern: /\bi (?:now )?live (?:in|at|near)\s+\S|\bi(?:'ve| have)? moved to\s+\S|\bi(?:'m| am) (?:based|living) in\s+\S/i, topic: 'home' },
  { pattern: /\bi work (?:as|at|for|in)\s+\S|\bmy job is\b|\bi(?:'m| am) an? [\w-]+ (?:by profession|by trade)\b/i, topic: 'work' },
  { pattern: /\bmy (?:time ?zone|timezone) is\b/i, topic: 'timezone' },
  { pattern: /\bi(?:'m| am) allergic to\b|\bi(?:'m| am) (?:a )?(?:vegan|vegetarian|lactose|gluten)/i },
  { pattern: /\bmy (?:favou?rite|preferred) [\w ]{1,30} (?:is|are)\b/i },
  { pattern: /\bi (?:really |always |usually |never |don't |do not )?(?:like|love|hate|dislike|prefer|enjoy|speak|use|own|play|study|drive|eat|drink)\b/i },
  { pattern: /\bmy (?:wife|husband|partner|son|daughter|child|children|kids|mother|father|brother|sister|dog|cat|boss|team|company|car|house|email|phone|native language)(?:'s name)? (?:is|are|has|have|works|lives)\b/i },
  { pattern: /\bi(?:'m| am) (?:from|married|learning|training|working on|building|writing|studying|planning)\b|\bi have (?:a|an|two|three|four|\d+)\s+\S/i },
];

const FAVOURITE = /\bmy (?:favou?rite|preferred) ([\w ]{1,30}?) (?:is|are)\b/i;
const REMEMBER = /^(?:please\s+)?(?:remember|note|keep in mind|don't forget|do not forget)(?:\s+that)?[\s:,]+/i;
/** What nobody means to have kept. */
const SECRET = /\b(?:password|passphrase|passcode|pin code|secret key|api key|credit card|card number|cvv|social security)\b|\b(?:sk|sbx|ghp|xox[bap])[-_][\w-]{8,}|\b(?:\d[ -]?){13,19}\b/i;

function sentencesOf(text: string): readonly string[] {
  return text
    .slice(0, TEXT_CHARS_MAX)
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence.length >= 6 && sentence.length <= SENTENCE_CHARS_MAX && !sentence.endsWith('?'));
}

const normal = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim();

/** Facts of a message of a user, in its words. Passwords, keys and card numbers are left out. */
export function factsOf(text: string): readonly NewFact[] {
  const facts = new Map<string, NewFact>();
  for (const sentence of sentencesOf(text)) {
    if (SECRET.test(sentence)) continue;
    const bare = sentence.replace(REMEMBER, '');
    // "Remember that my name is Ada" is of the same topic as "My name is Ada".
    const kind = KINDS.slice(1).find(({ pattern }) => pattern.test(bare)) ?? KINDS.slice(0, 1).find(({ pattern }) => pattern.test(sentence));
    if (kind === undefined) continue;
    const favourite = FAVOURITE.exec(bare)?.[1];
    const topic = kind.topic ?? (favourite === undefined ? `said:${normal(bare).slice(0, 200)}` : `favourite:${normal(favourite)}`);
    facts.delete(topic);
    facts.set(topic, { topic, text: bare });
    if (facts.size === FACTS_MAX) break;
  }
  return [...facts.values()];
}
