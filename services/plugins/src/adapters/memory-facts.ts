/** Facts in memory, for tests. */
import { RECENCY_MS } from '../domain/recall.js';
import type { Fact, FactStore, MemoryOwner } from '../domain/ports.js';
import { wordsOf } from './memory-index.js';

export function createMemoryFacts(): FactStore {
  const byOwner = new Map<string, Map<string, Fact>>();
  let made = 0;
  const of = ({ accountId, user }: MemoryOwner): Map<string, Fact> => {
    const key = JSON.stringify([accountId, user]);
    const known = byOwner.get(key) ?? new Map<string, Fact>();
    byOwner.set(key, known);
    return known;
  };
  const newestFirst = (a: Fact, b: Fact): number => b.updatedAtMs - a.updatedAtMs;
  return {
    put: (owner, namespace, facts, nowMs, keepMax) => {
      const own = of(owner);
      for (const { topic, text } of facts) {
        const key = `${namespace}\n${topic}`;
        own.set(key, { id: own.get(key)?.id ?? `fact-${(made += 1)}`, text, namespace, createdAtMs: own.get(key)?.createdAtMs ?? nowMs, updatedAtMs: nowMs });
      }
      const old = [...own.entries()].filter(([, fact]) => fact.namespace === namespace).sort(([, a], [, b]) => newestFirst(a, b)).slice(keepMax);
      for (const [key] of old) own.delete(key);
      return Promise.resolve();
    },
    recall: (owner, namespace, text, limit, nowMs) => {
      const asked = wordsOf(text);
      const scoreOf = (fact: Fact): number => [...wordsOf(fact.text)].filter((word) => asked.has(word)).length + Math.exp(-Math.max(0, nowMs - fact.updatedAtMs) / RECENCY_MS);
      return Promise.resolve([...of(owner).values()].filter((fact) => fact.namespace === namespace).sort((a, b) => scoreOf(b) - scoreOf(a)).slice(0, limit));
    },
    list: (owner, namespace, limit, after) => {
      const all = [...of(owner).values()].sort(newestFirst);
      const at = after === undefined ? -1 : all.findIndex(({ id }) => id === after);
      if (after !== undefined && at === -1) return Promise.resolve(undefined);
      return Promise.resolve(all.slice(at + 1).filter((fact) => namespace === undefined || fact.namespace === namespace).slice(0, limit));
    },
    clear: (owner, namespace) => {
      const own = of(owner);
      const gone = [...own.entries()].filter(([, fact]) => namespace === undefined || fact.namespace === namespace);
      for (const [key] of gone) own.delete(key);
      return Promise.resolve(gone.length);
    },
  };
}
