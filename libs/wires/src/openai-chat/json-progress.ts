/** Whether JSON that comes in pieces is whole by now: each character is looked at once, however often that is asked. */

import { jsonRootOf } from '@signalbox/kernel/json-root';

const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;
/** Roots that are no object and no list: longer ones are no arguments of a call. */
const SCALAR_CHARS_MAX = 64;

const isOpening = (code: number): boolean => code === 91 || code === 123;
const isClosing = (code: number): boolean => code === 93 || code === 125;

export class JsonProgress {
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  private hasRoot = false;
  /** Something stands behind the root, or before it: nothing makes that JSON any more. */
  private isBroken = false;
  /** Of the root, once its last bracket has come. */
  private verdict: boolean | undefined;

  push(text: string): void {
    for (let i = 0; i < text.length && !this.isBroken; i += 1) this.step(text.charCodeAt(i));
  }

  /** `text`: all that was pushed. */
  isWhole(text: string): boolean {
    if (!this.hasRoot) return text.length <= SCALAR_CHARS_MAX && jsonRootOf(text) !== undefined;
    if (this.isBroken || this.depth > 0) return false;
    return (this.verdict ??= jsonRootOf(text) !== undefined);
  }

  /** A list or object has begun that does not end. */
  isOpen(): boolean {
    return !this.isBroken && this.depth > 0;
  }

  private step(code: number): void {
    if (this.isInString) {
      if (this.isEscaped) this.isEscaped = false;
      else if (code === BACKSLASH) this.isEscaped = true;
      else if (code === QUOTE) this.isInString = false;
    } else if (code <= SPACE) return;
    else if (this.hasRoot && this.depth === 0) this.isBroken = true;
    else if (code === QUOTE) this.isInString = this.hasRoot;
    else if (isOpening(code)) {
      this.hasRoot = true;
      this.depth += 1;
    } else if (isClosing(code)) this.depth -= 1;
  }
}
