/** Calls and results of tools as words, for who is told of no tools. */

/** `args`: JSON text as the model wrote it; empty = none. */
export function calledInWords(name: string, args: string): string {
  return `[I called the tool ${name} with ${args.trim() === '' ? '{}' : args}]`;
}

export function answeredInWords(name: string, text: string): string {
  return `[The tool ${name} answered: ${text}]`;
}
