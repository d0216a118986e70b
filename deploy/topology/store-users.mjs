// What each service may do at NATS and at Redis. Of Postgres deploy/postgres/10-roles.sh says it.

/** Of a durable consumer: to make it, to look at it, to ask it for messages and to acknowledge them. */
const consumes = (stream, durable, subject) => [`$JS.API.CONSUMER.CREATE.${stream}.${durable}.${subject}`, `$JS.API.CONSUMER.INFO.${stream}.${durable}`, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, `$JS.ACK.${stream}.${durable}.>`];
const looksAt = (stream) => `$JS.API.STREAM.INFO.${stream}`;
const makes = (stream) => [looksAt(stream), `$JS.API.STREAM.CREATE.${stream}`];

/**
 * Users of NATS: subjects that each says and hears. Workers are one user. Streams are made by billing alone, since who
 * makes one also says what is copied into it and out of it; nobody may change, empty or delete one.
 */
export const NATS_USERS = {
  accounts: { says: ['keys.v1.revoked'], hears: [] },
  billing: { says: ['totals.v1.*', 'dlq.v1.usage.v1.*', ...makes('USAGE'), ...makes('DLQ'), ...consumes('USAGE', 'billing', 'usage.v1.>')], hears: ['decisions.v1'] },
  quota: { says: ['holds.v1.freed'], hears: ['totals.v1.>'] },
  routing: { says: ['decisions.v1', 'routing.v1.control'], hears: ['attempts.v1.>', 'routing.v1.control'] },
  workers: { says: ['usage.v1.*', 'attempts.v1.*', looksAt('USAGE')], hears: ['keys.v1.revoked', 'attempts.v1.*'] },
  edge: { says: [], hears: ['keys.v1.revoked', 'holds.v1.freed'] },
};
export const natsPassword = (user) => `${user.toUpperCase()}_NATS_PASSWORD`;

export function natsUsers() {
  const quoted = (subjects) => subjects.map((subject) => JSON.stringify(subject)).join(', ');
  const user = ([name, { says, hears }]) => `    {
      user: ${name}, password: $${natsPassword(name)}
      permissions: {
        publish: [${quoted(['$JS.API.INFO', ...says])}]
        subscribe: [${quoted([`_INBOX.${name}.>`, ...hears])}]
      }
    }
`;
  return `# Passwords come from the environment, in double quotes: without them one that begins with a digit may be read as a number.
authorization: {
  users: [
${Object.entries(NATS_USERS).map(user).join('')}  ]
}
`;
}

/** What quota's scripts and the commands beside them use (services/quota/src/adapters), on its own keys. */
const REDIS_KEYS = ['q:*', 'h:*', 'f:*', 'e:*', 'epoch', 'heard'];
const REDIS_COMMANDS = ['ping', 'info', 'time', 'get', 'set', 'scan', 'hget', 'hmget', 'hgetall', 'hexists', 'hset', 'hsetnx', 'hdel', 'sadd', 'sismember', 'pexpire', 'eval', 'evalsha', 'script|load'];
const REDIS_PASSWORD_DIGEST = 'QUOTA_REDIS_PASSWORD_SHA256';
/** An ACL file knows no comments. Nobody is let in without a name. */
export const redisUsers = () => `user default off\nuser quota on #${REDIS_PASSWORD_DIGEST} resetchannels ${REDIS_KEYS.map((key) => `~${key}`).join(' ')} -@all ${REDIS_COMMANDS.map((name) => `+${name}`).join(' ')}\n`;
/** The password itself stands in neither the file nor the list of processes. The image's own entry point makes the user redis of root, and the volume that user's, also where an earlier version wrote it as root. What an earlier start left is removed first: where fs.protected_regular is set, root may not write to another's file in /tmp. */
export const REDIS_START = `umask 077 && rm -f /tmp/users.acl && sed "s/${REDIS_PASSWORD_DIGEST}/$(printf %s "$QUOTA_REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)/" /etc/signalbox/users.acl > /tmp/users.acl && chown redis /tmp/users.acl && exec docker-entrypoint.sh redis-server --aclfile /tmp/users.acl --appendonly yes --appendfsync everysec --maxmemory-policy noeviction`;
