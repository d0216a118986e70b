/** Finds facts that users state about themselves, without a model: first-person sentences of a few known kinds. */
import { holdsKey } from '@signalbox/kernel/key-shapes';
import type { NewFact } from '../../domain/ports.js';

const TEXT_CHARS_MAX = 20_000;
const SENTENCE_CHARS_MAX = 300;
const FACTS_MAX = 20;

interface Kind {
  readonly pattern: RegExp;
  /** A new fact replaces the one with the same topic: a person has one name. Absent = each sentence is its own topic. */
  readonly topic?: string;
}

/** The first match counts. Questions never match. */
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
/** Secrets that must not be stored: words for them, and card numbers. */
const SECRET = /\b(?:pass ?words?|passwd|passphrases?|passcodes?|passkeys?|credentials?|pin (?:code|number)s?|(?:credit|debit) cards?|card numbers?|cvv|cvc|social security|ssn|(?:seed|recovery) (?:phrase|code)s?)\b|\b(?:\d[ -]?){13,19}\b/i;
/** Only in capitals; in lower case a pin may be a badge. */
const PIN = /\bPINs?\b/;
/** Keys, tokens and secrets of technical things, not keys of music, arcade tokens or the secret of success. */
const SECRET_KEY = /\b(?:api|access|secret|private|ssh|gpg|pgp|encryption|decryption|signing|licen[cs]e|product|activation|recovery|wi-?fi|wlan|vpn|network|security|master|deploy|service|account|admin|root|session|auth\w*|refresh|bot|bearer|oauth|client|shared|app|webhook|storage|subscription|aws|azure|gcp|github|gitlab|google|hugging ?face|slack|stripe|openai|anthropic|claude|groq|gemini|mistral|cohere|openrouter|wallet)[ _-]?(?:keys?|tokens?|secrets?)\b|\b(?:door|alarm|gate|safe|entry|unlock|security|access|verification)[ -]codes?\b/i;
/** A key followed by its value: letters and digits mixed, or four digits. */
const TOLD_KEY = /\b(?:keys?|tokens?|secrets?|pins?|bearer)\b(?:\s+(?:for|of|to|at|on|from|in)(?:\s+\S+){1,4}?)?(?:\s+(?:is|are|was|were|will be)(?:\s+now)?\s*:?|\s*[:=]|(?<=bearer))\s*["'`]?(?=\d{4}|\S{5})(?=\S*[a-z]\S*\d|\S*\d\S*[a-z]|\d{4})\S/i;
/** The value first, then the word. */
const USED_KEY = /(?:^|\s)["'`]?(?=\d{4}|\S{5})(?=\S*[a-z]\S*\d|\S*\d\S*[a-z]|\d{4})\S+\s+(?:is|as)\s+(?:my|our|the|a)\s+(?:\S+\s+){0,2}(?:key|token|secret|pin)\b/i;
/** A plain word at the end may be a secret too, if it is the speaker's own key. */
const MY_KEY = /\b(?:my|our)\s+(?!favou?rite|preferred)(?:\S+\s+){0,2}(?:key|token|secret|pin)\s*(?:is|=|:)\s*\S{6,}$/i;

const isSecret = (sentence: string): boolean => [SECRET, PIN, SECRET_KEY, TOLD_KEY, USED_KEY, MY_KEY].some((pattern) => pattern.test(sentence)) || holdsKey(sentence);

function sentencesOf(text: string): readonly string[] {
  return text
    .slice(0, TEXT_CHARS_MAX)
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence.length >= 6 && sentence.length <= SENTENCE_CHARS_MAX && !sentence.endsWith('?'));
}

const normal = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim();

/** Facts in a user's message, in the user's words, without passwords, keys, tokens and card numbers. */
export function factsOf(text: string): readonly NewFact[] {
  const facts = new Map<string, NewFact>();
  for (const sentence of sentencesOf(text)) {
    if (isSecret(sentence)) continue;
    const bare = sentence.replace(REMEMBER, '');
    // "Remember that my name is Ada" has the same topic as "My name is Ada".
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
