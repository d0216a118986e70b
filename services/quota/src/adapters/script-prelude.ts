/** Lua code shared by all scripts of quota's store: packed records, cached reads and writes of the hashes, periods, and steps that several scripts take. */
import { ENDED_GENERATION_MS, LEASE_MS, SWEEP_INTERVAL_MS } from '@signalbox/ledger-core/account-state';

/** Values per command: Lua can unpack 8,000 at most. Even, since fields are written in pairs. */
const VALUES_MAX = 2_000;

// Packed records: bucket = 10 doubles in the order of Bucket; hold = amount tokens byok dispatched lease reservedAt, key day week month plan walls;
// finished = charge tokens byok at, key day week month plan; window = head sum, then one count per slot.
// Holds and finished charges end with their writer, which is missing in records of older versions.
// Many records of an account have the same texts after their numbers. So these are unpacked only once (`terms`), and packed only once where possible.
// A hold is unpacked into one table at its first reading (`hold`). Code that changes it must `put` it; it is packed when it is written.
/** Prepended to every script. */
export const PRELUDE = `
local call,floor,pack,unp,fmt,max,min=redis.call,math.floor,struct.pack,struct.unpack,string.format,math.max,math.min
local now=tonumber(ARGV[1])
if now==0 then local T=call('TIME') now=T[1]*1000+floor(T[2]/1000) end
local BF='<dddddddddd'
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
    if v then
      if x.packed then v=x.packed(v) end
      set[n+1]=name set[n+2]=v n=n+2
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
local open
local function shut()
  local t=open
  open=nil
  if not t or not t.new then return end
  local n,v,fc,ft,fb,hc,ht,hb,set=t.n,t.v,t.fc,t.ft,t.fb,t.hc,t.ht,t.hb,{}
  for i=1,#n do
    local j=10*i
    set[2*i-1]=n[i]
    set[2*i]=pack(BF,v[j-9],v[j-8],v[j-7],v[j-6],v[j-5]+fc,v[j-4]+ft,v[j-3]+fb,v[j-2]+hc,v[j-1]+ht,v[j]+hb)
  end
  call('HSET',Q.key,unpack(set))
end
local function tally(key,p)
  local t=open
  if t and t.key==key then
    local o=t.p
    if o==p or (o[1]==p[1] and o[2]==p[2] and o[3]==p[3] and o[4]==p[4]) then return t end
  end
  shut()
  local day,week,month,plan=p[1],p[2],p[3],p[4]
  local n
  if key=='' then
    n={'b:account|day:'..day,'b:account|week:'..week,'b:account|month:'..month,'b:account|plan:'..plan,'b:account|total'}
  else
    local k='b:'..key..'|'
    n={'b:account|day:'..day,'b:account|week:'..week,'b:account|month:'..month,'b:account|plan:'..plan,'b:account|total',k..'day:'..day,k..'week:'..week,k..'month:'..month,k..'total'}
  end
  local all=call('HMGET',Q.key,unpack(n))
  for i=1,#n do all[i]=all[i] or ZERO end
  open={n=n,key=key,p=p,new=false,fc=0,ft=0,fb=0,hc=0,ht=0,hb=0,v={unp(#n==5 and '<${'d'.repeat(50)}' or '<${'d'.repeat(90)}',table.concat(all))}}
  return open
end
local function held(x,byok,a,t)
  local o=tally(x.key,x.p)
  o.hc=o.hc+a
  if byok==1 then o.hb=o.hb+t else o.ht=o.ht+t end
  o.new=true
end
local function book(x,byok,c,t)
  local o=tally(x.key,x.p)
  o.fc=o.fc+c
  if byok==1 then o.fb=o.fb+t else o.ft=o.ft+t end
  o.new=true
end
local function writer_at(s,at) if at>#s then return '' end return (unp('<s',s,at)) end
local hold_terms,finished_terms={},{}
local function hold_of(s)
  local a,t,b,d,l,at=unp('<dddddd',s)
  local texts=s:sub(49)
  local x=hold_terms[texts]
  if not x then
    local key,day,week,month,plan,walls,rest=unp('<ssssss',texts)
    x={key=key,p={day,week,month,plan},walls=walls,w=writer_at(texts,rest),texts=texts}
    hold_terms[texts]=x
  end
  return {a=a,t=t,b=b,d=d,l=l,at=at,x=x}
end
local function hold_texts(key,p,walls,w) return pack('<sssssss',key,p[1],p[2],p[3],p[4],walls,w) end
local function written_by(h,w)
  local x=h.x
  if x.w~=w then h.x={key=x.key,p=x.p,walls=x.walls,w=w,texts=hold_texts(x.key,x.p,x.walls,w)} end
end
H.packed=function(h) return pack('<dddddd',h.a,h.t,h.b,h.d,h.l,h.at)..h.x.texts end
local function hold(req)
  local h=get(H,req)
  if type(h)=='string' then h=hold_of(h) H.at[req]=h end
  return h
end
local function put_hold(req,h) put(H,req,h) end
local function drop(req,h) held(h.x,h.b,-h.a,-h.t) del(H,req) end
local function finished_of(s)
  local c,t,b,at=unp('<dddd',s)
  local texts=s:sub(33)
  local x=finished_terms[texts]
  if not x then
    local key,day,week,month,plan,rest=unp('<sssss',texts)
    x={key=key,p={day,week,month,plan},w=writer_at(texts,rest)}
    finished_terms[texts]=x
  end
  return {c=c,t=t,b=b,at=at,x=x}
end
local ended,over={},{}
local function mark(req) ended[req]=true over[#over+1]=req end
local GEN=floor(now/${ENDED_GENERATION_MS})
local sets
local function has_ended(req)
  sets=sets or {E..int(GEN),E..int(GEN-1)}
  return ended[req] or call('SISMEMBER',sets[1],req)==1 or call('SISMEMBER',sets[2],req)==1
end
local walls_by_text={}
local function walls_of(text)
  local list=walls_by_text[text]
  if list then return list end
  list={}
  for scope,kind,meter,limit in text:gmatch('(%a)(%a)(%a)(%d+);') do
    local i=('dwmpt'):find(kind)
    if scope=='k' then i=kind~='p' and (kind=='t' and 9 or 5+i) end
    list[#list+1]={k=scope=='k',m=meter,at=i and 10*i-9+('ctb'):find(meter),limit=tonumber(limit)}
  end
  walls_by_text[text]=list
  return list
end
local function used(w,x)
  local t,at=tally(x.key,x.p),w.at
  if not at or (w.k and x.key=='') then return 0,0 end
  local v,m=t.v,w.m
  if m=='c' then return v[at]+v[at+3]+t.fc,v[at+6]+t.hc end
  if m=='b' then return v[at]+v[at+3]+t.fb,v[at+6]+t.hb end
  return v[at]+v[at+1]+v[at+3]+v[at+4]+t.ft+t.fb,v[at+6]+v[at+7]+t.ht+t.hb
end
local function hold_for(req,from,a,t)
  local h=hold(req)
  if h then return h end
  if from=='' then return end
  local adv=hold(from)
  if not adv or get(F,req) then return end
  local late=has_ended(req)
  if late and (not has_ended(req..' undrawn') or has_ended(req..' drawn')) then return end
  local da,dt=min(a,adv.a),min(t,adv.t)
  adv.a=adv.a-da adv.t=adv.t-dt
  if adv.a==0 and adv.t==0 then del(H,from) mark(from) else put_hold(from,adv) end
  if late then
    held(adv.x,adv.b,-da,-dt)
    mark(req..' drawn')
    return
  end
  held(adv.x,adv.b,a-da,t-dt)
  if not get(Q,'w') then put(Q,'w',int(adv.l)) end
  h={a=a,t=t,b=adv.b,d=0,l=adv.l,at=adv.at,x=adv.x}
  if h.x.w~='' then written_by(h,'') end
  put_hold(req,h)
  return h
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
