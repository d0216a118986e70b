/** The dashboard. */
import '@mantine/core/styles.css';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { cssVariables, theme } from './lib/theme.js';
import { createQueryClient } from './lib/use-api.js';

const colors = localStorageColorSchemeManager({ key: 'signalbox-colors' });
// Filled in by the server, anew for each page; styles without it are refused by the browser.
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
// Where the part that stops a page from scrolling behind a dialog looks for it.
Object.assign(globalThis, { __webpack_nonce__: nonce });
const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} cssVariablesResolver={cssVariables} colorSchemeManager={colors} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <QueryClientProvider client={createQueryClient()}>
          <App />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
