/** Which plugins exist, and which need an account on a paid tier (docs/plugins.md). */

export const PLUGINS = {
  'web-search': { isPaid: false },
  gutenberg: { isPaid: false },
  'code-exec': { isPaid: false },
  'image-gen': { isPaid: true },
  'pdf-reader': { isPaid: true },
  memory: { isPaid: true },
} as const;

/** The plugin that replaces files by their text. If it fails, the model gets the file itself. */
export const FILE_READER = 'pdf-reader' satisfies keyof typeof PLUGINS;

export type PluginId = keyof typeof PLUGINS;

export function isPluginId(text: string): text is PluginId {
  return Object.hasOwn(PLUGINS, text);
}
