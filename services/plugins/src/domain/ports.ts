/** Interfaces that plugins need from outside. */
import type { ImageModel } from './image-models.js';

/** A passage found by a search; results are sorted best first. */
export interface Passage {
  /** Key of its source. */
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  /** Chapter or section; empty if none. */
  readonly heading: string;
  readonly body: string;
  /** Position within its source, from 0. */
  readonly ordinal: number;
}

export type Corpus = 'web' | 'books';

export interface NewSource {
  readonly corpus: Corpus;
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  /** Two lower-case letters; empty if unknown. */
  readonly language: string;
  readonly passages: readonly { readonly heading: string; readonly body: string }[];
}

export interface KnownSource {
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  readonly language: string;
  readonly passages: number;
}

export interface PassageQuestion {
  readonly corpus: Corpus;
  /** The question in natural language. */
  readonly text: string;
  readonly limit: number;
  /** Most passages per source. */
  readonly perSourceMax: number;
  /** Only sources with these keys; empty = all. */
  readonly keys?: readonly string[];
  readonly language?: string;
  /** Hosts of URLs, subdomains included; empty = all. */
  readonly includeDomains?: readonly string[];
  readonly excludeDomains?: readonly string[];
}

/** Full-text index of documents and books. Methods reject with a Fault `store_unavailable`. */
export interface PassageIndex {
  /** Adds a source, or replaces the one with the same key. */
  put(source: NewSource): Promise<void>;
  search(question: PassageQuestion): Promise<readonly Passage[]>;
  list(corpus: Corpus): Promise<readonly KnownSource[]>;
  /** Returns how many were removed: 0 or 1. */
  remove(corpus: Corpus, key: string): Promise<number>;
}

/** One remembered fact. Times are Unix milliseconds. */
export interface Fact {
  readonly id: string;
  readonly text: string;
  readonly namespace: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Owner of a memory, who never sees another owner's facts. */
export interface MemoryOwner {
  readonly accountId: string;
  readonly user: string;
}

export interface NewFact {
  /** A new fact replaces the one with the same topic. */
  readonly topic: string;
  readonly text: string;
}

/** Methods reject with a Fault `store_unavailable`. */
export interface FactStore {
  /** Writes facts, each replacing the one with its topic; drops the oldest beyond `keepMax`. */
  put(owner: MemoryOwner, namespace: string, facts: readonly NewFact[], nowMs: number, keepMax: number): Promise<void>;
  /** Facts that match the text, ranked by words and recency, best first. */
  recall(owner: MemoryOwner, namespace: string, text: string, limit: number, nowMs: number): Promise<readonly Fact[]>;
  /** Newest first; an undefined namespace means all. With `after`, the facts that follow the one with that id; undefined if it is gone or not the owner's. */
  list(owner: MemoryOwner, namespace: string | undefined, limit: number, after?: string): Promise<readonly Fact[] | undefined>;
  /** Returns how many were deleted. */
  clear(owner: MemoryOwner, namespace: string | undefined): Promise<number>;
}

export interface SearchResult {
  readonly url: string;
  readonly title: string;
  readonly content: string;
}

export interface SearchQuestion {
  readonly text: string;
  readonly limit: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly signal: AbortSignal;
}

/** Search engine of web-search. Rejects with a PluginFailure that names the reason. */
export interface SearchBackend {
  readonly name: string;
  search(question: SearchQuestion): Promise<readonly SearchResult[]>;
}

export interface PdfPage {
  /** Empty if the page has no readable text. */
  readonly text: string;
  /** The page shows only images. */
  readonly isScanned: boolean;
  /** The page shows text whose characters are not specified in the file. */
  readonly isUnreadable?: boolean;
}

/** Text read from a PDF. */
export interface PdfText {
  readonly pageCount: number;
  /** Pages from the first on, at most `maxPages`. */
  readonly pages: readonly PdfPage[];
  /** The text was cut off at the limit of characters. */
  readonly isCut: boolean;
}

export type PdfProblem = 'not-pdf' | 'broken' | 'encrypted' | 'too-large' | 'timeout' | 'memory' | 'unavailable';

/** Reads a PDF outside this process. Never rejects. */
export type ReadPdf = (bytes: Buffer, options: { readonly accountId: string; readonly maxPages: number; readonly signal: AbortSignal }) => Promise<PdfText | { readonly problem: PdfProblem }>;

/** A source of books that can be fetched into the index. */
export interface BookCatalog {
  /** Returns how many books were added. Rejects with a PluginFailure that names the reason. */
  fetchInto(index: PassageIndex, wanted: { readonly text: string; readonly ids: readonly number[]; readonly language: string; readonly signal: AbortSignal }): Promise<number>;
}

/** Fetches a file named by a client. Never rejects; `problem` is a sentence for the client, `unavailable` means a failure on our side. */
export type FetchPdf = (url: string, signal: AbortSignal) => Promise<{ readonly bytes: Buffer } | { readonly problem: string } | 'unavailable'>;

/** Cache of PDF texts by account, content and pages. */
export interface PdfCache {
  get(key: string): PdfText | undefined;
  set(key: string, text: PdfText): void;
}

/** How a program ended, as reported by sandbox. */
export interface ProgramRun {
  /** completed | threw | timed_out | out_of_memory | output_limit | crashed | overloaded | refused */
  readonly status: string;
  readonly output: string;
  /** The program's last value as text; empty if there is none. */
  readonly result: string;
  /** A sentence for the model; empty if completed. */
  readonly error: string;
}

export interface Sandbox {
  /** Throws a Fault if the service is unreachable. */
  run(program: { readonly requestId: string; readonly accountId: string; readonly language: string; readonly code: string; readonly timeoutMs: number }, signal: AbortSignal): Promise<ProgramRun>;
}

export interface ImageOrder {
  readonly requestId: string;
  readonly accountId: string;
  readonly model: ImageModel;
  readonly prompt: string;
  readonly size: string;
  readonly count: number;
  /** Handle of the account's own credential to use; undefined = the operator's. */
  readonly byokHandle: string | undefined;
}

export type ImagesMade =
  | { readonly kind: 'made'; readonly images: readonly Buffer[]; readonly promptTokens: number | undefined }
  /** `failureClass` as reported by the worker; `publicMessage` is a sentence that a client may see, or empty. */
  | { readonly kind: 'failed'; readonly failureClass: string; readonly publicMessage: string };

export interface ImageMaker {
  /** Throws a Fault if the worker is unreachable. */
  make(order: ImageOrder, signal: AbortSignal): Promise<ImagesMade>;
}
