/** Which plugins exist, and which need a paid account (specification, Errors; contract, section 9). */

export const PLUGINS = {
  'web-search': { isPaid: false },
  gutenberg: { isPaid: false },
  'code-exec': { isPaid: false },
  'image-gen': { isPaid: true },
  'pdf-reader': { isPaid: true },
  memory: { isPaid: true },
} as const;

/** What it reads is a file no longer: where it failed, the model is asked with the file itself. */
export const FILE_READER = 'pdf-reader' satisfies keyof typeof PLUGINS;

export type PluginId = keyof typeof PLUGINS;

export function isPluginId(text: string): text is PluginId {
  return Object.hasOwn(PLUGINS, text);
}
