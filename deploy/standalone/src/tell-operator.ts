/** A line for a person; stdout is for what the start answers. */
export const tellOperator = (line: string): void => void process.stderr.write(`${line}\n`);
