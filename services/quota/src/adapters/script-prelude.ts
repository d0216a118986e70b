/** What the scripts of quota's store have in common: the packed forms of `scripts.ts`, its hashes as read and changed, periods, and the steps that several take. */
import { ENDED_GENERATION_MS, LEASE_MS, SWEEP_INTERVAL_MS } from '@signalbox/ledger-core/account-state';

/** Values in one command: Lua hands over 8,000 at most. Even, since fields are written in pairs. */
const VALUES_MAX = 2_000;

// Packed forms: bucket = 10 doubles in the order of Bucket; hold = amount tokens byok dispatched lease reservedAt, key day week month plan walls;
// finished = charge tokens byok at, key day week month plan; both with their writer behind, which a record of an older version lacks; window = head sum, then one count a slot.
/** Comes before every script. */
export const PRELUDE = `
local call,floor,pack,unp,fmt,max,min=redis.call,math.floor,struct.pack,struct.unpack,string.format,math.max,math.min
local now=tonumber(ARGV[1])
if now==0 then local T=call('TIME') now=T[1]*1000+floor(T[2]/1000) end
local BF,HF,FF='<dddddddddd','<ddddddssssss','<ddddsssss'
local function int(n) return fmt('%.0f',n) end
local function all(command,key,list)
  for i=1,#list,${VALUES_MAX} do call(command,key,unpack(list,i,min(i+${VALUES_MAX - 1},#list))) end
end
local function hash(key) return {key=key,at={},new=false} end
local Q,H,F,E=hash(KEYS[1]),hash(KEYS[2]),hash(KEYS[3]),KEYS[4]
local function read(x,names)
  for i=1,#names,${VALUES_MAX} do
    local found=call('HMGET',x.key,unpack(names,i,min(i+${VALUES_MAX - 1},#names)))
    for j=1,#found do local name=names[i+j-1] if x.at[name]==nil then x.at[name]=found[j] end end
  end
end
local function get(x,name)
  local v=x.at[name]
  if v==nil then v=call('HGET',x.key,name) x.at[name]=v end
  return v
end
local function put(x,name,v)
  x.at[name]=v
  if x.new then x.new[name]=true else x.new={[name]=true} end
end
local function del(x,name) put(x,name,false) end
local function write(x)
  if not x.new then return end
  local set,n,gone={},0
  for name in pairs(x.new) do
    local v=x.at[name]
    if v then set[n+1]=name set[n+2]=v n=n+2
    elseif gone then gone[#gone+1]=name else gone={name} end
  end
  if gone then all('HDEL',x.key,gone) end
  all('HSET',x.key,set)
end
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
local ZERO='${'\\0'.repeat(80)}'
local function packed(b,i) return pack(BF,unpack(b,i+1,i+10)) end
local open
local function shut()
  local t=open
  open=nil
  if not t or not t.new then return end
  local n,v=t.n,t.v
  if #n==5 then call('HSET',Q.key,n[1],packed(v,0),n[2],packed(v,10),n[3],packed(v,20),n[4],packed(v,30),n[5],packed(v,40))
  else call('HSET',Q.key,n[1],packed(v,0),n[2],packed(v,10),n[3],packed(v,20),n[4],packed(v,30),n[5],packed(v,40),n[6],packed(v,50),n[7],packed(v,60),n[8],packed(v,70),n[9],packed(v,80)) end
end
local function tally(key,p)
  local day,week,month,plan=p[1],p[2],p[3],p[4]
  local t=open
  if t and t.key==key and t.p[1]==day and t.p[2]==week and t.p[3]==month and t.p[4]==plan then return t end
  shut()
  local n
  if key=='' then
    n={'b:account|day:'..day,'b:account|week:'..week,'b:account|month:'..month,'b:account|plan:'..plan,'b:account|total'}
  else
    local k='b:'..key..'|'
    n={'b:account|day:'..day,'b:account|week:'..week,'b:account|month:'..month,'b:account|plan:'..plan,'b:account|total',k..'day:'..day,k..'week:'..week,k..'month:'..month,k..'total'}
  end
  local all=call('HMGET',Q.key,unpack(n))
  for i=1,#n do all[i]=all[i] or ZERO end
  open={n=n,key=key,p=p,new=false,v={unp(#n==5 and '<${'d'.repeat(50)}' or '<${'d'.repeat(90)}',table.concat(all))}}
  return open
end
local function held(h,a,t)
  local list=tally(h.key,h.p)
  local v,at=list.v,h.b==1 and 10 or 9
  for i=0,10*#list.n-10,10 do v[i+8]=v[i+8]+a v[i+at]=v[i+at]+t end
  list.new=true
end
local function book(f,sign)
  local list,c,t=tally(f.key,f.p),sign*f.c,sign*f.t
  local v,at=list.v,f.b==1 and 7 or 6
  for i=0,10*#list.n-10,10 do v[i+5]=v[i+5]+c v[i+at]=v[i+at]+t end
  list.new=true
end
local function writer_at(s,at) if at>#s then return '' end return (unp('<s',s,at)) end
local function hold_of(s)
  local a,t,b,d,l,at,key,day,week,month,plan,walls,rest=unp(HF,s)
  return {a=a,t=t,b=b,d=d,l=l,key=key,p={day,week,month,plan,at},walls=walls,w=writer_at(s,rest)}
end
local function put_hold(req,h)
  put(H,req,pack(HF..'s',h.a,h.t,h.b,h.d,h.l,h.p[5],h.key,h.p[1],h.p[2],h.p[3],h.p[4],h.walls,h.w or ''))
end
local function drop(req,h) held(h,-h.a,-h.t) del(H,req) end
local function finished_of(s)
  local c,t,b,at,key,day,week,month,plan,rest=unp(FF,s)
  return {c=c,t=t,b=b,at=at,key=key,p={day,week,month,plan,at},w=writer_at(s,rest)}
end
local ended,over={},{}
local function mark(req) ended[req]=true over[#over+1]=req end
local GEN=floor(now/${ENDED_GENERATION_MS})
local sets
local function has_ended(req)
  sets=sets or {E..int(GEN),E..int(GEN-1)}
  return ended[req] or call('SISMEMBER',sets[1],req)==1 or call('SISMEMBER',sets[2],req)==1
end
local function used(scope,kind,meter,key,p)
  local t=tally(key,p)
  local i=('dwmpt'):find(kind)
  if scope=='k' then
    if kind=='p' or key=='' then return 0,0 end
    i=kind=='t' and 9 or 5+i
  end
  local v,at=t.v,10*i-9+('ctb'):find(meter)
  if meter=='t' then return v[at]+v[at+1]+v[at+3]+v[at+4],v[at+6]+v[at+7] end
  return v[at]+v[at+3],v[at+6]
end
local function awaited() return now<tonumber(get(Q,'B') or '0') and 1 or 0 end
local function leases()
  local gone,longest=0,now+${LEASE_MS}
  local due=get(Q,'w')
  due=due and tonumber(due)
  if not due or (due>now and due<=longest) then return 0 end
  local nxt
  local list=call('HGETALL',H.key)
  for i=1,#list,2 do
    local req,h=list[i],hold_of(list[i+1])
    if h.d==0 then
      if h.l>longest then h.l=longest put_hold(req,h) end
      if h.l<=now then drop(req,h) mark(req) del(Q,'ok') gone=gone+1
      elseif not nxt or h.l<nxt then nxt=h.l end
    end
  end
  if nxt then put(Q,'w',int(max(nxt,now+${SWEEP_INTERVAL_MS}))) else del(Q,'w') end
  return gone
end
local function done()
  write(H) write(F) shut() write(Q)
  if #over>0 then
    all('SADD',E..int(GEN),over)
    call('PEXPIRE',E..int(GEN),${ENDED_GENERATION_MS * 3})
  end
end
local function requests(from,width)
  local list={}
  for i=from+1,#ARGV,width do list[#list+1]=ARGV[i] end
  return list
end
`;
