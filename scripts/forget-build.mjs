// Before `tsc -b` by hand: what a start believes to be built must not outlive it.
import { forgetOtherBuild } from './ensure-built.mjs';

forgetOtherBuild();
