/** Server-sent events of a completion, cut anywhere. */

/** Feeds text in, gives the data of whole events out; comments are dropped. */
export function createEventReader(onData: (data: string) => void): { push(text: string): void } {
  let rest = '';
  return {
    push: (text) => {
      rest += text;
      for (;;) {
        const end = /\r?\n\r?\n/.exec(rest);
        if (end === null) return;
        const event = rest.slice(0, end.index);
        rest = rest.slice(end.index + end[0].length);
        const data = event
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).replace(/^ /, ''))
          .join('\n');
        if (data !== '') onData(data);
      }
    },
  };
}
