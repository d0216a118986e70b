/** Prints a line for a person to stderr; stdout is for the `ready` line. */
export const tellOperator = (line: string): void => void process.stderr.write(`${line}\n`);
