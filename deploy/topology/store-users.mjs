// What each service may do at NATS and Redis. For Postgres see deploy/postgres/10-roles.sh.

/** Permissions for a durable consumer: create and inspect it, fetch and acknowledge messages. */
const consumes = (stream, durable, subject) => [`$JS.API.CONSUMER.CREATE.${stream}.${durable}.${subject}`, `$JS.API.CONSUMER.INFO.${stream}.${durable}`, `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`, `$JS.ACK.${stream}.${durable}.>`];
const looksAt = (stream) => `$JS.API.STREAM.INFO.${stream}`;
const makes = (stream) => [looksAt(stream), `$JS.API.STREAM.CREATE.${stream}`];

/**
 * NATS users, with the subjects that each may publish and subscribe to. All workers share one user. Only billing may create
 * streams, since their creator also decides what is copied into and out of them; nobody may change, purge or delete one.
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

/** Commands used by quota's scripts and its store (services/quota/src/adapters), on quota's own keys only. */
const REDIS_KEYS = ['q:*', 'h:*', 'f:*', 'e:*', 'epoch', 'heard'];
const REDIS_COMMANDS = ['ping', 'info', 'time', 'get', 'set', 'scan', 'hget', 'hmget', 'hgetall', 'hexists', 'hset', 'hsetnx', 'hdel', 'sadd', 'sismember', 'pexpire', 'eval', 'evalsha', 'script|load'];
const REDIS_PASSWORD_DIGEST = 'QUOTA_REDIS_PASSWORD_SHA256';
/** An ACL file cannot contain comments. The default user is off, so that every client must authenticate. */
export const redisUsers = () => `user default off\nuser quota on #${REDIS_PASSWORD_DIGEST} resetchannels ${REDIS_KEYS.map((key) => `~${key}`).join(' ')} -@all ${REDIS_COMMANDS.map((name) => `+${name}`).join(' ')}\n`;
/** The password appears in neither the file nor the list of processes. The image's entry point switches from root to the user redis and gives it the volume, even if an earlier version wrote it as root. The file of an earlier start is removed first: with fs.protected_regular, root may not write to another user's file in /tmp. */
export const REDIS_START = `umask 077 && rm -f /tmp/users.acl && sed "s/${REDIS_PASSWORD_DIGEST}/$(printf %s "$QUOTA_REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)/" /etc/signalbox/users.acl > /tmp/users.acl && chown redis /tmp/users.acl && exec docker-entrypoint.sh redis-server --aclfile /tmp/users.acl --appendonly yes --appendfsync everysec --maxmemory-policy noeviction`;
