/** Colours and shapes. Shades are chosen so that text meets a contrast of 4.5 in both schemes. */
import { createTheme, type CSSVariablesResolver } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: 9,
  colors: {
    teal: ['#e6fcf5', '#c9f5e8', '#96f2d7', '#63e6be', '#38d9a9', '#20c997', '#12b886', '#0ca678', '#099268', '#066649'],
    orange: ['#fff4e6', '#ffe8cc', '#ffd8a8', '#ffc078', '#ffa94d', '#ff922b', '#fd7e14', '#f76707', '#e8590c', '#93370d'],
    red: ['#fff5f5', '#ffe3e3', '#ffc9c9', '#ffa8a8', '#ff8787', '#ff6b6b', '#fa5252', '#f03e3e', '#e03131', '#a61b1b'],
  },
  autoContrast: true,
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  fontFamily: 'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
});

export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: { '--mantine-color-dimmed': '#4b5563', '--mantine-color-placeholder': '#6b7280', '--mantine-color-body': '#f8fafa', '--mantine-color-error': '#b91c1c', '--panel': '#ffffff', '--line': '#e3e8e8', '--series-1': '#0f766e', '--series-2': '#b45309', '--series-3': '#4338ca', '--series-4': '#be185d' },
  dark: { '--mantine-color-dimmed': '#a3b0b0', '--mantine-color-placeholder': '#8b9898', '--mantine-color-body': '#0e1414', '--mantine-color-error': '#fca5a5', '--panel': '#151d1d', '--line': '#253131', '--series-1': '#2dd4bf', '--series-2': '#fbbf24', '--series-3': '#a5b4fc', '--series-4': '#f9a8d4' },
});
