/** Admission: checks each request against the limits of its account. Part of `scripts.ts`, with its arguments and formats. */
import { LEASE_MS } from '@signalbox/ledger-core/account-state';
import { BLOCKED_NOTICE_MS } from '@signalbox/ledger-core/admission';

/** Shared terms of a request: 12, as `redis-store.ts` sends them. Own arguments: id, amount, tokens, minimum amount, minimum tokens. */
export const ADMIT = `
local kinds,from={},3+12*ARGV[2]
local function head(p,at) return p[1]..'\\n'..p[2]..'\\n'..p[3]..'\\n'..p[4]..'\\n'..int(at)..'\\n' end
local wanted={'w','L','ok'}
for i=3,from-1,12 do
  local k={life=ARGV[i],key=ARGV[i+1],counter=ARGV[i+2],b=tonumber(ARGV[i+3]),p=ids(now,tonumber(ARGV[i+4]),tonumber(ARGV[i+5])),minute=ARGV[i+6],second=ARGV[i+7],key_minute=ARGV[i+8],walls=ARGV[i+9],needs=ARGV[i+10],advance=ARGV[i+11]=='1',own='',head='',texts='',w='',gates=false}
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
  local said=decision..'\\n'..head..int(v[33]+v[34]+v[36]+v[37]+v[39]+v[40]+t.ft+t.fb+t.ht+t.hb)..(k.b==1 and ' '..int(v[34]+v[37]+v[40]+t.fb+t.hb) or '')..'\\n'..rest
  return rl and said..fmt('\\n%s\\n%.0f\\n%.0f',rl,rr,newest(tight)) or said
end
local function admitted(k,x,head,h,ht,amount,tokens)
  return answer(k,'admitted',x,head,h..'\\n'..ht..'\\n'..(k.walls=='' and '\\n' or room(k,x.key==k.key and x or {key=k.key,p=x.p},amount,tokens)))
end
local function refused(k,decision,retry,wall,spend,res)
  return answer(k,decision,k,k.head,fmt('%.0f\\n%.0f\\n%.0f\\n%.0f',retry,wall,spend,res))
end
local function admit(k,req,amount,tokens,least,least_t,text,text_t)
  local known=hold(req)
  if known then return admitted(k,known.x,head(known.x.p,known.at),int(known.a),int(known.t),amount,tokens) end
  if get(F,req) then return 'ended' end
  if has_ended(req) then
    if k.counter=='control' then return admitted(k,k,k.head,'0','0',amount,tokens) end
    return 'ended'
  end
  if k.needs=='1' and get(Q,'ok')~=k.life then return 'unloaded' end
  if k.advance and awaited()==1 then return refused(k,'blocked',1000,-1,0,0) end
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
        if not k.advance then put(Q,'B',int(now+${BLOCKED_NOTICE_MS})) end
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
  put_hold(req,{a=h,t=ht,b=k.b,d=0,l=lease,at=now,x=k})
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
