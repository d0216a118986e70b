/** Names by which edge and routing speak of what a request holds, beside those of its fields. */

/** A stop sequence of blank space alone, such as a line's end: some wires refuse it, and are not sent it. */
export const BLANK_STOP = 'stop.blank';
