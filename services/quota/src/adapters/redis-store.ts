/** Quota's state in Redis. Only scripts change it, time comes from Redis, and the client never resends a command, which would count twice. */
import { createHash } from 'node:crypto';
import type { Clock, RandomBytes } from '@signalbox/kernel/clock';
import { Fault } from '@signalbox/kernel/fault';
import { remainingOf, type Wall } from '@signalbox/ledger-core/account-state';
import type { AdmitAnswer, AdmitDecision } from '@signalbox/ledger-core/admission';
import type { OpenRequest } from '@signalbox/ledger-core/settlement';
import type { Bucket } from '@signalbox/ledger-core/buckets';
import { periodsAt, type PeriodKind } from '@signalbox/ledger-core/periods';
import { NO_GROWTH } from '@signalbox/ledger-core/rebuild';
import type { Log } from '@signalbox/runtime/log';
import { rareWarning } from '@signalbox/runtime/rare-warning';
import { Redis } from 'ioredis';
import type { QuotaStore } from '../domain/ports.js';
import type { QuotaMetrics } from '../metrics.js';
import { createGather, type ScriptCall, type ScriptResult } from './gather.js';
import { readInfo } from './redis-info.js';
import { createSharedRide } from './shared-ride.js';
import { EPOCH_KEY, SCRIPTS, type RequestScript, type ScriptName } from './scripts.js';
import { createSilence, isReply } from './silence.js';

export interface RedisStoreOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  readonly metrics: Pick<QuotaMetrics, 'storeTook' | 'storeFailed'>;
  readonly periodSeconds?: number | undefined;
  /** Time instead of Redis TIME (milliseconds since the epoch), for tests. */
  readonly fixedNowMs?: () => number;
  /** Longest wait for Redis, in milliseconds; 50 by default. */
  readonly commandTimeoutMs?: number;
  /** Longest time that a step no client waits for is delayed to share a round trip, in milliseconds; 20 by default. */
  readonly rideWaitMs?: number;
}

// 50 ms: a frozen Redis costs a request at most 60 ms, unless this process is stalled too. Once Redis counts as silent, requests fail without waiting.
const COMMAND_TIMEOUT_MS = 50;
/** Added to the wait for each request in a round trip. A request takes Redis 15 to 25 µs on a core of its own, and eight times that on a core shared with eight busy processes. */
const WORK_MS = 0.2;
/** 20 ms: a busy process has its next admission within 10 ms. */
const RIDE_WAIT_MS = 20;
const RECONNECT_MS_MAX = 500;
/** Reconnect after 5 s without a byte in answer: the connection itself may be lost. */
const LOST_MS = 5_000;
/** Keys per SCAN command, which takes well below a millisecond. */
const SCAN_KEYS = 1_000;
/** Fields that the script returns for one open request. */
const DESCRIBED_FIELDS = 11;
/** Steps that no client waits for. */
const UNAWAITED: ReadonlySet<RequestScript> = new Set<RequestScript>(['finish', 'release']);
/** Key of the writers that reported, each with the epoch in which it did. */
const HEARD_KEY = 'heard';

const KIND_LETTERS: Readonly<Record<PeriodKind, string>> = { day: 'd', week: 'w', month: 'm', plan: 'p', total: 't' };
const METER_LETTERS = { charge: 'c', routed: 't', byok: 'b' } as const;
/** For a charge that uses the periods of its hold. */
const NO_PERIODS = { day: '', week: '', month: '', plan: '' } as const;
/** For a request that has a hold of its own, not a draw on an advance. */
const NO_DRAW = { advanceId: '', amount: 0n, tokens: 0n } as const;
const DECISIONS: Readonly<Record<string, AdmitDecision>> = { admitted: 'admitted', rate: 'rate', burst: 'burst', wall: 'wall', blocked: 'blocked' };

/** Error codes by which Redis refuses a client. With any other code Redis was not reached. */
const REFUSALS: Readonly<Record<string, string>> = { NOAUTH: 'it wants a password, as in redis://user:password@host:port', WRONGPASS: 'wrong user or password' };

function wordsOf(trouble: string): string {
  const refusal = REFUSALS[trouble];
  if (refusal !== undefined) return `refused (${refusal}, ${trouble})`;
  return `did not answer${trouble === '' ? '' : ` (${trouble})`}`;
}

/** Redis' word for why it refused, such as OOM or MISCONF. */
const codeOf = (error: unknown): string => /^[A-Z]{2,20}\b/.exec(error instanceof Error ? error.message : '')?.[0] ?? 'unknown';

/** Index of the first line with figures of the rate. */
const RATE_LINE = 11;
const NO_ROOM = { charge: undefined, tokens: undefined } as const;

const wallText = (walls: readonly Wall[]): string => walls.map((wall) => `${wall.scope === 'account' ? 'a' : 'k'}${KIND_LETTERS[wall.period]}${METER_LETTERS[wall.meter]}${wall.limit};`).join('');

function accountWalls(text: string): Wall[] {
  const periods = new Map(Object.entries(KIND_LETTERS).map(([kind, letter]) => [letter, kind as PeriodKind]));
  return [...text.matchAll(/a([a-z])c(\d+);/g)].flatMap(([, letter = '', limit = '0']) => {
    const period = periods.get(letter);
    return period === undefined ? [] : [{ scope: 'account' as const, period, meter: 'charge' as const, limit: BigInt(limit) }];
  });
}

function bucketFrom(text: string): Bucket {
  const [seq = 0n, charge = 0n, tokens = 0n, byok = 0n, finishedCharge = 0n, finishedTokens = 0n, finishedByok = 0n, heldCharge = 0n, heldTokens = 0n, heldByok = 0n] = text.split(' ').map(BigInt);
  return { seq, charge, tokens, byok, finishedCharge, finishedTokens, finishedByok, heldCharge, heldTokens, heldByok };
}

/** Reads the script's lines: decision; periods and when they were fixed; tokens of the plan and, with an own credential, after a space the tokens used over own credentials; four figures of the decision; three of the rate, if one is kept. */
function readAdmission(lines: readonly string[]): AdmitAnswer {
  const at = (index: number): string => lines[index] ?? '';
  const word = at(0);
  if (word === 'ended' || word === 'unloaded') return word;
  const decision = DECISIONS[word];
  if (decision === undefined) throw new Fault('quota_unavailable', 'redis returned an unexpected answer');
  const isAdmitted = decision === 'admitted';
  const [planTokens = '0', planByokTokens = '0'] = at(6).split(' ');
  const optional = (index: number): bigint | undefined => (at(index) === '' ? undefined : BigInt(at(index)));
  return {
    decision,
    rate: lines.length > RATE_LINE ? { limit: Number(at(RATE_LINE)), remaining: Number(at(RATE_LINE + 1)), resetMs: Number(at(RATE_LINE + 2)) } : undefined,
    planTokens: BigInt(planTokens),
    planByokTokens: BigInt(planByokTokens),
    periods: { day: at(1), week: at(2), month: at(3), plan: at(4), reservedAtMs: Number(at(5)) },
    retryAfterMs: isAdmitted ? 0 : Number(at(7)),
    wall: isAdmitted || at(8) === '-1' ? undefined : { index: Number(at(8)), spend: BigInt(at(9)), reserved: BigInt(at(10)) },
    held: isAdmitted ? BigInt(at(7)) : 0n,
    heldTokens: isAdmitted ? BigInt(at(8)) : 0n,
    room: isAdmitted ? { charge: optional(9), tokens: optional(10) } : NO_ROOM,
  };
}

/** Creation never throws; connects at `start`, and reconnects without limit. */
export function createRedisStore(options: RedisStoreOptions): QuotaStore {
  const { clock, log, metrics, periodSeconds, fixedNowMs = () => 0 } = options;
  /** Connections in a row on which Redis could not be used. */
  let refusedGreetings = 0;
  const redis = new Redis(options.url, {
    lazyConnect: true,
    connectTimeout: 2_000,
    socketTimeout: LOST_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (times) => Math.min(50 * (times + refusedGreetings), RECONNECT_MS_MAX),
    // A Redis that became a replica keeps its connections: its name leads to the new primary.
    reconnectOnError: ({ message }) => /\bREADONLY\b/.test(message),
  });
  const hashes = new Map(Object.entries(SCRIPTS).map(([name, text]) => [name, createHash('sha1').update(text).digest('hex')])); // kept: by script.
  const lengthMs = String((periodSeconds ?? 0) * 1_000);
  /** `run_id` of the connected Redis; empty while not connected. */
  let run = '';
  /** Epoch of the store as last read: the run id and a random mark stored in Redis, since the data may be lost without a restart. */
  let life = '';
  // Not with the Redis client's own time-out, which would mistake a stall of this process for one of Redis.
  const silence = createSilence({ clock, patienceMs: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS, probe: () => redis.ping() });

  /** Code of the latest error, from the system or from Redis, such as ECONNREFUSED or WRONGPASS; empty if there was none. */
  let trouble = '';
  let isStarted = false;
  const warnOfAbsence = rareWarning(log, clock, 'Redis was lost: accounts with limits get 503 until it is back.');
  redis.on('error', (error: Error) => {
    trouble = /\b[A-Z]{5,20}\b/.exec('code' in error ? String(error.code) : error.message)?.[0] ?? trouble;
    // Until then, the start itself says so.
    if (isStarted) warnOfAbsence({ reason: `Redis at REDIS_URL ${wordsOf(trouble)}.` });
  });
  redis.on('close', () => {
    run = '';
    silence.reset();
  });
  /** Reads the epoch. The first replica to find no mark sets it. */
  const readLife = async (of: string): Promise<string> => {
    const mark = await silence.within(redis.get(EPOCH_KEY));
    if (mark !== null) return `${of}.${mark}`;
    await silence.within(redis.set(EPOCH_KEY, Buffer.from(options.randomBytes(8)).toString('hex'), 'NX'));
    return `${of}.${(await silence.within(redis.get(EPOCH_KEY))) ?? ''}`;
  };
  /** Runs a command that is not a script. */
  const ask = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    if (run === '' || silence.isSilent()) throw new Fault('quota_unavailable', 'redis is away');
    try {
      return await work();
    } catch (error) {
      throw new Fault('quota_unavailable', 'redis did not answer', { cause: error });
    }
  };
  /** The eviction policy last told. */
  let toldPolicy = '';
  let isClusterTold = false;
  const greet = async (): Promise<void> => {
    const { runId, isReplica, isNode, eviction } = readInfo(await silence.within(redis.info()));
    if (isReplica) throw new Fault('quota_unavailable', 'Redis at REDIS_URL is a read-only replica.');
    // One that has all slots serves every account, so it is not refused.
    if (isNode && !isClusterTold) log.warn('Redis runs in cluster mode: if the cluster has several shards, accounts whose counters another one keeps get 503 (MOVED). REDIS_URL must name a Redis that keeps all keys.');
    isClusterTold ||= isNode;
    // Counters would be lost one by one, which nothing notices, unlike a Redis that is lost.
    if (eviction !== undefined && eviction.policy !== toldPolicy) log.error('Redis may delete counters of money when its memory is full, so that accounts exceed their caps: set its maxmemory-policy to noeviction.', { policy: eviction.policy, maxmemory_bytes: eviction.bytes });
    toldPolicy = eviction?.policy ?? '';
    for (const text of Object.values(SCRIPTS)) await silence.within(redis.script('LOAD', text));
    life = await readLife(runId);
    run = runId;
  };
  let greeting = Promise.resolve();
  redis.on('ready', () => {
    greeting = greet();
    greeting.then(
      () => {
        refusedGreetings = 0;
      },
      (error: unknown) => {
        if (refusedGreetings === 0) log.error('This Redis cannot be used; it is asked again until it can.', error instanceof Fault ? { reason: error.message } : {}, error);
        refusedGreetings += 1;
        redis.disconnect(true);
      },
    );
  });

  const argsOf = ({ accountId, args }: ScriptCall): readonly string[] => {
    const tag = `{${accountId}}`;
    return [`q:${tag}`, `h:${tag}`, `f:${tag}`, `e:${tag}:`, String(fixedNowMs()), ...args];
  };
  const hashOf = ({ name }: ScriptCall): string => hashes.get(name) ?? '';
  const settled = (work: Promise<unknown>): Promise<ScriptResult> =>
    work.then(
      (answer) => {
        silence.heard();
        return { answer };
      },
      (error: unknown) => {
        if (isReply(error)) silence.heard();
        return { error: error instanceof Error ? error : new Error('unknown') };
      },
    );
  const byHash = (call: ScriptCall): Promise<ScriptResult> => settled(redis.evalsha(hashOf(call), 4, ...argsOf(call)));
  /**
   * Sends the calls in one write. Does not use the client's pipeline: it defines an accessor on each pipeline object, and V8 keeps
   * the object's hidden class, with all that the pipeline held, until old space is collected (8.5 KB per round trip).
   */
  const together = (calls: readonly ScriptCall[]): readonly Promise<ScriptResult>[] => {
    const { stream } = redis;
    stream.cork();
    try {
      return calls.map(byHash);
    } finally {
      stream.uncork();
    }
  };
  const send = async (calls: readonly ScriptCall[]): Promise<readonly ScriptResult[]> => {
    const results = await Promise.all(together(calls));
    for (const [index, each] of calls.entries()) {
      const result = results[index];
      if (result !== undefined && 'error' in result && result.error.message.startsWith('NOSCRIPT')) results[index] = await settled(redis.eval(SCRIPTS[each.name], 4, ...argsOf(each)));
    }
    return results;
  };
  /** Resolves if Redis replied to one of the calls, with an answer or an error; else rejects with the first call's error. */
  const wordOf = async (trip: Promise<readonly ScriptResult[]>): Promise<void> => {
    const results = await trip;
    const [first] = results;
    if (first !== undefined && 'error' in first && !results.some((result) => 'answer' in result || isReply(result.error))) throw first.error;
  };
  const gather = createGather({ send, within: (trip, size) => silence.within(wordOf(trip), size * WORK_MS) });
  const warnOfRefusal = rareWarning(log, clock, 'Redis refuses commands: accounts with limits get 503.');
  const timed = async (work: () => Promise<unknown>): Promise<unknown> => {
    const startMs = clock.monotonicMs();
    if (run === '' || silence.isSilent()) throw new Fault('quota_unavailable', 'redis is away');
    try {
      const answer = await work();
      metrics.storeTook((clock.monotonicMs() - startMs) / 1_000);
      return answer;
    } catch (error) {
      metrics.storeFailed();
      if (isReply(error)) warnOfRefusal({ code: codeOf(error) });
      throw new Fault('quota_unavailable', 'redis did not answer', { cause: error });
    }
  };
  const ride = createSharedRide(clock, options.rideWaitMs ?? RIDE_WAIT_MS);
  const step = (name: RequestScript, accountId: string, terms: readonly string[], own: readonly string[]): Promise<unknown> => {
    const go = (): Promise<unknown> => timed(() => gather.step(name, accountId, terms, own));
    if (UNAWAITED.has(name)) return ride.board(go);
    ride.depart();
    return go();
  };
  const call = (name: ScriptName, accountId: string, args: readonly string[]): Promise<unknown> => {
    ride.depart();
    return timed(() => gather.call(name, accountId, args));
  };

  // An account's holds and finished charges are one hash each, which Redis deletes when it is empty. The scan is not atomic: it may miss a key that is created or deleted meanwhile.
  const openAccounts = async (): Promise<readonly string[]> => {
    if (run === '') throw new Fault('quota_unavailable', 'redis is away');
    const accounts = new Set<string>();
    for (const prefix of ['f:{', 'h:{']) {
      let cursor = '0';
      do {
        let keys: readonly string[];
        try {
          [cursor, keys] = await silence.within(redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', SCAN_KEYS));
        } catch (error) {
          throw new Fault('quota_unavailable', 'redis did not answer', { cause: error });
        }
        for (const key of keys) accounts.add(key.slice(prefix.length, -1));
      } while (cursor !== '0');
    }
    return [...accounts];
  };

  return {
    start: async () => {
      await new Promise<void>((resolve, reject) => {
        redis.connect().then(resolve, () => reject(new Fault('quota_unavailable', `Redis at REDIS_URL ${wordsOf(trouble)}.`)));
      });
      await greeting;
      isStarted = true;
    },
    stop: () => {
      redis.disconnect();
      return Promise.resolve();
    },
    ready: () => run !== '',
    admit: async (accountId, command): Promise<AdmitAnswer> => {
      const optional = (value: number | undefined): string => (value === undefined ? '' : String(value));
      const terms = [
        life, command.keyId, command.counter, command.byok ? '1' : '0', String(command.anchorDay), lengthMs,
        optional(command.requestsPerMinute), optional(command.burstPerSecond), optional(command.keyRequestsPerMinute), wallText(command.walls), command.needsTotals ? '1' : '0', command.isAdvance === true ? '1' : '0',
      ];
      const answer = await step('admit', accountId, terms, [command.requestId, String(command.amount), String(command.tokens), String(command.minAmount), String(command.minTokens)]);
      return readAdmission(String(answer).split('\n'));
    },
    release: async (accountId, requestId, draw = NO_DRAW) => (await step('release', accountId, [draw.advanceId], [requestId, String(draw.amount), String(draw.tokens)])) === 1,
    heartbeat: async (accountId, requestId, toAmount, toTokens, writer = '', draw = NO_DRAW) =>
      (await step('heartbeat', accountId, [writer, draw.advanceId], [requestId, String(toAmount), String(toTokens), String(draw.amount), String(draw.tokens)])) === 1,
    reregister: async (accountId, { requestId, amount, tokens, byok, keyId, periods, isStarted, writer = '', draw = NO_DRAW }) => {
      const terms = [keyId, byok ? '1' : '0', periods.day, periods.week, periods.month, periods.plan, String(periods.reservedAtMs), wallText(NO_GROWTH), writer, draw.advanceId];
      await step('reregister', accountId, terms, [requestId, String(amount), String(tokens), isStarted ? '1' : '0', String(draw.amount), String(draw.tokens)]);
    },
    confirm: async (accountId, requestId, draw = NO_DRAW) => (await step('confirm', accountId, [draw.advanceId], [requestId, String(draw.amount), String(draw.tokens)])) === 1,
    isHeld: async (accountId, requestId) => (await step('held', accountId, [], [requestId])) === 1,
    epoch: () =>
      ask(async () => {
        const of = run;
        const mark = await gather.call('epoch', '', []);
        life = typeof mark === 'string' && mark !== '' ? `${of}.${mark}` : await readLife(of);
        return life;
      }),
    latestEpoch: () => life,
    heard: (epoch) => ask(async () => new Set(Object.entries(await silence.within(redis.hgetall(HEARD_KEY))).flatMap(([writer, told]) => (told === epoch ? [writer] : [])))),
    hear: (epoch, writer) =>
      ask(async () => {
        await silence.within(redis.hset(HEARD_KEY, writer, epoch));
      }),
    finish: async (accountId, { requestId, charge, tokens, byok, keyId, periods, writer = '', draw = NO_DRAW }) => {
      const { day, week, month, plan } = periods ?? NO_PERIODS;
      return (await step('finish', accountId, [keyId, day, week, month, plan, lengthMs, writer, draw.advanceId], [requestId, String(charge), String(tokens), byok ? '1' : '0', String(draw.amount), String(draw.tokens)])) === 1;
    },
    totalsSeq: (accountId) => ask(async () => BigInt((await silence.within(redis.hgetBuffer(`q:{${accountId}}`, 'b:account|total')))?.readDoubleLE(0) ?? 0)),
    applyTotals: async (accountId, { seq, totals, requestIds, previousSeq = 0n, knownSeq }, epoch) => {
      const rows = totals.flatMap((total) => [`${total.scope}|${total.periodId}`, String(total.charge), String(total.tokens), String(total.byok)]);
      return (await call('totals', accountId, [String(seq), epoch, String(previousSeq), knownSeq === undefined ? '-1' : String(knownSeq), String(totals.length), ...rows, ...requestIds])) === 1;
    },
    openAccounts,
    overdue: async (accountId, ageMs, limit) => (await call('overdue', accountId, [String(ageMs), String(limit)])) as readonly string[],
    describeOpen: async (accountId, requestIds) => {
      const flat = (await call('describe', accountId, requestIds)) as readonly string[];
      const found: OpenRequest[] = [];
      for (let i = 0; i + DESCRIBED_FIELDS <= flat.length; i += DESCRIBED_FIELDS) {
        const [requestId = '', keyId = '', writer = '', byok = '', day = '', week = '', month = '', plan = '', charge = '0', tokens = '0', silent = ''] = flat.slice(i, i + DESCRIBED_FIELDS);
        found.push({ requestId, keyId, writer, byok: byok === '1', periods: { day, week, month, plan }, charge: BigInt(charge), tokens: BigInt(tokens), isSilent: silent === '1' });
      }
      return found;
    },
    show: async (accountId) => {
      const [at = '0', walls = '', ...rows] = (await call('show', accountId, [])) as readonly string[];
      const buckets = new Map<string, Bucket>();
      for (let i = 0; i + 1 < rows.length; i += 2) buckets.set(rows[i] ?? '', bucketFrom(rows[i + 1] ?? ''));
      const nowMs = Number(at);
      return { nowMs, buckets, remaining: remainingOf(buckets, accountWalls(walls), periodsAt(nowMs, { anchorDay: 0, ...(periodSeconds === undefined ? {} : { periodSeconds }) })) };
    },
    sweep: async (accountId) => {
      const [ended, waiting] = (await call('sweep', accountId, [])) as readonly number[];
      return { ended: ended ?? 0, hasLeases: waiting === 1 };
    },
  };
}
