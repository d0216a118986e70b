/** Names of functions as the Messages API takes them. */
import { createToolNames } from '../tool-names.js';

export const TOOL_NAMES = createToolNames({ chars: 'A-Za-z0-9_-', firstChars: 'A-Za-z0-9_-', charsMax: 128 });
