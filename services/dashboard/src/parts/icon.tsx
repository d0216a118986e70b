/** Small line icons, drawn here so that none is fetched. */
import type { ReactElement } from 'react';

const PATHS = {
  overview: 'M4 19V10M10 19V5M16 19v-7M22 19H2',
  keys: 'M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8M11 12l9-9M16 7l3 3M13.5 9.5l2 2',
  requests: 'M4 6h16M4 12h16M4 18h10',
  models: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5',
  plugins: 'M9 3v5M15 3v5M6 8h12v4a6 6 0 0 1-12 0zM12 18v3',
  providers: 'M5 5h14v6H5zM5 13h14v6H5zM8 8h.01M8 16h.01',
  policy: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4',
  statement: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h7',
  memory: 'M8 4a4 4 0 0 0-4 4v2a3 3 0 0 0 0 5v1a4 4 0 0 0 8 0V8a4 4 0 0 0-4-4zM16 4a4 4 0 0 1 4 4v2a3 3 0 0 1 0 5v1a4 4 0 0 1-8 0',
  playground: 'M5 4h14v12H9l-4 4zM9 9h6M9 12h4',
  api: 'M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  moon: 'M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  back: 'M15 5l-7 7 7 7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 13l4 4L19 7',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }): ReactElement {
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth={1.8} strokeLinecap="round" strokeLinejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}
