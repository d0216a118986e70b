// npm run -s admin -- <command> [--json]
import { ensureBuilt } from './ensure-built.mjs';

await ensureBuilt({ quiet: true });
await import('../deploy/admin/dist/main.js');
