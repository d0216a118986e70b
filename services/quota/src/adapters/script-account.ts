/** Scripts that work on a whole account, one call at a time. Part of `scripts.ts`, with its arguments and formats. */
import { BUCKET_MEMORY_MS, DAY_MEMORY_MS, FORGET_INTERVAL_MS, LEASE_MS } from '@signalbox/ledger-core/account-state';
import { SILENT_MS } from '@signalbox/ledger-core/settlement';

/** Replaces counted sums by the ledger's totals; returns 1 if earlier totals of the ledger were missed. */
export const TOTALS = `
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
  local h,f=hold(req),get(F,req)
  if h then drop(req,h) end
  if f then local x=finished_of(f) book(x.x,x.b,-x.c,-x.t) del(F,req) end
  if not h and not f and not has_ended(req) then mark(req..' undrawn') end
  mark(req)
end
if loaded~='' then put(Q,'ok',loaded) end
local missed=not answer and (prev>known or seq<known)
if not missed and seq>known then put(Q,'n',int(seq)) end
done()
return missed and 1 or 0
`;

/** Ids of requests without news for too long. */
export const OVERDUE = `
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

/** Describes open requests, in 11 fields each. */
export const DESCRIBE = `
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

/** Returns the time, the limits and every bucket. */
export const SHOW = `
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

/** Ends holds whose lease is over, and deletes old periods and windows; returns how many holds ended, and 1 if a lease may still end. */
export const SWEEP = `
local gone=leases()
local said={gone,get(Q,'w') and 1 or 0}
local due=get(Q,'f')
if due and now<tonumber(due) then done() return said end
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
return said
`;
