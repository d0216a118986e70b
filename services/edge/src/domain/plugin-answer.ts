/** The answer to a request with plugins: adds annotations to it, and the plugins that ran to its figures. */
import type { Citation__Output, FileRead__Output } from '@signalbox/contracts/plugins';
import { firstChars } from '@signalbox/plugin-kit/conversation';
import type { Answer, PipelineStage, Refusal, Settlement } from './answer.js';
import { FILE_READER } from './plugins.js';

export interface PluginTraces {
  readonly stages: readonly PipelineStage[];
  readonly citations: readonly Citation__Output[];
  readonly files: readonly FileRead__Output[];
  /** Called when the request is refused for a reason of the client's (its demands or its limits), so that the plugins ran in vain. */
  readonly onWaste?: () => void;
}

interface Choice {
  readonly index?: number;
  readonly delta?: { readonly content?: unknown };
  readonly message?: { readonly content?: unknown; readonly [field: string]: unknown };
  readonly finish_reason?: unknown;
}

/** Routing's name for the requirement that excludes endpoints which take no files. */
const FILE_INPUT = 'file_input';
/** Path of a file part in a message, or of a field within it. */
const FILE_PLACE = /^messages\.\[\d+\]\.content\.\[\d+\]\.file(?:\.|$)/;
const CONTENT_CHARS_MAX = 500;
const PLACES_MAX = 20;

interface UrlCitation {
  readonly type: 'url_citation';
  readonly url_citation: { readonly url: string; readonly title: string; readonly content: string; readonly start_index: number; readonly end_index: number };
}
interface FileAnnotation {
  readonly type: 'file';
  readonly file: { readonly hash: string; readonly name: string };
}

/** What follows a URL that is only the beginning of another one. A full stop or a comma after it is the sentence's. */
const LONGER_URL = /[/?#&=.:,_~%+@-]*[A-Za-z0-9]/y;

/** Markdown's code: a fenced block, which ends with the text if it is not closed, or a span within a line. */
const CODE = /(`{3,})[^]*?(?:\1|$)|(``?)[^`\n]*\2/g;

/** The same text with blanks in place of its code, in which `[1]` is an index or a list and cites nothing. */
const withoutCode = (answer: string): string => answer.replace(CODE, (code) => ' '.repeat(code.length));

/** Positions of `text` in `answer`, as start and end; at most `PLACES_MAX`. `isUrl`: those where another URL only begins with it are left out. */
function placesOf(answer: string, text: string, isUrl = false): readonly (readonly [number, number])[] {
  const places: (readonly [number, number])[] = [];
  if (text === '') return places;
  for (let at = answer.indexOf(text); at !== -1 && places.length < PLACES_MAX; at = answer.indexOf(text, at + text.length)) {
    const end = at + text.length;
    LONGER_URL.lastIndex = end;
    if (!isUrl || !LONGER_URL.test(answer)) places.push([at, end]);
  }
  return places;
}

/** Annotations of one answer: each source at every place where the answer names its marker, outside of code, or its URL; with 0 to 0 if nowhere. */
export function annotationsOf(text: string, { citations, files }: Pick<PluginTraces, 'citations' | 'files'>): readonly (UrlCitation | FileAnnotation)[] {
  const prose = citations.length === 0 ? '' : withoutCode(text);
  const cited = citations.flatMap(({ marker, url, title, content }): UrlCitation[] => {
    const found = [...placesOf(prose, marker), ...placesOf(text, url, true)].sort(([a], [b]) => a - b).slice(0, PLACES_MAX);
    const places = found.length === 0 ? [[0, 0] as const] : found;
    return places.map(([start, end]) => ({ type: 'url_citation', url_citation: { url, title, content: firstChars(content, CONTENT_CHARS_MAX), start_index: start, end_index: end } }));
  });
  return [...cited, ...files.map(({ hash, name }): FileAnnotation => ({ type: 'file', file: { hash, name } }))];
}

/** True when a plugin should have read the request's files and failed for a reason of ours. (For a client's error the request was refused earlier.) */
const hasUnread = ({ stages }: Pick<PluginTraces, 'stages'>): boolean => stages.some(({ plugin, status }) => plugin === FILE_READER && status === 'failed');

/** True when the request is refused because of its files, so that it might have been served had they been read. */
function isOfFile(refusal: Refusal): boolean {
  switch (refusal.kind) {
    case 'unbounded-parts':
      return true;
    case 'routing':
      return refusal.decision.excludedBy.includes(FILE_INPUT);
    case 'attempts': {
      const failed = refusal.attempts.findLast((attempt) => attempt.failed !== undefined)?.failed;
      return failed?.class === 'BAD_REQUEST' && FILE_PLACE.test(failed.publicParam);
    }
    default:
      return false;
  }
}

const parsed = (choices: Uint8Array): readonly Choice[] => JSON.parse(Buffer.from(choices).toString('utf8')) as readonly Choice[];

/** Passes everything on to `inner`. Chunks are read only when there is something to annotate. */
export function createPluginAnswer(inner: Answer, traces: PluginTraces): Answer {
  const { stages, citations, files, onWaste } = traces;
  const isUnread = hasUnread(traces);
  const annotates = citations.length > 0 || files.length > 0;
  /** Text so far, by choice; needed for the positions of citations. */
  const texts = new Map<number, string>(); // kept: of one answer, and dropped with it.
  const told = new Set<number>(); // kept: of one answer, and dropped with it.
  let heldChars = 0;
  const withPipeline = (settlement: Settlement): Settlement => ({ ...settlement, pipeline: settlement.pipeline === undefined ? stages : [...stages, ...settlement.pipeline] });

  /** Notes the text of a chunk. Before a choice ends, sends its annotations. */
  const read = (route: Parameters<Answer['chunk']>[0], choices: Uint8Array, isLast: boolean): void => {
    for (const { index = 0, delta, finish_reason: reason } of parsed(choices)) {
      if (typeof delta?.content === 'string') {
        texts.set(index, (texts.get(index) ?? '') + delta.content);
        heldChars += delta.content.length;
      }
      if ((!isLast && (reason === null || reason === undefined)) || told.has(index)) continue;
      told.add(index);
      const annotations = annotationsOf(texts.get(index) ?? '', traces);
      inner.chunk(route, Buffer.from(JSON.stringify([{ index, delta: { annotations }, logprobs: null, finish_reason: null }])));
    }
  };

  return {
    attend: (listener) => inner.attend(listener),
    keepAlive: (route) => inner.keepAlive(route),
    heldChars: () => heldChars,
    chunk: (route, choices) => {
      if (annotates) read(route, choices, false);
      inner.chunk(route, choices);
    },
    finish: (route, choices, settlement) => {
      if (annotates) read(route, choices, true);
      inner.finish(route, choices, withPipeline(settlement));
    },
    cut: (route, failed, settlement, ...rest) => inner.cut(route, failed, settlement === undefined ? undefined : withPipeline(settlement), ...rest),
    body: (body, settlement) => {
      if (!annotates) {
        inner.body(body, withPipeline(settlement));
        return;
      }
      const choices = parsed(body.choices).map((choice) => {
        const content = choice.message?.content;
        return { ...choice, message: { ...choice.message, annotations: annotationsOf(typeof content === 'string' ? content : '', traces) } };
      });
      inner.body({ ...body, choices: Buffer.from(JSON.stringify(choices)) }, withPipeline(settlement));
    },
    refuse: (refusal, settlement) => {
      if (isUnread && isOfFile(refusal)) {
        inner.refuse({ kind: 'plugin-failed', plugin: FILE_READER }, settlement);
        return;
      }
      if (refusal.kind === 'routing' || refusal.kind === 'unbounded-parts' || refusal.kind === 'own-credential') onWaste?.();
      inner.refuse(refusal, settlement);
    },
    decided: (plan) => inner.decided(plan),
    callerNow: async () => inner.callerNow?.(),
    admitted: (admission) => {
      if (admission.decision !== 'ADMITTED') onWaste?.();
      inner.admitted(admission);
    },
    abandon: (unread) => inner.abandon(unread),
    isGone: () => inner.isGone(),
  };
}
