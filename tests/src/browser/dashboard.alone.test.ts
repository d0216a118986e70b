/** The pages of the dashboard, in a browser. */
import { afterAll, beforeAll, describe } from '@jest/globals';
import { chromiumPath } from './browser.js';
import { describeFigures } from './figures-suite.js';
import { describeKeyChanges } from './key-changes-suite.js';
import { describeKeys } from './keys-suite.js';
import { describeLooks } from './looks-suite.js';
import { describePlayground } from './playground-suite.js';
import { describePolicy } from './policy-suite.js';
import { describeSessions } from './sessions-suite.js';
import { openSite, SLOW_MS, type Site } from './site.js';

const suite = chromiumPath === undefined ? describe.skip : describe;

suite('the dashboard', () => {
  let opened: Site | undefined;
  const site = (): Site => {
    if (opened === undefined) throw new Error('The gateway did not start.');
    return opened;
  };
  beforeAll(async () => {
    opened = await openSite();
  }, SLOW_MS);
  afterAll(() => opened?.close(), SLOW_MS);

  describeLooks(site);
  describeSessions(site);
  describeFigures(site);
  describeKeys(site);
  describeKeyChanges(site);
  describePlayground(site);
  describePolicy(site);
});
