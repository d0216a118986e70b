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

export function hrefOf(path: string): string {
  return path === '/' ? BASE : `${BASE}${path}`;
}

export function navigate(path: string): void {
  window.history.pushState(null, '', hrefOf(path));
  window.scrollTo(0, 0);
  announce();
}
