// npm run build: builds all packages and the dashboard, after waiting for other installs and builds in this folder. npm run
// typecheck: builds only the packages. npm run clean: removes their build output.
import { join } from 'node:path';
import { ensureDashboard } from './build-dashboard.mjs';
import { forgetOtherBuild, root } from './ensure-built.mjs';
import { run } from './run.mjs';
import { alone } from './work-lock.mjs';

const given = process.argv.slice(2);
const flags = given.filter((word) => word !== '--packages');

process.exitCode = await alone(async (held) => {
  // Remove the stamps too, so that a start does not believe that the output is still there.
  forgetOtherBuild();
  const { status } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', ...flags], { cwd: root, held, to: 1 });
  if (status !== 0) return status ?? 1;
  return given.length > 0 || (await ensureDashboard({ held })) ? 0 : 1;
});
