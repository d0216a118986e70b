/**
 * The steps of ledger-core's admission as Redis scripts. Keys of an account share a hash tag:
 * KEYS[1] hash of buckets, windows and marks; [2] hash of holds; [3] hash of finished charges; [4] prefix of the sets of ended ids.
 * ARGV[1] is 0 for Redis TIME, else the time itself (milliseconds; tests only). Numbers are doubles: callers check 0 to 9e15.
 *
 * The scripts of `PER_REQUEST` process requests of the account in order and answer each as if it had come alone. ARGV[2] is the number of
 * lists of shared terms; the lists follow, then for each request the number of its list and its own arguments.
 * A script reads a field at most once, works on its copy and writes at the end (`done`). Deletions come first, since a full Redis then accepts the rest.
 */
import { LEASE_MS } from '@signalbox/ledger-core/account-state';
import { DESCRIBE, OVERDUE, SHOW, SWEEP, TOTALS } from './script-account.js';
import { ADMIT } from './script-admit.js';
import { PRELUDE } from './script-prelude.js';

/** Key of the random mark that names the epoch of the store: if it is gone, so is the state. */
export const EPOCH_KEY = 'epoch';

const RELEASE = `
local from=3+ARGV[2]
local function release(req,advance,a,t)
  local h=hold_for(req,advance,a,t)
  if (h and h.d==1) or get(F,req) then return 0 end
  if h then drop(req,h) end
  mark(req)
  return h and awaited() or 0
end
local asked=requests(from,4)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,4 do out[#out+1]=release(ARGV[i+1],ARGV[2+ARGV[i]],tonumber(ARGV[i+2]),tonumber(ARGV[i+3])) end
done()
return out
`;

const HEARTBEAT = `
local from=3+2*ARGV[2]
local function heartbeat(writer,req,to_a,to_t,advance,drawn_a,drawn_t)
  local h=hold_for(req,advance,drawn_a,drawn_t)
  if not h then return to_a==0 and to_t==0 and 1 or 0 end
  h.d=1
  if writer~='' then written_by(h,writer) end
  h.l=now+${LEASE_MS}
  if to_a>0 or to_t>0 then
    for _,w in ipairs(walls_of(h.x.walls)) do
      local to,own=to_t,h.t
      if w.m=='c' then to,own=to_a,h.a end
      if to>0 then
        local spend,res=used(w,h.x)
        if spend+res-own+to>w.limit then put_hold(req,h) return 0 end
      end
    end
  end
  local a,t=max(0,to_a-h.a),max(0,to_t-h.t)
  if a>0 or t>0 then
    h.a=h.a+a h.t=h.t+t
    held(h.x,h.b,a,t)
  end
  put_hold(req,h)
  return 1
end
read(H,requests(from,6))
local out={}
for i=from,#ARGV,6 do out[#out+1]=heartbeat(ARGV[1+2*ARGV[i]],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),ARGV[2+2*ARGV[i]],tonumber(ARGV[i+4]),tonumber(ARGV[i+5])) end
done()
return out
`;

const HELD = `
local out={}
for i=3,#ARGV,2 do out[#out+1]=redis.call('HEXISTS',KEYS[2],ARGV[i+1]) end
return out
`;

const CONFIRM = `
local from=3+ARGV[2]
local function confirm(req,advance,a,t)
  local h=hold_for(req,advance,a,t)
  if not h then return 0 end
  h.l=now+${LEASE_MS}
  if h.d==0 and not get(Q,'w') then put(Q,'w',int(h.l)) end
  put_hold(req,h)
  return 1
end
read(H,requests(from,4))
local out={}
for i=from,#ARGV,4 do out[#out+1]=confirm(ARGV[i+1],ARGV[2+ARGV[i]],tonumber(ARGV[i+2]),tonumber(ARGV[i+3])) end
done()
return out
`;

const REREGISTER = `
local kinds,from={},3+10*ARGV[2]
for i=3,from-1,10 do kinds[#kinds+1]={key=ARGV[i],b=tonumber(ARGV[i+1]),p={ARGV[i+2],ARGV[i+3],ARGV[i+4],ARGV[i+5],tonumber(ARGV[i+6])},walls=ARGV[i+7],w=ARGV[i+8],advance=ARGV[i+9],texts=''} end
for _,k in ipairs(kinds) do k.texts=hold_texts(k.key,k.p,k.walls,k.w) end
local function reregister(k,req,amount,tokens,started,drawn_a,drawn_t)
  if get(F,req) or has_ended(req) then return 0 end
  local h=hold_for(req,k.advance,drawn_a,drawn_t)
  if not h then h={a=0,t=0,b=k.b,d=0,at=k.p[5],x=k} end
  if started=='1' then h.d=1 end
  if k.w~='' then written_by(h,k.w) end
  h.l=now+${LEASE_MS}
  if h.d==0 and not get(Q,'w') then put(Q,'w',int(h.l)) end
  local a,t=max(0,amount-h.a),max(0,tokens-h.t)
  h.a=h.a+a h.t=h.t+t
  put_hold(req,h)
  held(h.x,h.b,a,t)
  return 1
end
local asked=requests(from,7)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,7 do out[#out+1]=reregister(kinds[tonumber(ARGV[i])],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),ARGV[i+4],tonumber(ARGV[i+5]),tonumber(ARGV[i+6])) end
done()
return out
`;

// A request with a hold has not ended, since everything that ends a request removes its hold.
const FINISH = `
local kinds,from={},3+8*ARGV[2]
for i=3,from-1,8 do kinds[#kinds+1]={key=ARGV[i],p=ARGV[i+1]~='' and {ARGV[i+1],ARGV[i+2],ARGV[i+3],ARGV[i+4]},len=tonumber(ARGV[i+5]),w=ARGV[i+6],advance=ARGV[i+7],texts=false} end
local function finished_texts(x,w) return pack('<ssssss',x.key,x.p[1],x.p[2],x.p[3],x.p[4],w) end
local function finish(k,req,charge,tokens,byok,drawn_a,drawn_t)
  local h=hold_for(req,k.advance,drawn_a,drawn_t)
  if not h and has_ended(req) then return 0 end
  local b=get(F,req)
  local before=b and finished_of(b)
  if h then drop(req,h) end
  if before then book(before.x,before.b,-before.c,-before.t) end
  local at,x,texts=before and before.at or now,k,k.texts
  if not texts then
    local w=k.w
    if w=='' and h then w=h.x.w end
    if w=='' and before then w=before.x.w end
    if not k.p then x={key=k.key,p=h and h.x.p or before and before.x.p or ids(now,0,k.len)} end
    texts=finished_texts(x,w)
    if k.p and k.w~='' then k.texts=texts end
  end
  put(F,req,pack('<dddd',charge,tokens,byok,at)..texts)
  book(x,byok,charge,tokens)
  return h and awaited() or 0
end
local asked=requests(from,7)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,7 do out[#out+1]=finish(kinds[tonumber(ARGV[i])],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),tonumber(ARGV[i+4]),tonumber(ARGV[i+5]),tonumber(ARGV[i+6])) end
done()
return out
`;

/** Reads the epoch's mark in the same round trip as calls about holds, after them; belongs to no account. */
const EPOCH = `return redis.call('GET','${EPOCH_KEY}') or ''`;

/** Script texts by name: those that take many requests of an account and return a list, in the same order. */
export const PER_REQUEST = {
  admit: PRELUDE + ADMIT,
  release: PRELUDE + RELEASE,
  heartbeat: PRELUDE + HEARTBEAT,
  held: HELD,
  confirm: PRELUDE + CONFIRM,
  reregister: PRELUDE + REREGISTER,
  finish: PRELUDE + FINISH,
} as const;

/** All script texts by name. */
export const SCRIPTS = {
  ...PER_REQUEST,
  totals: PRELUDE + TOTALS,
  overdue: PRELUDE + OVERDUE,
  describe: PRELUDE + DESCRIBE,
  show: PRELUDE + SHOW,
  sweep: PRELUDE + SWEEP,
  epoch: EPOCH,
} as const;

export type RequestScript = keyof typeof PER_REQUEST;
export type ScriptName = keyof typeof SCRIPTS;
