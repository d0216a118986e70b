/**
 * The steps of ledger-core's admission as Redis scripts. Keys of an account share a hash tag:
 * KEYS[1] hash of buckets, windows and marks; [2] hash of holds; [3] hash of finished charges; [4] prefix of the sets of ended ids.
 * ARGV[1] is 0 for Redis TIME, else the time itself (milliseconds; tests only). Numbers are doubles: callers check 0 to 9e15.
 */
import { BLOCKED_NOTICE_MS, BUCKET_MEMORY_MS, ENDED_GENERATION_MS, LEASE_MS, SWEEP_INTERVAL_MS } from '@signalbox/ledger-core/admission';

// Packed forms: bucket = 10 doubles in the order of Bucket; hold = amount tokens byok dispatched lease reservedAt, key day week month plan walls;
// finished = charge tokens byok at, key day week month plan; both with their writer behind, which a record of an older version lacks; window = head sum, then one count a slot.
const PRELUDE = `
local Q,H,F,E=KEYS[1],KEYS[2],KEYS[3],KEYS[4]
local call,floor,pack,unp,fmt,max,min=redis.call,math.floor,struct.pack,struct.unpack,string.format,math.max,math.min
local now=tonumber(ARGV[1])
if now==0 then local T=call('TIME') now=T[1]*1000+floor(T[2]/1000) end
local BF,HF,FF='<dddddddddd','<ddddddssssss','<ddddsssss'
local ZERO=pack(BF,0,0,0,0,0,0,0,0,0,0)
local function int(n) return fmt('%.0f',n) end
local function civil(days)
  local z=days+719468
  local era=floor(z/146097)
  local doe=z-era*146097
  local yoe=floor((doe-floor(doe/1460)+floor(doe/36524)-floor(doe/146096))/365)
  local doy=doe-(365*yoe+floor(yoe/4)-floor(yoe/100))
  local mp=floor((5*doy+2)/153)
  local m=mp<10 and mp+3 or mp-9
  local y=yoe+era*400
  if m<=2 then y=y+1 end
  return y,m,doy-floor((153*mp+2)/5)+1
end
local function ids(at,anchor,len)
  local days=floor(at/86400000)
  local y,m,d=civil(days)
  local thu=days-((days+3)%7)+3
  local wy=civil(thu)
  local p=wy-1
  local jan1=p*365+floor(p/4)-floor(p/100)+floor(p/400)+306-719468
  local month=fmt('%04d-%02d',y,m)
  local plan=month
  if d<anchor then if m==1 then plan=fmt('%04d-12',y-1) else plan=fmt('%04d-%02d',y,m-1) end end
  local day=fmt('%s-%02d',month,d)
  if len>0 then month='p'..int(floor(at/len)) plan=month end
  return {day,fmt('%04d-W%02d',wy,floor((thu-jan1)/7)+1),month,plan,at}
end
local function names(key,p)
  local n={'b:account|day:'..p[1],'b:account|week:'..p[2],'b:account|month:'..p[3],'b:account|plan:'..p[4],'b:account|total'}
  if key~='' then
    local k='b:'..key..'|'
    n[6]=k..'day:'..p[1] n[7]=k..'week:'..p[2] n[8]=k..'month:'..p[3] n[9]=k..'total'
  end
  return n
end
local function change(key,p,fc,ft,fb,hc,ht,hb)
  local n=names(key,p)
  local v=call('HMGET',Q,unpack(n))
  local set={}
  for i=1,#n do
    local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,v[i] or ZERO)
    set[2*i-1]=n[i] set[2*i]=pack(BF,s,c,t,b,c2+fc,t2+ft,b2+fb,c3+hc,t3+ht,b3+hb)
  end
  call('HSET',Q,unpack(set))
end
local sums={}
local function add(key,p,fc,ft,fb,hc,ht,hb)
  local id=key..'|'..p[1]..p[2]..p[3]..p[4]
  local e=sums[id]
  if not e then e={key,p,0,0,0,0,0,0} sums[id]=e sums[#sums+1]=e end
  e[3]=e[3]+fc e[4]=e[4]+ft e[5]=e[5]+fb e[6]=e[6]+hc e[7]=e[7]+ht e[8]=e[8]+hb
end
local function apply() for i=1,#sums do change(unpack(sums[i],1,8)) end end
local function writer_at(s,at) if at>#s then return '' end return (unp('<s',s,at)) end
local function hold_of(s)
  local a,t,b,d,l,at,key,day,week,month,plan,walls,rest=unp(HF,s)
  return {a=a,t=t,b=b,d=d,l=l,key=key,p={day,week,month,plan,at},walls=walls,w=writer_at(s,rest)}
end
local function put_hold(req,h)
  call('HSET',H,req,pack(HF..'s',h.a,h.t,h.b,h.d,h.l,h.p[5],h.key,h.p[1],h.p[2],h.p[3],h.p[4],h.walls,h.w or ''))
end
local function held(h,a,t) change(h.key,h.p,0,0,0,a,h.b==1 and 0 or t,h.b==1 and t or 0) end
local function drop(req,h) held(h,-h.a,-h.t) call('HDEL',H,req) end
local function unhold(req,h) add(h.key,h.p,0,0,0,-h.a,h.b==1 and 0 or -h.t,h.b==1 and -h.t or 0) call('HDEL',H,req) end
local function finished_of(s)
  local c,t,b,at,key,day,week,month,plan,rest=unp(FF,s)
  return {c=c,t=t,b=b,at=at,key=key,p={day,week,month,plan,at},w=writer_at(s,rest)}
end
local function book(f,sign) add(f.key,f.p,sign*f.c,f.b==1 and 0 or sign*f.t,f.b==1 and sign*f.t or 0,0,0,0) end
local GEN=floor(now/${ENDED_GENERATION_MS})
local function has_ended(req) return call('SISMEMBER',E..int(GEN),req)==1 or call('SISMEMBER',E..int(GEN-1),req)==1 end
local function mark(req)
  local k=E..int(GEN)
  call('SADD',k,req)
  call('PEXPIRE',k,${ENDED_GENERATION_MS * 3})
end
local function used(s,meter)
  local q,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,s or ZERO)
  if meter=='c' then return c+c2,c3 elseif meter=='t' then return t+t2,t3 end
  return b+b2,b3
end
local KIND={d='day:',w='week:',m='month:',p='plan:'}
local AT={d=1,w=2,m=3,p=4}
local function wall_name(scope,kind,key,p)
  local s=scope=='a' and 'b:account|' or 'b:'..key..'|'
  if kind=='t' then return s..'total' end
  return s..KIND[kind]..p[AT[kind]]
end
local function awaited() return now<tonumber(call('HGET',Q,'B') or '0') and 1 or 0 end
local function leases()
  local gone=0
  local due=call('HGET',Q,'w')
  if not due or tonumber(due)>now then return 0 end
  local nxt
  local all=call('HGETALL',H)
  for i=1,#all,2 do
    local h=hold_of(all[i+1])
    if h.d==0 then
      if h.l<=now then drop(all[i],h) mark(all[i]) call('HDEL',Q,'ok') gone=gone+1
      elseif not nxt or h.l<nxt then nxt=h.l end
    end
  end
  if nxt then call('HSET',Q,'w',int(max(nxt,now+${SWEEP_INTERVAL_MS}))) else call('HDEL',Q,'w') end
  return gone
end
`;

const ADMIT = `
local epoch,req,key,counter=ARGV[2],ARGV[3],ARGV[4],ARGV[5]
local amount,tokens,byok,least=tonumber(ARGV[6]),tonumber(ARGV[7]),tonumber(ARGV[8]),tonumber(ARGV[9])
local anchor,len=tonumber(ARGV[10]),tonumber(ARGV[11])
local walls=ARGV[15]
local least_t=tonumber(ARGV[17])
leases()
local cand={{'m:'..counter,1000,61,ARGV[12]},{'s:'..counter,100,11,ARGV[13]},{'m:'..counter..':'..key,1000,61,ARGV[14]}}
local g={}
local function fresh(b,slots) return pack('<dd',b,0)..string.rep('\\0',4*slots),b,0 end
for i=1,3 do local c=cand[i] if c[4]~='' then
  local w,slots=c[2],c[3]
  local b=floor(now/w)
  local s=call('HGET',Q,c[1])
  local head,sum
  if not s then s,head,sum=fresh(b,slots) else
    head,sum=unp('<dd',s)
    if b>head then
      if b-head>=slots or sum==0 then s,head,sum=fresh(b,slots) else
        local f='<'..string.rep('I4',slots)
        local v={unp(f,s,17)}
        for j=1,b-head do local k=(head+j)%slots+1 sum=sum-v[k] v[k]=0 end
        head=b
        s=pack('<dd',head,sum)..pack(f,unpack(v,1,slots))
      end
    end
  end
  g[i]={n=c[1],w=w,slots=slots,limit=tonumber(c[4]),s=s,head=head,sum=sum}
end end
local function drain(x,target)
  local left=x.sum
  if left<=target then return 0 end
  for b=x.head-x.slots+1,x.head do
    left=left-unp('<I4',x.s,17+4*(b%x.slots))
    if left<=target then return max(1,(b+x.slots)*x.w-now) end
  end
  return x.slots*x.w
end
local function newest(x)
  if x.sum==0 then return 0 end
  for b=x.head,x.head-x.slots+1,-1 do
    if unp('<I4',x.s,17+4*(b%x.slots))>0 then return max(1,(b+x.slots)*x.w-now) end
  end
  return 0
end
local function room(p)
  local rc,rt
  for scope,kind,meter,limit in walls:gmatch('(%a)(%a)(%a)(%d+);') do
    if (meter=='c' and amount or tokens)>0 then
      local spend=used(call('HGET',Q,wall_name(scope,kind,key,p)),meter)
      local left=max(0,tonumber(limit)-spend)
      if meter=='c' then rc=min(rc or left,left) else rt=min(rt or left,left) end
    end
  end
  return rc and int(rc) or '',rt and int(rt) or ''
end
local function answer(decision,p,retry,wi,spend,res,h,ht)
  local ft,fr=used(call('HGET',Q,'b:account|plan:'..p[4]),'t')
  local rl,rr,rs
  for i=1,3,2 do local x=g[i] if x then
    local left=max(0,x.limit-x.sum)
    if not rl or left<rr then rl,rr,rs=x.limit,left,newest(x) end
  end end
  local rc,rt='',''
  if decision=='admitted' then rc,rt=room(p) end
  return {decision,int(retry),rl and int(rl) or '',int(rr or 0),int(rs or 0),int(ft+fr),int(wi),int(spend),int(res),int(h),p[1],p[2],p[3],p[4],int(p[5]),int(ht or 0),rc,rt}
end
local known=call('HGET',H,req)
if known then local h=hold_of(known) return answer('admitted',h.p,0,-1,0,0,h.a,h.t) end
if call('HEXISTS',F,req)==1 then return {'ended'} end
local p=ids(now,anchor,len)
if has_ended(req) then
  if counter=='control' then return answer('admitted',p,0,-1,0,0,0) end
  return {'ended'}
end
if ARGV[16]=='1' and call('HGET',Q,'ok')~=epoch then return {'unloaded'} end
local order={2,1,3}
for k=1,3 do local x=g[order[k]] if x and x.sum>=x.limit then
  return answer(order[k]==2 and 'burst' or 'rate',p,drain(x,max(0,x.limit-1)),-1,0,0,0)
end end
local h,ht=amount,tokens
if least==0 or least>amount then least=amount end
if least_t==0 or least_t>tokens then least_t=tokens end
local list={}
local own=''
local i=0
for scope,kind,meter,limit in walls:gmatch('(%a)(%a)(%a)(%d+);') do
  if scope=='a' and meter=='c' then own=own..scope..kind..meter..limit..';' end
  if (meter=='c' and amount or tokens)>0 then
    local lim=tonumber(limit)
    local spend,res=used(call('HGET',Q,wall_name(scope,kind,key,p)),meter)
    if spend+(meter=='c' and least or least_t)>lim then return answer('wall',p,0,i,spend,res,0) end
    if meter=='c' then h=min(h,lim-spend) else ht=min(ht,lim-spend) end
    list[#list+1]={i,spend,res,lim,meter}
  end
  i=i+1
end
for k=1,#list do local w=list[k]
  if w[2]+w[3]+(w[5]=='c' and h or ht)>w[4] then
    call('HSET',Q,'B',int(now+${BLOCKED_NOTICE_MS}))
    return answer('blocked',p,1000,w[1],w[2],w[3],0)
  end
end
for k=1,3 do local x=g[k] if x then
  local at=17+4*(x.head%x.slots)
  x.sum=x.sum+1
  x.s=pack('<dd',x.head,x.sum)..x.s:sub(17,at-1)..pack('<I4',unp('<I4',x.s,at)+1)..x.s:sub(at+4)
  call('HSET',Q,x.n,x.s)
end end
if counter=='control' then mark(req) return answer('admitted',p,0,-1,0,0,0) end
local hold={a=h,t=ht,b=byok,d=0,l=now+${LEASE_MS},key=key,p=p,walls=walls}
put_hold(req,hold)
call('HSETNX',Q,'w',int(hold.l))
if (call('HGET',Q,'L') or '')~=own then call('HSET',Q,'L',own) end
held(hold,h,ht)
return answer('admitted',p,0,-1,0,0,h,ht)
`;

const RELEASE = `
local req=ARGV[2]
local s=call('HGET',H,req)
local h=s and hold_of(s)
if (h and h.d==1) or call('HEXISTS',F,req)==1 then return 0 end
if h then drop(req,h) end
mark(req)
return h and awaited() or 0
`;

const HEARTBEAT = `
local req,to_a,to_t=ARGV[2],tonumber(ARGV[3]),tonumber(ARGV[4])
local s=call('HGET',H,req)
if not s then return to_a==0 and to_t==0 and 1 or 0 end
local h=hold_of(s)
h.d=1
if ARGV[5]~='' then h.w=ARGV[5] end
h.l=now+${LEASE_MS}
local a,t=max(0,to_a-h.a),max(0,to_t-h.t)
for scope,kind,meter,limit in h.walls:gmatch('(%a)(%a)(%a)(%d+);') do
  local grow=meter=='c' and a or t
  if grow>0 then
    local spend,res=used(call('HGET',Q,wall_name(scope,kind,h.key,h.p)),meter)
    if spend+res+grow>tonumber(limit) then put_hold(req,h) return 0 end
  end
end
h.a=h.a+a h.t=h.t+t
put_hold(req,h)
if a>0 or t>0 then held(h,a,t) end
return 1
`;

const REREGISTER = `
local req=ARGV[2]
if call('HEXISTS',F,req)==1 or has_ended(req) then return 0 end
local s=call('HGET',H,req)
local h
if s then h=hold_of(s) if h.key=='' and ARGV[6]~='' then drop(req,h) h=nil end end
if not h then h={a=0,t=0,b=tonumber(ARGV[5]),key=ARGV[6],p={ARGV[7],ARGV[8],ARGV[9],ARGV[10],tonumber(ARGV[11])},d=0,walls=ARGV[12]} end
if ARGV[13]=='1' then h.d=1 end
if ARGV[14]~='' then h.w=ARGV[14] end
h.l=now+${LEASE_MS}
if h.d==0 then call('HSETNX',Q,'w',int(h.l)) end
local a,t=max(0,tonumber(ARGV[3])-h.a),max(0,tonumber(ARGV[4])-h.t)
h.a=h.a+a h.t=h.t+t
put_hold(req,h)
held(h,a,t)
return 1
`;

const FINISH = `
local req=ARGV[2]
if has_ended(req) then return 0 end
local s,b=call('HGET',H,req),call('HGET',F,req)
local h,before=s and hold_of(s),b and finished_of(b)
if h then unhold(req,h) end
if before then book(before,-1) end
local p
if ARGV[7]~='' then p={ARGV[7],ARGV[8],ARGV[9],ARGV[10],tonumber(ARGV[11])}
elseif h then p=h.p elseif before then p=before.p else p=ids(now,0,tonumber(ARGV[12])) end
local f={c=tonumber(ARGV[3]),t=tonumber(ARGV[4]),b=tonumber(ARGV[5]),key=ARGV[6],p=p}
local w=ARGV[13]
if w=='' and h then w=h.w end
if w=='' and before then w=before.w end
call('HSET',F,req,pack(FF..'s',f.c,f.t,f.b,before and before.at or now,f.key,p[1],p[2],p[3],p[4],w))
book(f,1)
apply()
return h and awaited() or 0
`;

const TOTALS = `
local seq,loaded,prev,asked,n=tonumber(ARGV[2]),ARGV[3],tonumber(ARGV[4]),tonumber(ARGV[5]),tonumber(ARGV[6])
local known=tonumber(call('HGET',Q,'n') or '0')
if seq<asked then
  local all=call('HGETALL',Q)
  for i=1,#all,2 do if all[i]:sub(1,2)=='b:' then
    local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,all[i+1])
    if s>seq and s<=asked then call('HSET',Q,all[i],pack(BF,seq,0,0,0,c2,t2,b2,c3,t3,b3)) end
  end end
  if known>seq and known<=asked then known=seq call('HSET',Q,'n',int(seq)) end
end
for i=1,n do
  local at=7+4*(i-1)
  local name='b:'..ARGV[at]
  local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,call('HGET',Q,name) or ZERO)
  if seq>=s then call('HSET',Q,name,pack(BF,seq,tonumber(ARGV[at+1]),tonumber(ARGV[at+2]),tonumber(ARGV[at+3]),c2,t2,b2,c3,t3,b3)) end
end
for i=7+4*n,#ARGV do
  local req=ARGV[i]
  local s=call('HGET',H,req)
  if s then unhold(req,hold_of(s)) end
  local f=call('HGET',F,req)
  if f then book(finished_of(f),-1) call('HDEL',F,req) end
  call('SADD',E..int(GEN),req)
end
if #ARGV>6+4*n then call('PEXPIRE',E..int(GEN),${ENDED_GENERATION_MS * 3}) end
apply()
if loaded~='' then call('HSET',Q,'ok',loaded) end
if loaded=='' and asked<0 and (prev>known or seq<known) then return 1 end
if seq>known then call('HSET',Q,'n',int(seq)) end
return 0
`;

const OVERDUE = `
local age,limit=tonumber(ARGV[2]),tonumber(ARGV[3])
local out={}
local all=call('HGETALL',F)
for i=1,#all,2 do if #out<limit and finished_of(all[i+1]).at<=now-age then out[#out+1]=all[i] end end
all=call('HGETALL',H)
for i=1,#all,2 do if #out<limit then
  local h=hold_of(all[i+1])
  if h.d==1 and h.l<=now then out[#out+1]=all[i] end
end end
return out
`;

const DESCRIBE = `
local out={}
for i=2,#ARGV do
  local req=ARGV[i]
  local f=call('HGET',F,req)
  local x
  if f then x=finished_of(f) else
    local s=call('HGET',H,req)
    if s then x=hold_of(s) if x.d==0 then x=nil else x.c=0 x.t=0 end end
  end
  if x then for _,v in ipairs({req,x.key,x.w,int(x.b),x.p[1],x.p[2],x.p[3],x.p[4],int(x.c),int(x.t)}) do out[#out+1]=v end end
end
return out
`;

const SHOW = `
leases()
local out={int(now),call('HGET',Q,'L') or ''}
local all=call('HGETALL',Q)
for i=1,#all,2 do if all[i]:sub(1,2)=='b:' then
  out[#out+1]=all[i]:sub(3)
  local v={unp(BF,all[i+1])}
  for k=1,10 do v[k]=int(v[k]) end
  out[#out+1]=table.concat(v,' ',1,10)
end end
return out
`;

const SWEEP = `
local gone=leases()
local old=ids(max(0,now-${BUCKET_MEMORY_MS}),0,0)
local at={day=1,week=2,month=3,plan=4}
local all=call('HGETALL',Q)
for i=1,#all,2 do
  local name,v=all[i],all[i+1]
  local kind,id=name:match('^b:.-|(%a+):(.+)$')
  if kind and at[kind] and id:sub(1,1)~='p' and id<old[at[kind]] then
    local s,c,t,b,c2,t2,b2,c3,t3,b3=unp(BF,v)
    if c2==0 and t2==0 and b2==0 and c3==0 and t3==0 and b3==0 then call('HDEL',Q,name) end
  end
  local w=name:match('^([ms]):')
  if w then
    local head=unp('<d',v)
    if now>(head+(w=='m' and 61 or 11))*(w=='m' and 1000 or 100) then call('HDEL',Q,name) end
  end
end
return gone
`;

/** Script texts by name. */
export const SCRIPTS = {
  admit: PRELUDE + ADMIT,
  release: PRELUDE + RELEASE,
  heartbeat: PRELUDE + HEARTBEAT,
  reregister: PRELUDE + REREGISTER,
  finish: PRELUDE + FINISH,
  totals: PRELUDE + TOTALS,
  overdue: PRELUDE + OVERDUE,
  describe: PRELUDE + DESCRIBE,
  show: PRELUDE + SHOW,
  sweep: PRELUDE + SWEEP,
} as const;

export type ScriptName = keyof typeof SCRIPTS;
