/** Builds canonical chunks for wires other than OpenAI's: a wire reports what came, and this puts it into OpenAI's shape, each thing once and in order. */
import { CALLS_MAX, createArgumentsCount, emptiedByPolicy, failure, Garbage, modelsFault, promptOf, type Failure, type FinishReason, type JsonObject, type StreamEvent, type StreamSummary, type Usage } from './canonical.js';
import { isObjectText, isOtherJson } from './call-arguments.js';
import { callBytes, callObject, finishWithCalls, isCutShort, madeCallId, type CallParts } from './choice-parts.js';
import { withEnds } from './ended-choices.js';

type Known = { -readonly [Name in keyof StreamSummary]: StreamSummary[Name] };

interface Pending {
  content: string;
  reasoning: string;
  calls: object[];
  images: unknown[];
  details: JsonObject[];
  extra: JsonObject | undefined;
  logprobs: unknown;
}

interface Choice {
  hasRole: boolean;
  /** Arguments of each call so far. */
  readonly calls: string[];
  /** Positions of calls that ended without arguments. */
  bare: number[];
  /** The last finish reason that the provider gave. */
  reason: FinishReason | undefined;
  /** The reason is an error, and the model's own. */
  isModelsFault: boolean;
  /** It has a finish reason, and nothing was generated after it. */
  isFinished: boolean;
  /** Its finish was sent to the client. */
  isClosed: boolean;
  pending: Pending | undefined;
}

export interface CanonicalStream {
  content(choice: number, text: string): void;
  reasoning(choice: number, text: string): void;
  /** Canonical `images` items. */
  images(choice: number, items: readonly unknown[]): void;
  /** Canonical `reasoning_details` items, each whole. */
  reasoningDetails(choice: number, items: readonly JsonObject[]): void;
  /** Provider-only state of the message, to be sent back with it. */
  extra(choice: number, extra: JsonObject): void;
  /** Canonical `logprobs`. */
  logprobs(choice: number, logprobs: unknown): void;
  /** Starts a tool call; answers its position, counted from 0 without gaps. */
  openCall(choice: number, call: CallParts): number;
  /** More of a call's arguments. */
  callArguments(choice: number, position: number, text: string): void;
  /** The provider ended a call. A token limit may do that too, so a call without arguments gets `{}` only once something follows it, or its choice finishes. */
  endCall(choice: number, position: number): void;
  /** Puts everything since the last flush into one chunk; to be called once for each frame of the provider. */
  flush(): void;
  /** Held until `end`, since more may follow. Calls without arguments get `{}`, except the last one of an answer that was cut off. `isModelsFault`: an error that is the model's own, not the provider's. */
  finish(choice: number, reason: FinishReason, isModelsFault?: boolean): void;
  /** Final usage. The last one counts, and none that output followed; undefined = the figures cannot be token counts. */
  usage(read: Usage | undefined): void;
  /** Usage in the middle of the output: only its input counts are kept, and final usage given before is void. undefined = the figures cannot be token counts. */
  runningUsage(read: Usage | undefined): void;
  /** Every choice has a finish reason, and nothing was generated after it. */
  areFinished(): boolean;
  /** The provider ended the stream: a finish chunk and `done` if every choice that began has a finish reason, otherwise `failed`. */
  end(): void;
  /** The connection closed, on a wire without an explicit end: a choice that generated more after its finish reason has broken off. */
  close(): void;
  /** The provider's content policy stopped it: an answer that has begun ends with `content_filter` and does not fail. */
  fail(reason: Failure): void;
  isOver(): boolean;
  /** The events since the last `take`. */
  take(): readonly StreamEvent[];
  /** `failed` where a choice ended in an error. */
  finishOpen(reason: FinishReason): StreamEvent | undefined;
  /** As of a transducer. */
  finishEnded(): StreamEvent | undefined;
  summary(): StreamSummary;
}

/** Providers give a handful of choices; more is garbage. */
const CHOICES_MAX = 128;

/** `seed`: for the ids of tool calls that came without one. `choicesAsked` (`n`): with fewer choices a stream is not finished. */
export function createCanonicalStream(seed: string, choicesAsked = 1): CanonicalStream {
  const choices = new Map<number, Choice>();
  /** A choice went on after its finish reason: this host's finish reasons do not prove that a choice is over. */
  let isFinishEarly = false;
  /** Bytes of output when usage was last told. */
  let usageAtBytes = Infinity;
  let events: StreamEvent[] = [];
  let isOver = false;
  const callIds = new Set<string>();
  const countArguments = createArgumentsCount();
  const known: Known = { usage: undefined, promptUsage: undefined, usageUnreadable: false, finishReason: '', outputBytes: 0, thoughtBytes: 0, contentSeen: false, isFinished: false, isComplete: false, systemFingerprint: '', serviceTier: '' };

  const choiceOf = (index: number): Choice | undefined => {
    let choice = choices.get(index);
    if (choice === undefined) {
      if (!Number.isInteger(index) || index < 0 || index >= CHOICES_MAX) return undefined;
      choice = { hasRole: false, calls: [], bare: [], reason: undefined, isModelsFault: false, isFinished: false, isClosed: false, pending: undefined };
      choices.set(index, choice);
      known.isFinished = false;
    }
    return choice.isClosed ? undefined : choice;
  };
  /** A choice that generates something. */
  const sayingOf = (index: number): Choice | undefined => {
    const choice = choiceOf(index);
    if (choice?.isFinished === true) {
      choice.isFinished = false;
      isFinishEarly = true;
      known.isFinished = false;
    }
    // More is said: the limit did not stand behind those.
    if (choice !== undefined && choice.bare.length > 0) giveNothing(choice);
    return choice;
  };
  const pendingOf = (choice: Choice): Pending => (choice.pending ??= { content: '', reasoning: '', calls: [], images: [], details: [], extra: undefined, logprobs: undefined });

  const addArguments = (choice: Choice, position: number, text: string): void => {
    choice.calls[position] += text;
    countArguments(text.length);
    pendingOf(choice).calls.push({ index: position, function: { arguments: text } });
  };
  /** A call without arguments gets an empty JSON object. No model generated it, so it does not count as output. */
  function giveNothing(choice: Choice): void {
    for (const position of choice.bare) if (choice.calls[position] === '') addArguments(choice, position, '{}');
    choice.bare = [];
  }

  const deltaOf = (choice: Choice, pending: Pending): object => {
    const { content, reasoning, calls, images, details, extra } = pending;
    const isFirst = !choice.hasRole;
    choice.hasRole = true;
    return {
      ...(isFirst ? { role: 'assistant', content: calls.length > 0 ? null : '' } : {}),
      ...(content === '' ? {} : { content }),
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(images.length === 0 ? {} : { images }),
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(extra === undefined ? {} : { extra_content: extra }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
  };

  const flush = (): void => {
    if (isOver) return;
    const told: object[] = [];
    let content = false;
    for (const [index, choice] of choices) {
      const { pending } = choice;
      if (pending === undefined) continue;
      choice.pending = undefined;
      content ||= pending.content !== '' || pending.reasoning !== '' || pending.calls.length > 0 || pending.images.length > 0;
      told.push({ index, delta: deltaOf(choice, pending), logprobs: pending.logprobs ?? null, finish_reason: null });
    }
    if (told.length === 0) return;
    known.contentSeen ||= content;
    events.push({ type: 'chunk', choices: Buffer.from(JSON.stringify(told)), content, finish: false });
  };

  /** A choice of no reason stays open. */
  const closing = (reasonOf: (choice: Choice) => FinishReason | undefined): StreamEvent | undefined => {
    const told: object[] = [];
    for (const [index, choice] of choices) {
      const given = choice.isClosed ? undefined : reasonOf(choice);
      if (given === undefined) continue;
      choice.isClosed = true;
      const reason = finishWithCalls(given, choice.calls.length);
      if (index === 0 || known.finishReason === '') known.finishReason = reason;
      told.push({ index, delta: choice.hasRole ? {} : { role: 'assistant', content: '' }, logprobs: null, finish_reason: reason });
    }
    if (told.length === 0) return undefined;
    known.isFinished = [...choices.values()].every(({ isClosed }) => isClosed);
    return { type: 'chunk', choices: Buffer.from(JSON.stringify(told)), content: false, finish: true };
  };

  const ended = (): readonly (readonly [number, Choice])[] => [...choices].filter(([, { isFinished, isClosed, reason, calls }]) => isFinished && !isClosed && reason !== 'error' && !calls.some(isOtherJson));

  /** Of choices that ended in an error. */
  const broken = (): Failure => ([...choices.values()].some(({ reason, isModelsFault }) => reason === 'error' && !isModelsFault) ? failure('PROVIDER_ERROR', true, 200) : modelsFault());

  const areFinished = (): boolean => choices.size > 0 && [...choices.values()].every((choice) => choice.isFinished || choice.isClosed);

  /** A policy that stops an answer in the middle ends it, unless a call is only half told: nobody can say what it would have been. */
  const filtered = (): StreamEvent | undefined => {
    const all = [...choices.values()];
    const areAllFinished = areFinished();
    const isBroken = all.some(({ reason, calls }) => reason === 'error' || !calls.every(isObjectText));
    return known.contentSeen && !isBroken ? closing((choice) => (choice.isFinished && !areAllFinished ? choice.reason : undefined) ?? 'content_filter') : undefined;
  };

  const fail = (reason: Failure): void => {
    if (isOver) return;
    flush();
    isOver = true;
    const last = reason.class === 'CONTENT_POLICY' ? filtered() : undefined;
    if (last === undefined) events.push({ type: 'failed', failure: reason });
    else events.push(last, { type: 'done' });
  };

  const end = (): void => {
    if (isOver) return;
    flush();
    const all = [...choices.values()];
    if (all.length === 0) fail(failure('EMPTY', true, 200));
    else if (all.some((choice) => choice.reason === undefined && !choice.isClosed)) fail(failure('DISCONNECTED', true, 200));
    else if (all.some(({ calls }) => calls.some(isOtherJson))) fail(failure('GARBAGE', true, 200));
    else if (all.some((choice) => choice.reason === 'error')) fail(broken());
    else if (!known.contentSeen && all.every((choice) => choice.reason === 'content_filter')) fail(emptiedByPolicy());
    else {
      const last = closing(({ reason }) => reason ?? 'stop');
      if (last !== undefined) events.push(last);
      isOver = true;
      events.push({ type: 'done' });
    }
  };

  return {
    content: (index, text) => {
      const choice = text === '' ? undefined : sayingOf(index);
      if (choice === undefined) return;
      pendingOf(choice).content += text;
      known.outputBytes += Buffer.byteLength(text);
    },
    reasoning: (index, text) => {
      const choice = text === '' ? undefined : sayingOf(index);
      if (choice === undefined) return;
      pendingOf(choice).reasoning += text;
      const bytes = Buffer.byteLength(text);
      known.outputBytes += bytes;
      known.thoughtBytes += bytes;
    },
    images: (index, items) => {
      const choice = items.length === 0 ? undefined : sayingOf(index);
      if (choice !== undefined) pendingOf(choice).images.push(...items);
    },
    reasoningDetails: (index, items) => {
      const choice = items.length === 0 ? undefined : choiceOf(index);
      if (choice !== undefined) pendingOf(choice).details.push(...items);
    },
    extra: (index, extra) => {
      const choice = choiceOf(index);
      if (choice !== undefined) pendingOf(choice).extra = extra;
    },
    logprobs: (index, logprobs) => {
      const choice = choiceOf(index);
      if (choice !== undefined) pendingOf(choice).logprobs = logprobs;
    },
    openCall: (index, call) => {
      const choice = sayingOf(index);
      if (choice === undefined) return -1;
      const position = choice.calls.length;
      if (position >= CALLS_MAX) throw new Garbage('More calls than an answer may hold.');
      // Nobody can answer it.
      if (call.name === '') throw new Garbage('A call without a name.');
      countArguments(call.arguments.length);
      if (isOtherJson(call.arguments)) throw new Garbage('Arguments that are no object.');
      choice.calls.push(call.arguments);
      const id = call.id === '' || callIds.has(call.id) ? madeCallId(seed, index, position) : call.id;
      callIds.add(id);
      pendingOf(choice).calls.push({ index: position, ...callObject(call, id) });
      known.outputBytes += callBytes(call);
      return position;
    },
    callArguments: (index, position, text) => {
      const choice = text === '' ? undefined : sayingOf(index);
      if (choice === undefined || position < 0 || position >= choice.calls.length) return;
      if (choice.calls[position] === '' && isOtherJson(text)) throw new Garbage('Arguments that are no object.');
      addArguments(choice, position, text);
      known.outputBytes += Buffer.byteLength(text);
    },
    endCall: (index, position) => {
      const choice = choiceOf(index);
      if (choice?.calls[position] === '') choice.bare.push(position);
    },
    flush,
    finish: (index, reason, isModelsFault = false) => {
      const choice = choiceOf(index);
      if (choice === undefined) return;
      choice.bare = [...choice.calls.keys()].slice(0, isCutShort(reason) ? -1 : undefined);
      giveNothing(choice);
      choice.reason = reason;
      choice.isModelsFault = isModelsFault;
      choice.isFinished = true;
      if (index === 0 || known.finishReason === '') known.finishReason = finishWithCalls(reason, choice.calls.length);
      known.isFinished = areFinished() && choices.size >= choicesAsked && !isFinishEarly;
    },
    usage: (read) => {
      known.usageUnreadable = read === undefined;
      if (read === undefined) return;
      known.usage = read;
      usageAtBytes = known.outputBytes;
      known.promptUsage = promptOf(read) ?? known.promptUsage;
    },
    runningUsage: (read) => {
      known.usage = undefined;
      known.usageUnreadable = false;
      if (read !== undefined) known.promptUsage = promptOf(read) ?? known.promptUsage;
    },
    areFinished,
    end,
    close: () => {
      if (choices.size === 0 || areFinished()) end();
      else fail(failure('DISCONNECTED', true, 200));
    },
    fail,
    isOver: () => isOver,
    take: () => {
      const taken = events;
      if (known.outputBytes > usageAtBytes) {
        known.usage = undefined;
        usageAtBytes = Infinity;
      }
      events = [];
      return choicesAsked > 1 ? withEnds(taken, ended().map(([index, { reason, calls }]) => [index, finishWithCalls(reason ?? 'stop', calls.length)]), Math.max(choices.size, choicesAsked)) : taken;
    },
    finishOpen: (reason) => ([...choices.values()].some((choice) => choice.reason === 'error') ? { type: 'failed', failure: broken() } : closing((choice) => (choice.isFinished ? choice.reason : undefined) ?? reason)),
    finishEnded: () => {
      const all = ended().map(([, choice]) => choice);
      return all.length < Math.max(choices.size, choicesAsked) ? closing((choice) => (all.includes(choice) ? choice.reason : undefined)) : undefined;
    },
    summary: () => known,
  };
}
