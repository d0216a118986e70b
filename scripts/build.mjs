// npm run build: all packages and the dashboard, after whoever installs or builds here. npm run typecheck: the packages
// alone. npm run clean: takes away what was built of them.
import { join } from 'node:path';
import { ensureDashboard } from './build-dashboard.mjs';
import { forgetOtherBuild, root } from './ensure-built.mjs';
import { run } from './run.mjs';
import { alone } from './work-lock.mjs';

const given = process.argv.slice(2);
const flags = given.filter((word) => word !== '--packages');

process.exitCode = await alone(async (held) => {
  // What a start believes to be built must not outlive it.
  forgetOtherBuild();
  const { status } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', ...flags], { cwd: root, held, to: 1 });
  if (status !== 0) return status ?? 1;
  return given.length > 0 || (await ensureDashboard({ held })) ? 0 : 1;
});
