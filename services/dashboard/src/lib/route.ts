/** Which page is shown, by the address below /dashboard. */
import { useSyncExternalStore } from 'react';

const BASE = '/dashboard';
const listeners = new Set<() => void>();
const announce = (): void => listeners.forEach((listener) => listener());

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('popstate', listener);
  };
}

/** `/requests/chatcmpl-…`; `/` for the first page. */
export function useRoute(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname.slice(BASE.length).replace(/\/$/, '') || '/');
}

/** What a page keeps in its entry of the history: after a reload or a way back it is there again. Plain values only. */
export function useKept<Value>(name: string, first: Value): readonly [Value, (value: Value) => void] {
  const entry = useSyncExternalStore(subscribe, () => window.history.state as Readonly<Record<string, Value>> | null);
  const keep = (value: Value): void => {
    window.history.replaceState({ ...(window.history.state as object | null), [name]: value }, '');
    announce();
  };
  return [entry?.[name] ?? first, keep];
}

/** For whoever signs in next. */
export function forgetKept(): void {
  window.history.replaceState(null, '');
  announce();
}

export function hrefOf(path: string): string {
  return path === '/' ? BASE : `${BASE}${path}`;
}

export function navigate(path: string): void {
  window.history.pushState(null, '', hrefOf(path));
  window.scrollTo(0, 0);
  announce();
}
