/**
 * The steps of ledger-core's admission as Redis scripts. Keys of an account share a hash tag:
 * KEYS[1] hash of buckets, windows and marks; [2] hash of holds; [3] hash of finished charges; [4] prefix of the sets of ended ids.
 * ARGV[1] is 0 for Redis TIME, else the time itself (milliseconds; tests only). Numbers are doubles: callers check 0 to 9e15.
 *
 * The scripts of `PER_REQUEST` take requests of the account in their order and answer each as if it had come alone. ARGV[2] is the number
 * of terms; the terms follow, which is what some of the requests have in common, then request by request the number of its terms and what is its own.
 * A script reads a field at most once, works on what it read, and writes in the end (`done`), what is removed first: a Redis that is full lets the rest follow.
 */
import { BUCKET_MEMORY_MS, DAY_MEMORY_MS, FORGET_INTERVAL_MS, LEASE_MS } from '@signalbox/ledger-core/account-state';
import { BLOCKED_NOTICE_MS } from '@signalbox/ledger-core/admission';
import { SILENT_MS } from '@signalbox/ledger-core/settlement';
import { PRELUDE } from './script-prelude.js';

const ADMIT = `
local kinds,from={},3+11*ARGV[2]
local function head(p,at) return p[1]..'\\n'..p[2]..'\\n'..p[3]..'\\n'..p[4]..'\\n'..int(at)..'\\n' end
local wanted={'w','L','ok'}
for i=3,from-1,11 do
  local k={life=ARGV[i],key=ARGV[i+1],counter=ARGV[i+2],b=tonumber(ARGV[i+3]),p=ids(now,tonumber(ARGV[i+4]),tonumber(ARGV[i+5])),minute=ARGV[i+6],second=ARGV[i+7],key_minute=ARGV[i+8],walls=ARGV[i+9],needs=ARGV[i+10],own='',head='',texts='',gates=false}
  kinds[#kinds+1]=k
  if k.minute~='' then wanted[#wanted+1]='m:'..k.counter end
  if k.second~='' then wanted[#wanted+1]='s:'..k.counter end
  if k.key_minute~='' then wanted[#wanted+1]='m:'..k.counter..':'..k.key end
  k.head,k.texts=head(k.p,now),hold_texts(k.key,k.p,k.walls,'')
  if k.walls~='' then for wall in k.walls:gmatch('a%ac%d+;') do k.own=k.own..wall end end
end
read(Q,wanted)
leases()
local windows={}
local function gate(name,w,slots,limit)
  if limit=='' then return false end
  if windows[name] then return {x=windows[name],limit=tonumber(limit),text=limit} end
  local b,s=floor(now/w),get(Q,name)
  local head,sum
  if s then head,sum=unp('<dd',s) end
  if not s or b-head>=slots or head-b>=slots or (b>head and sum==0) then s,head,sum=string.rep('\\0',16+4*slots),b,0 end
  while head<b do
    head=head+1
    local at=17+4*(head%slots)
    local n=unp('<I4',s,at)
    if n>0 then sum=sum-n s=s:sub(1,at-1)..'\\0\\0\\0\\0'..s:sub(at+4) end
  end
  local x={s=s,head=head,sum=sum,w=w,slots=slots,more=0}
  windows[name]=x
  return {x=x,limit=tonumber(limit),text=limit}
end
for _,k in ipairs(kinds) do k.gates={gate('m:'..k.counter,1000,61,k.minute),gate('s:'..k.counter,100,11,k.second),gate('m:'..k.counter..':'..k.key,1000,61,k.key_minute)} end
local function count(x,b)
  local n=unp('<I4',x.s,17+4*(b%x.slots))
  return b==x.head and n+x.more or n
end
local function full(g) return g.x.sum>=g.limit end
local function wait(g)
  local x,left,target=g.x,g.x.sum,max(0,g.limit-1)
  if left<=target then return 0 end
  for b=x.head-x.slots+1,x.head do
    left=left-count(x,b)
    if left<=target then return max(1,(b+x.slots)*x.w-now) end
  end
  return x.slots*x.w
end
local function newest(x)
  if x.sum==0 then return 0 end
  for b=x.head,x.head-x.slots+1,-1 do
    if count(x,b)>0 then return max(1,(b+x.slots)*x.w-now) end
  end
  return 0
end
local function room(k,x,amount,tokens)
  local rc,rt
  for _,w in ipairs(walls_of(k.walls)) do
    if (w.m=='c' and amount or tokens)>0 then
      local left=max(0,w.limit-used(w,x))
      if w.m=='c' then rc=min(rc or left,left) else rt=min(rt or left,left) end
    end
  end
  return (rc and int(rc) or '')..'\\n'..(rt and int(rt) or '')
end
local function answer(k,decision,x,head,rest)
  local t=tally(k.key,x.p)
  local v=t.v
  local rl,rr,tight
  for i=1,3,2 do local g=k.gates[i] if g then
    local left=max(0,g.limit-g.x.sum)
    if not rl or left<rr then rl,rr,tight=g.text,left,g.x end
  end end
  local said=decision..'\\n'..head..int(v[33]+v[34]+v[36]+v[37]+v[39]+v[40]+t.ft+t.fb+t.ht+t.hb)..'\\n'..rest
  return rl and said..fmt('\\n%s\\n%.0f\\n%.0f',rl,rr,newest(tight)) or said
end
local function admitted(k,x,head,h,ht,amount,tokens)
  return answer(k,'admitted',x,head,h..'\\n'..ht..'\\n'..(k.walls=='' and '\\n' or room(k,x.key==k.key and x or {key=k.key,p=x.p},amount,tokens)))
end
local function refused(k,decision,retry,wall,spend,res)
  return answer(k,decision,k,k.head,fmt('%.0f\\n%.0f\\n%.0f\\n%.0f',retry,wall,spend,res))
end
local function admit(k,req,amount,tokens,least,least_t,text,text_t)
  local known=get(H,req)
  if known then local h=hold_of(known) return admitted(k,h.x,head(h.x.p,h.at),int(h.a),int(h.t),amount,tokens) end
  if get(F,req) then return 'ended' end
  if has_ended(req) then
    if k.counter=='control' then return admitted(k,k,k.head,'0','0',amount,tokens) end
    return 'ended'
  end
  if k.needs=='1' and get(Q,'ok')~=k.life then return 'unloaded' end
  local minute,second,key_minute=k.gates[1],k.gates[2],k.gates[3]
  if second and full(second) then return refused(k,'burst',wait(second),-1,0,0) end
  if minute and full(minute) then return refused(k,'rate',wait(minute),-1,0,0) end
  if key_minute and full(key_minute) then return refused(k,'rate',wait(key_minute),-1,0,0) end
  local h,ht=amount,tokens
  if least==0 or least>amount then least=amount end
  if least_t==0 or least_t>tokens then least_t=tokens end
  if k.walls~='' then
    local met={}
    for i,w in ipairs(walls_of(k.walls)) do
      local c=w.m=='c'
      if (c and amount or tokens)>0 then
        local spend,res=used(w,k)
        if spend+(c and least or least_t)>w.limit then return refused(k,'wall',0,i-1,spend,res) end
        if c then h=min(h,w.limit-spend) else ht=min(ht,w.limit-spend) end
        met[#met+1]={i-1,spend,res,w.limit,c}
      end
    end
    for _,w in ipairs(met) do
      if w[2]+w[3]+(w[5] and h or ht)>w[4] then
        put(Q,'B',int(now+${BLOCKED_NOTICE_MS}))
        return refused(k,'blocked',1000,w[1],w[2],w[3])
      end
    end
  end
  for i=1,3 do local g=k.gates[i] if g then g.x.sum=g.x.sum+1 g.x.more=g.x.more+1 end end
  if k.counter=='control' then
    mark(req)
    return admitted(k,k,k.head,'0','0',amount,tokens)
  end
  local lease=now+${LEASE_MS}
  put(H,req,pack('<dddddd',h,ht,k.b,0,lease,now)..k.texts)
  if not get(Q,'w') then put(Q,'w',int(lease)) end
  if (get(Q,'L') or '')~=k.own then put(Q,'L',k.own) end
  held(k,k.b,h,ht)
  return admitted(k,k,k.head,h==amount and text or int(h),ht==tokens and text_t or int(ht),amount,tokens)
end
local asked=requests(from,6)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,6 do
  out[#out+1]=admit(kinds[tonumber(ARGV[i])],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),tonumber(ARGV[i+4]),tonumber(ARGV[i+5]),ARGV[i+2],ARGV[i+3])
end
for name,x in pairs(windows) do if x.more>0 then
  local at=17+4*(x.head%x.slots)
  put(Q,name,pack('<dd',x.head,x.sum)..x.s:sub(17,at-1)..pack('<I4',count(x,x.head))..x.s:sub(at+4))
end end
done()
return out
`;

const RELEASE = `
local function release(req)
  local s=get(H,req)
  local h=s and hold_of(s)
  if (h and h.d==1) or get(F,req) then return 0 end
  if h then drop(req,h) end
  mark(req)
  return h and awaited() or 0
end
local asked=requests(3,2)
read(H,asked) read(F,asked)
local out={}
for i=1,#asked do out[i]=release(asked[i]) end
done()
return out
`;

const HEARTBEAT = `
local from=3+ARGV[2]
local function heartbeat(writer,req,to_a,to_t)
  local s=get(H,req)
  if not s then return to_a==0 and to_t==0 and 1 or 0 end
  local h=hold_of(s)
  h.d=1
  if writer~='' then written_by(h,writer) end
  h.l=now+${LEASE_MS}
  local a,t=max(0,to_a-h.a),max(0,to_t-h.t)
  if a>0 or t>0 then
    for _,w in ipairs(walls_of(h.x.walls)) do
      local grow=w.m=='c' and a or t
      if grow>0 then
        local spend,res=used(w,h.x)
        if spend+res+grow>w.limit then put_hold(req,h) return 0 end
      end
    end
    h.a=h.a+a h.t=h.t+t
    held(h.x,h.b,a,t)
  end
  put_hold(req,h)
  return 1
end
read(H,requests(from,4))
local out={}
for i=from,#ARGV,4 do out[#out+1]=heartbeat(ARGV[2+ARGV[i]],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3])) end
done()
return out
`;

const HELD = `
local out={}
for i=3,#ARGV,2 do out[#out+1]=redis.call('HEXISTS',KEYS[2],ARGV[i+1]) end
return out
`;

const CONFIRM = `
local function confirm(req)
  local s=get(H,req)
  if not s then return 0 end
  local h=hold_of(s)
  h.l=now+${LEASE_MS}
  if h.d==0 and not get(Q,'w') then put(Q,'w',int(h.l)) end
  put_hold(req,h)
  return 1
end
local asked=requests(3,2)
read(H,asked)
local out={}
for i=1,#asked do out[i]=confirm(asked[i]) end
done()
return out
`;

const REREGISTER = `
local kinds,from={},3+9*ARGV[2]
for i=3,from-1,9 do kinds[#kinds+1]={key=ARGV[i],b=tonumber(ARGV[i+1]),p={ARGV[i+2],ARGV[i+3],ARGV[i+4],ARGV[i+5],tonumber(ARGV[i+6])},walls=ARGV[i+7],w=ARGV[i+8],texts=''} end
for _,k in ipairs(kinds) do k.texts=hold_texts(k.key,k.p,k.walls,k.w) end
local function reregister(k,req,amount,tokens,started)
  if get(F,req) or has_ended(req) then return 0 end
  local s=get(H,req)
  local h=s and hold_of(s)
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
local asked=requests(from,5)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,5 do out[#out+1]=reregister(kinds[tonumber(ARGV[i])],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),ARGV[i+4]) end
done()
return out
`;

// A request with a hold has not ended: whatever ends one takes its hold.
const FINISH = `
local kinds,from={},3+7*ARGV[2]
for i=3,from-1,7 do kinds[#kinds+1]={key=ARGV[i],p=ARGV[i+1]~='' and {ARGV[i+1],ARGV[i+2],ARGV[i+3],ARGV[i+4]},len=tonumber(ARGV[i+5]),w=ARGV[i+6],texts=false} end
local function finished_texts(x,w) return pack('<ssssss',x.key,x.p[1],x.p[2],x.p[3],x.p[4],w) end
local function finish(k,req,charge,tokens,byok)
  local s=get(H,req)
  if not s and has_ended(req) then return 0 end
  local b=get(F,req)
  local h,before=s and hold_of(s),b and finished_of(b)
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
local asked=requests(from,5)
read(H,asked) read(F,asked)
local out={}
for i=from,#ARGV,5 do out[#out+1]=finish(kinds[tonumber(ARGV[i])],ARGV[i+1],tonumber(ARGV[i+2]),tonumber(ARGV[i+3]),tonumber(ARGV[i+4])) end
done()
return out
`;

const TOTALS = `
local seq,loaded,prev,asked,n=tonumber(ARGV[2]),ARGV[3],tonumber(ARGV[4]),tonumber(ARGV[5]),tonumber(ARGV[6])
local known=tonumber(get(Q,'n') or '0')
if seq<asked then
  local list=call('HGETALL',Q.key)
  for i=1,#list,2 do if list[i]:sub(1,2)=='b:' then
    local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,list[i+1])
    if s>seq and s<=asked then call('HSET',Q.key,list[i],pack(BF,seq,0,0,0,c2,t2,b2,c3,t3,b3)) end
  end end
  if known>seq and known<=asked then known=seq put(Q,'n',int(seq)) end
end
local named,reqs,behind={},{},false
for i=7,6+4*n,4 do named[#named+1]='b:'..ARGV[i] end
for i=7+4*n,#ARGV do reqs[#reqs+1]=ARGV[i] end
read(Q,named) read(H,reqs) read(F,reqs)
for i=1,n do
  local at=3+4*i
  local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,get(Q,named[i]) or ZERO)
  if seq>=s then put(Q,named[i],pack(BF,seq,tonumber(ARGV[at+1]),tonumber(ARGV[at+2]),tonumber(ARGV[at+3]),c2,t2,b2,c3,t3,b3)) else behind=true end
end
write(Q)
Q.new=false
local answer=loaded~='' or asked>=0
if behind and not answer then done() return 1 end
for _,req in ipairs(reqs) do
  local s,f=get(H,req),get(F,req)
  if s then drop(req,hold_of(s)) end
  if f then local x=finished_of(f) book(x.x,x.b,-x.c,-x.t) del(F,req) end
  mark(req)
end
if loaded~='' then put(Q,'ok',loaded) end
local missed=not answer and (prev>known or seq<known)
if not missed and seq>known then put(Q,'n',int(seq)) end
done()
return missed and 1 or 0
`;

const OVERDUE = `
local age,limit=tonumber(ARGV[2]),tonumber(ARGV[3])
local out={}
local list=call('HGETALL',KEYS[3])
for i=1,#list,2 do if #out<limit then
  local at=finished_of(list[i+1]).at
  if at<=now-age or at>now then out[#out+1]=list[i] end
end end
list=call('HGETALL',KEYS[2])
for i=1,#list,2 do if #out<limit then
  local h=hold_of(list[i+1])
  if h.d==1 and (h.l<=now or h.l>now+${LEASE_MS}) then out[#out+1]=list[i] end
end end
return out
`;

const DESCRIBE = `
local out={}
for i=2,#ARGV do
  local req=ARGV[i]
  local f=get(F,req)
  local x
  if f then x=finished_of(f) else
    local s=get(H,req)
    if s then x=hold_of(s) if x.d==0 then x=nil else x.c=0 x.t=0 x.at=x.l-${LEASE_MS} end end
  end
  if x then for _,v in ipairs({req,x.x.key,x.x.w,int(x.b),x.x.p[1],x.x.p[2],x.x.p[3],x.x.p[4],int(x.c),int(x.t),x.at<=now-${SILENT_MS} and '1' or '0'}) do out[#out+1]=v end end
end
return out
`;

const SHOW = `
leases()
done()
local out={int(now),get(Q,'L') or ''}
local list=call('HGETALL',KEYS[1])
for i=1,#list,2 do if list[i]:sub(1,2)=='b:' then
  out[#out+1]=list[i]:sub(3)
  local v={unp(BF,list[i+1])}
  for k=1,10 do v[k]=int(v[k]) end
  out[#out+1]=table.concat(v,' ',1,10)
end end
return out
`;

const SWEEP = `
local gone=leases()
local due=get(Q,'f')
if due and now<tonumber(due) then done() return gone end
put(Q,'f',int(now+${FORGET_INTERVAL_MS}))
done()
local old=ids(max(0,now-${BUCKET_MEMORY_MS}),0,0)
old[1]=ids(max(0,now-${DAY_MEMORY_MS}),0,0)[1]
local at={day=1,week=2,month=3,plan=4}
local list=call('HGETALL',KEYS[1])
for i=1,#list,2 do
  local name,v=list[i],list[i+1]
  local kind,id=name:match('^b:.-|(%a+):(.+)$')
  if kind and at[kind] and id:sub(1,1)~='p' and id<old[at[kind]] then
    local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,v)
    if c2==0 and t2==0 and b2==0 and c3==0 and t3==0 and b3==0 then call('HDEL',KEYS[1],name) end
  end
  local w=name:match('^([ms]):')
  if w then
    local head=unp('<d',v)
    if now>(head+(w=='m' and 61 or 11))*(w=='m' and 1000 or 100) then call('HDEL',KEYS[1],name) end
  end
end
return gone
`;

/** Script texts by name: those that take many requests of an account and answer a list, in their order. */
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
} as const;

export type RequestScript = keyof typeof PER_REQUEST;
export type ScriptName = keyof typeof SCRIPTS;
