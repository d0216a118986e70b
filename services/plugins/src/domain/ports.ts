/** What plugins need from the world. */
import type { ImageModel } from './image-models.js';

/** A passage that was found, best first. */
export interface Passage {
  /** Key of its source. */
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  /** Chapter or section; empty when none. */
  readonly heading: string;
  readonly body: string;
  /** From 0; passages of one source are in its order. */
  readonly ordinal: number;
}

export type Corpus = 'web' | 'books';

export interface NewSource {
  readonly corpus: Corpus;
  readonly key: string;
  readonly title: string;
  readonly author: string;
  readonly url: string;
  /** Two letters, lower case; empty when unknown. */
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
  /** Words as a person wrote them. */
  readonly text: string;
  readonly limit: number;
  /** Passages of one source at most. */
  readonly perSourceMax: number;
  /** Sources with these keys only; empty = all. */
  readonly keys?: readonly string[];
  readonly language?: string;
  /** Hosts of URLs, subdomains included; empty = all. */
  readonly includeDomains?: readonly string[];
  readonly excludeDomains?: readonly string[];
}

/** Documents and books, by full text. Methods reject with a Fault `store_unavailable`. */
export interface PassageIndex {
  /** Adds a source, or puts it in the place of the one with its key. */
  put(source: NewSource): Promise<void>;
  search(question: PassageQuestion): Promise<readonly Passage[]>;
  list(corpus: Corpus): Promise<readonly KnownSource[]>;
  /** How many were removed: 0 or 1. */
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

/** Whose memory: nothing of one is ever seen by another. */
export interface MemoryOwner {
  readonly accountId: string;
  readonly user: string;
}

export interface NewFact {
  /** Facts of one topic replace each other. */
  readonly topic: string;
  readonly text: string;
}

/** Methods reject with a Fault `store_unavailable`. */
export interface FactStore {
  /** Writes facts, each in the place of the one of its topic; the oldest beyond `keepMax` are dropped. */
  put(owner: MemoryOwner, namespace: string, facts: readonly NewFact[], nowMs: number, keepMax: number): Promise<void>;
  /** By rank of the words and recency, best first. */
  recall(owner: MemoryOwner, namespace: string, text: string, limit: number, nowMs: number): Promise<readonly Fact[]>;
  /** Newest first; an undefined namespace is every one. With `after` those behind the fact of that id; undefined where it is not the owner's, or gone. */
  list(owner: MemoryOwner, namespace: string | undefined, limit: number, after?: string): Promise<readonly Fact[] | undefined>;
  /** How many were deleted. */
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

/** Where web-search searches. Rejects with a PluginFailure naming why. */
export interface SearchBackend {
  readonly name: string;
  search(question: SearchQuestion): Promise<readonly SearchResult[]>;
}

export interface PdfPage {
  /** Empty where there is none, or none that can be read. */
  readonly text: string;
  /** It shows images alone. */
  readonly isScanned: boolean;
  /** It shows text, of which nothing says what characters it is. */
  readonly isUnreadable?: boolean;
}

/** What was read of a PDF. */
export interface PdfText {
  readonly pageCount: number;
  /** Pages from the first on, at most as many as asked for. */
  readonly pages: readonly PdfPage[];
  /** The text was cut at the bound of characters. */
  readonly isCut: boolean;
}

export type PdfProblem = 'not-pdf' | 'broken' | 'encrypted' | 'too-large' | 'timeout' | 'memory' | 'unavailable';

/** Reads a PDF away from this process. Never rejects. */
export type ReadPdf = (bytes: Buffer, options: { readonly accountId: string; readonly maxPages: number; readonly signal: AbortSignal }) => Promise<PdfText | { readonly problem: PdfProblem }>;

/** Books that may be fetched into the index. */
export interface BookCatalog {
  /** How many books were put there. Rejects with a PluginFailure naming why. */
  fetchInto(index: PassageIndex, wanted: { readonly text: string; readonly ids: readonly number[]; readonly language: string; readonly signal: AbortSignal }): Promise<number>;
}

/** Fetches a file that a client named. Never rejects; `problem` is a sentence for the client, `unavailable` a fault of ours. */
export type FetchPdf = (url: string, signal: AbortSignal) => Promise<{ readonly bytes: Buffer } | { readonly problem: string } | 'unavailable'>;

/** Texts of PDFs by account, content and pages; may forget any of them. */
export interface PdfCache {
  get(key: string): PdfText | undefined;
  set(key: string, text: PdfText): void;
}

/** How a program ended, as sandbox tells it. */
export interface ProgramRun {
  /** completed | threw | timed_out | out_of_memory | output_limit | crashed | overloaded | refused */
  readonly status: string;
  readonly output: string;
  /** Its last value as text; empty when there is none. */
  readonly result: string;
  /** A sentence for the model; empty when completed. */
  readonly error: string;
}

export interface Sandbox {
  /** Throws a Fault when the service is away. */
  run(program: { readonly requestId: string; readonly accountId: string; readonly language: string; readonly code: string; readonly timeoutMs: number }, signal: AbortSignal): Promise<ProgramRun>;
}

export interface ImageOrder {
  readonly requestId: string;
  readonly accountId: string;
  readonly model: ImageModel;
  readonly prompt: string;
  readonly size: string;
  readonly count: number;
  /** Names the account's own credential, which pays; undefined = the operator's does. */
  readonly byokHandle: string | undefined;
}

export type ImagesMade =
  | { readonly kind: 'made'; readonly images: readonly Buffer[]; readonly promptTokens: number | undefined }
  /** `failureClass` as workers tell it; `publicMessage` is a sentence that a client may read, or empty. */
  | { readonly kind: 'failed'; readonly failureClass: string; readonly publicMessage: string };

export interface ImageMaker {
  /** Throws a Fault when the worker is away. */
  make(order: ImageOrder, signal: AbortSignal): Promise<ImagesMade>;
}
